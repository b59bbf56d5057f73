#pragma once
/// \file
/// A DPDK port. It belongs to the process: configurations share the one that runs.

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "headrace/addresses.hh"
#include "headrace/device_state.hh"
#include "headrace/error.hh"
#include "headrace/packet_pool.hh"

struct rte_mbuf;
struct rte_mempool;

namespace headrace::io {
class LinkWatch;
}

namespace headrace::io::dpdk {

/// How a port runs. Zero and nullopt: as the driver likes it.
struct PortSettings {
  int receive_queues = 1;
  int transmit_queues = 1;
  int receive_descriptors = 0;
  int transmit_descriptors = 0;
  int mtu = 0;
  std::optional<EtherAddress> mac;
  std::optional<bool> promiscuous;
  bool verify_checksums = false;  // of what is received
  bool ip_checksums = false;      // to be set in what is sent
  bool l4_checksums = false;
  uint32_t backlog = 1024;  // packets that wait in a transmit queue for the driver
};

struct PortStats {
  uint64_t received = 0, received_bytes = 0, missed = 0, receive_errors = 0, no_buffers = 0;
  uint64_t sent = 0, sent_bytes = 0, send_errors = 0;
};

struct PortLink {
  bool up = false;
  uint32_t mbps = 0;  // 0: unknown
  bool full_duplex = false;
  bool autonegotiated = false;
};

/// What is fixed by the device and how it was started.
struct PortInfo {
  std::string device, driver, bus, vendor;
  int socket = -1;
  int most_receive_queues = 0, most_transmit_queues = 0;
  int receive_descriptors = 0, transmit_descriptors = 0;
  int hash_table_size = 0, virtual_pools = 0;
  bool distributes = false;  // by receive-side scaling
};

class Port {
 public:
  /// The port called `text`: a number, a PCI address, or a virtual device with its arguments, such as
  /// "net_af_packet0,iface=veth1", which is made if it is not there. One that is open already is shared. Null, with an
  /// error that lists the ports there are, when there is none.
  static std::shared_ptr<Port> open(const std::string& text, Errors& errors);
  ~Port();
  Port(const Port&) = delete;
  Port& operator=(const Port&) = delete;

  /// "net_memif0", "0000:03:00.0".
  const std::string& name() const { return name_; }
  PortInfo info() const;
  bool running() const { return started_; }
  const PortSettings& settings() const { return settings_; }

  /// Starts the port, or checks that it runs in this way. Errors say what differs.
  /// \param links tells of the interface of Linux behind the port, if there is one
  Status start(const PortSettings& settings, const std::shared_ptr<LinkWatch>& links, Errors& errors);
  /// Sets what may change while the port runs: whether it is promiscuous, and its address.
  void apply(const PortSettings& settings);

  // --- Packets. The calling thread must be attached (eal.hh) and an RCU reader, or nobody may close the port
  // meanwhile.

  struct Received {
    int packets = 0;
    uint64_t bytes = 0;
    int lost = 0;  // received, but no buffer was there to put them together in
  };
  /// Takes up to `most` packets of a queue, with MAC header, packet type and, where the port tells it, hash set. `bad`:
  /// null, or set for each packet: a checksum that the port has found wrong.
  Received receive(int queue, Packet** out, int most, bool* bad);

  /// Small enough for two registers.
  struct Transmitted {
    uint64_t bytes = 0;
    uint16_t packets = 0;  // taken by the driver or by the backlog
    uint16_t unfit = 0;    // longer than the port's MTU, or shorter than a header; killed
    uint16_t left = 0;     // without room; they are the first of the array now
    bool waiting = false;  // as waiting(), behind it
  };
  /// Who uses a transmit queue: any number of threads, of which none waits for another; or one owner, which spares it
  /// atomic operations, and guests, which leave their packets for the owner to send.
  enum class Sender { kAny, kOwner, kGuest };
  /// Sends packets in order behind those that wait in the queue.
  Transmitted transmit(int queue, Packet** packets, int n, Sender sender = Sender::kAny);
  /// Sends what waits, as far as the driver takes it; true if it took anything. Not for guests.
  bool flush(int queue, Sender sender = Sender::kAny);
  bool waiting(int queue) const;
  /// As was seen last: an interface of Linux tells of changes, other ports are looked at every 20 ms.
  bool link_up() const { return link_up_.load(std::memory_order_relaxed); }

  // --- For handlers. Not for the data path.

  PortStats stats() const;
  PortLink link() const;
  /// Nothing while the device is gone.
  std::optional<DeviceState> device_state() const;
  EtherAddress mac() const;
  int mtu() const;
  bool promiscuous() const;
  Status set_promiscuous(bool on, Errors& errors);
  Status set_mac(EtherAddress address, Errors& errors);
  Status add_mac(EtherAddress address, Errors& errors);
  Status remove_mac(EtherAddress address, Errors& errors);
  Status set_mtu(int mtu, Errors& errors);
  /// "name: value" lines.
  std::string extended_stats() const;
  std::optional<uint64_t> extended_stat(const std::string& name) const;
  void reset_stats();
  /// Used descriptors of a receive queue, or -1 where the driver does not tell.
  int receive_queue_fill(int queue) const;

 private:
  friend class Watch;
  struct TransmitQueue;
  struct Limits;

  Port(uint16_t id, std::string name, std::string device_arguments);
  static std::shared_ptr<Port> open_locked(const std::string& text, Errors& errors);
  Status compare(const PortSettings& wanted, Errors& errors) const;
  /// What the driver refuses, in words; empty when the port runs.
  std::string configure_and_start();
  std::string set_up_queues(uint64_t receive_offloads, uint64_t transmit_offloads);
  std::string map_packet_memory();
  void stop();
  void empty_rings();
  void note_address();
  int prepare_any(Packet** packets, int n, rte_mbuf** mbufs, uint64_t& bytes);
  rte_mbuf* prepare_large(Packet* p);
  void set_checksums(rte_mbuf* m) const;
  Transmitted leave_waiting(int queue_id, Packet** packets, rte_mbuf** mbufs, int left, Sender sender,
                            Transmitted result);
  int send_shared(TransmitQueue& queue, rte_mbuf** mbufs, int n, Sender sender);
  int send_burst(TransmitQueue& queue, rte_mbuf** mbufs, int n);
  bool drain(TransmitQueue& queue);
  bool usable() const { return usable_.load(std::memory_order_acquire); }

  // What each burst needs comes first, in one cache line.
  alignas(64) std::atomic<uint16_t> id_;
  std::atomic<bool> usable_{false};
  std::atomic<bool> link_up_{true};
  std::atomic<bool> removed_{false};  // the driver said so
  bool started_ = false;
  bool segments_ = false;        // frames of several buffers may be sent
  bool sets_checksums_ = false;  // in what is sent
  uint32_t longest_frame_ = 0;
  std::atomic<uint64_t> address_{0};
  std::vector<std::unique_ptr<TransmitQueue>> transmit_queues_;

  std::string name_;
  std::string device_arguments_;  // of a virtual device that we made
  PortSettings settings_;
  int receive_descriptors_ = 0, transmit_descriptors_ = 0;
  uint64_t hardware_checksums_ = 0;  // transmit offloads
  mutable std::mutex control_lock_;
  PortStats before_;        // of the device's earlier lives
  unsigned interface_ = 0;  // of Linux, behind the port; 0: none
  std::string interface_name_;
};

/// "0 (net_null0, driver net_null), 1 (0000:03:00.0, driver net_ice)" or "none".
std::string list_ports();

}  // namespace headrace::io::dpdk
