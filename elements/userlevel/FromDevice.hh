#pragma once
#include <headrace/element.hh>

#include "elements/standard/single_writer.hh"
#include "headrace/device_port.hh"
#include "src/io/pcap/capture_reader.hh"
#include "src/io/pcap/live.hh"

namespace headrace {

/// Receives packets from a network interface of Linux.
///
///     FromDevice(DEVNAME [, PROMISC, SNAPLEN, keyword SNIFFER, FORCE_IP, METHOD, BPF_FILTER, ENCAP, OUTBOUND,
///                HEADROOM, BURST, TIMESTAMP, STOP, ALLOW_NONEXISTENT])
///
/// Output 0, push: packets with their link header, the time of their receipt, their packet type by the link header's
/// destination, and the extra-length annotation. Output 1 (optional), push: with FORCE_IP, packets that are not IP.
///
/// The kernel receives the packets as well, unless SNIFFER is false. What a ToDevice sends by the interface is not
/// received, unless OUTBOUND is true. Needs the rights of root, or CAP_NET_RAW.
///
/// DEVNAME: the interface; or "pcap:FILE" for a capture file, whose packets come at once, without root.
/// PROMISC true: also frames for others. Default false.
/// SNAPLEN: most bytes captured of a packet, 14 to 65535. Default 2046.
/// SNIFFER false: iptables rules keep the kernel from receiving the packets. Default true.
/// FORCE_IP true: sets the network header; packets that are not IP are dropped. Default false.
/// METHOD: PCAP (default); LINUX is understood and means the same.
/// BPF_FILTER: a filter of pcap-filter(7) that packets must pass.
/// ENCAP: the link type to ask the interface for, such as ETHER (see ToDump).
/// OUTBOUND true: also packets that the system sends by the interface. Default false.
/// HEADROOM: free bytes before the data. Default 128.
/// BURST: most packets received in a row, which the elements behind see as a batch. Default 32.
/// TIMESTAMP false: packets get no timestamp. Default true.
/// STOP true: stops the router at the end of a capture file. Default false.
/// ALLOW_NONEXISTENT true: an interface that cannot be opened is only warned of, and nothing comes. Default false.
///
/// Handlers: `count` (r) packets received; `reset_counts` (w); `kernel_drops` (r) packets that the kernel had no room
/// for, or "??"; `encap` (r) the link type.
class FromDevice final : public Element, public DevicePort {
 public:
  static constexpr Ports kPorts{"0/1-2"};
  static constexpr Processing kProcessing{"h/h"};

  Status configure(Args& args) override;
  Status initialize(Errors& errors) override;
  void add_handlers(Handlers& handlers) override;
  bool run_task(Task& task) override;
  void selected(int fd, int mask) override;

  Direction direction() const override { return Direction::kIn; }
  PortTotals totals(int thread) const override;
  uint64_t missed() const override;

 private:
  enum Counter { kPackets, kBytes };
  Status open_file(const std::string& name, Errors& errors);
  Status open_interface(Errors& errors);
  int link_type() const;
  /// Appends what is there, up to BURST packets; false at the end of a file.
  bool receive(Batch& batch);
  void receive_live(Batch& batch);
  void emit(Batch& batch);

  std::string device_;
  io::LiveInterface::Options options_;
  bool sniffer_ = true;
  bool force_ip_ = false;
  bool timestamps_ = true;
  bool stop_ = false;
  bool may_miss_ = false;
  uint32_t headroom_ = Packet::kDefaultHeadroom;
  int burst_ = 32;

  std::unique_ptr<io::LiveInterface> live_;
  std::unique_ptr<io::KernelSilence> silence_;
  io::CaptureReader file_;
  Errors complaints_{Errors::Output::kStderr};
  ThreadCounters counts_{2};
  SingleWriter<uint64_t> missed_;
  Task task_{this};
  /// Looks again for an interface that failed, such as one that was taken down.
  Timer retry_{this, [this](Timer&) {
                 select(live_->fd(), 1);
                 task_.reschedule();
               }};
  int failures_ = 0;
};

HEADRACE_ELEMENT(FromDevice)
HEADRACE_ELEMENT_ALIAS(PollDevice, FromDevice)

}  // namespace headrace
