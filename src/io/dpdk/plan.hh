#pragma once
/// \file
/// What the elements of one configuration ask of ports, taken together before a port is started.

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "headrace/error.hh"
#include "src/io/dpdk/port.hh"
#include "src/io/linux/link_watch.hh"

namespace headrace::io::dpdk {

/// What one element that receives wants.
struct ReceiveWants {
  int queue = -1;   // the first; -1: the next one that is free
  int queues = -1;  // -1: one for each worker where the port distributes, else one
  int least_queues = 1, most_queues = 128;
  int descriptors = 0;
  int mtu = 0;
  bool promiscuous = false;
  bool verify_checksums = false;
  std::optional<EtherAddress> mac;
};

/// What one element that sends wants.
struct SendWants {
  int queues = -1;  // -1: one for each worker where the port distributes, else as many as are received from
  int descriptors = 0;
  int mtu = 0;
  uint32_t backlog = 1024;
  bool ip_checksums = false;
  bool l4_checksums = false;
};

/// Elements add what they want when they are configured; the first that is initialized starts all ports.
class Plan {
 public:
  /// The plan of the configuration that `router` stands for; it lives as long as it has a holder.
  static std::shared_ptr<Plan> of(const void* router);

  /// Both return a number for grant().
  int receive(const std::string& device, const ReceiveWants& wants);
  int send(const std::string& device, const SendWants& wants);

  struct Grant {
    std::shared_ptr<Port> port;
    int first_queue = 0;  // of those to receive from
    int queues = 0;
  };
  /// Opens and starts the ports unless that was done, and returns what this element got. Without a port, with errors
  /// reported, when its port cannot be had as it is wanted.
  /// \param links tells of the interfaces of Linux behind ports
  Grant grant(int number, int workers, const std::shared_ptr<LinkWatch>& links, Errors& errors);

 private:
  struct Want {
    std::string device;
    std::optional<ReceiveWants> receive;
    std::optional<SendWants> send;
    Grant grant;
    std::vector<std::string> errors, warnings;  // of its port
  };
  void carry_out(int workers, const std::shared_ptr<LinkWatch>& links);
  static void carry_out_on(const std::shared_ptr<Port>& port, std::vector<Want*>& wants, int workers,
                           const std::shared_ptr<LinkWatch>& links);

  std::vector<Want> wants_;
  bool carried_out_ = false;
};

}  // namespace headrace::io::dpdk
