#pragma once
#include <headrace/element.hh>

#include "headrace/device_port.hh"
#include "src/io/pcap/capture_writer.hh"
#include "src/io/pcap/live.hh"

namespace headrace {

/// Sends packets by a network interface of Linux.
///
///     ToDevice(DEVNAME [, keyword BURST, METHOD, DEBUG, ENCAP])
///
/// Input 0, pull: packets with their link header. Output 0 (optional), push: packets that were sent. Output 1
/// (optional), push: packets that could not be sent; without it they are dropped. Needs the rights of root, or
/// CAP_NET_RAW.
///
/// DEVNAME: the interface; or "pcap:FILE" for a capture file to write, without root.
/// BURST: most packets sent in a row. Default 32.
/// METHOD: PCAP (default); LINUX is understood and means the same.
/// DEBUG true: says when the interface is congested. Default false.
/// ENCAP: the link type of a capture file, see ToDump. Default ETHER.
///
/// Handlers: `count` (r) packets sent; `drops` (r) packets that could not be sent; `reset_counts` (w); `pulls` (r);
/// `debug` (rw).
class ToDevice final : public Element, public DevicePort {
 public:
  static constexpr Ports kPorts{"1/0-2"};
  static constexpr Processing kProcessing{"l/h"};

  ~ToDevice() override;
  Status configure(Args& args) override;
  Status initialize(Errors& errors) override;
  void add_handlers(Handlers& handlers) override;
  bool run_task(Task& task) override;
  void selected(int fd, int mask) override;

  Direction direction() const override { return Direction::kOut; }
  PortTotals totals(int thread) const override;

 private:
  enum Counter { kPackets, kBytes, kFailed, kPulls, kCounters };
  enum class Sent { kYes, kLater, kNo };
  Sent send(const Packet& p);
  void done(Packet* p, bool sent);
  void back_off();

  std::string device_;
  io::CaptureWriter::Options file_options_;
  int burst_ = 32;
  bool debug_ = false;

  std::unique_ptr<io::LiveInterface> live_;
  io::CaptureWriter file_;
  /// Packets pulled that wait until the interface takes more; from held_next_ on.
  Batch held_;
  int held_next_ = 0;
  int64_t backoff_us_ = 0;
  bool complained_ = false;
  bool unflushed_ = false;
  ThreadCounters counts_{kCounters};
  Task task_{this};
  Timer timer_{this, [this](Timer&) { task_.reschedule(); }};
  Signal signal_;
};

HEADRACE_ELEMENT(ToDevice)

}  // namespace headrace
