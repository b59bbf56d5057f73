#pragma once
#include <headrace/element.hh>
#include <mutex>

#include "headrace/device_port.hh"
#include "headrace/device_state.hh"
#include "headrace/touches_machine.hh"
#include "src/io/linux/link_watch.hh"
#include "src/io/linux/port.hh"
#include "src/io/pcap/capture_writer.hh"

namespace headrace {

/// Sends packets by a network interface of Linux.
///
///     ToDevice(DEVNAME [, keyword BURST, METHOD, DEBUG, ENCAP, ALLOW_NONEXISTENT])
///
/// Input 0, pull: packets with their link header. Output 0 (optional), push: packets that were sent. Output 1
/// (optional), push: packets that could not be sent; without it they are dropped. Needs root, or
/// CAP_NET_RAW.
///
/// If the interface disappears, the element waits for it to return; packets cannot be sent meanwhile. Without a
/// StaticThreadSched the ToDevices of a configuration take the workers in turn.
///
/// DEVNAME: the interface; or "pcap:FILE" for a capture file to write, without root.
/// BURST: maximum number of packets sent in a row. Default 32.
/// METHOD: AF_XDP, AF_PACKET (or LINUX), or PCAP. Default: AF_XDP where it works, else AF_PACKET. tcpdump on the same
/// interface does not see packets sent with AF_XDP.
/// DEBUG true: reports when the interface is congested. Default false.
/// ENCAP: the link type of a capture file, see ToDump. Default ETHER.
/// ALLOW_NONEXISTENT true: waits for an interface that is missing when the router starts. Default false.
///
/// Handlers: `count`, `byte_count` (r) packets sent and their bytes; `drops` (r) packets that could not be sent;
/// `reset_counts` (w); `pulls` (r); `method` (r); `debug` (rw).
class ToDevice final : public Element, public DevicePort, public HasDevice, public TouchesMachine {
 public:
  static constexpr Ports kPorts{"1/0-2"};
  static constexpr Processing kProcessing{"l/h"};

  ~ToDevice() override;
  Status configure(Args& args) override;
  Status initialize(Errors& errors) override;
  void add_handlers(Handlers& handlers) override;
  bool run_task(Task& task) override;
  void selected(int fd, int mask) override;
  void take_state(Element& old, Errors& errors) override;
  uint64_t held_packets() const override { return static_cast<uint64_t>(held_.size() - held_next_); }
  std::string note() const override;

  bool moves(Direction direction) const override { return direction == Direction::kOut; }
  PortTotals totals(Direction direction, int thread) const override;
  std::optional<DeviceState> device_state() const override;
  DeviceCounters device_counters() const override;

 private:
  enum Counter { kPackets, kBytes, kFailed, kPulls, kCounters };
  bool open_port(Errors& errors);
  void set_port(std::shared_ptr<io::PortSender> port);
  /// For threads other than the one that sends.
  std::shared_ptr<io::PortSender> shared_port() const;
  void look_after_interface();
  /// Sends from held_next_ on; returns how many. If not all, `error` says what is the matter with the next one.
  int send_some(int& error);
  /// The next `n` packets were sent.
  void sent(int n);
  /// The next packet cannot be sent.
  void fail(const char* error);
  /// Sends what is held. False: later.
  bool send_held();
  void back_off();

  std::string device_;
  io::CaptureWriter::Options file_options_;
  int burst_ = 32;
  bool debug_ = false;

  io::PortRequest request_;
  bool live_ = true;
  bool may_miss_ = false;
  /// The sending thread reads it as it is, and locks to change it; others lock to read it.
  std::shared_ptr<io::PortSender> port_;
  mutable std::mutex port_lock_;
  bool up_ = true;
  io::CaptureWriter file_;
  /// Packets pulled that wait until the interface takes more; from held_next_ on.
  Batch held_;
  int held_next_ = 0;
  int64_t backoff_us_ = 0;
  bool complained_ = false;
  ThreadCounters counts_{kCounters};
  Task task_{this};
  Timer timer_{this, [this](Timer&) { task_.reschedule(); }};
  Timer look_{this, [this](Timer&) { look_after_interface(); }};
  std::unique_ptr<io::LinkWatch::Subscription> link_;  // ends before the timer; null: a file
  Signal signal_;
};

HEADRACE_ELEMENT(ToDevice)

}  // namespace headrace
