#pragma once
#include <headrace/batch_size.hh>
#include <headrace/element.hh>
#include <mutex>

#include "headrace/device_port.hh"
#include "headrace/device_state.hh"
#include "headrace/single_writer.hh"
#include "headrace/software_rss.hh"
#include "headrace/touches_machine.hh"
#include "src/io/linux/link_watch.hh"
#include "src/io/linux/port.hh"
#include "src/io/pcap/capture_reader.hh"

namespace headrace {

/// Receives packets from a network interface of Linux.
///
///     FromDevice(DEVNAME [, PROMISC, SNAPLEN, keyword SNIFFER, FORCE_IP, METHOD, BPF_FILTER, ENCAP, OUTBOUND,
///                HEADROOM, BURST, TIMESTAMP, STOP, ALLOW_NONEXISTENT, SPREAD])
///
/// Output 0, push: packets with their link header, the time of their receipt, their packet type by the link header's
/// destination, and the extra-length annotation. Output 1 (optional), push: with FORCE_IP, packets that are not IP.
///
/// SNIFFER decides whether the kernel also gets the frames. If it is true, as in Click, the kernel also receives them
/// and answers those for its own addresses: right for a monitor. For a router set SNIFFER false; then only the router
/// gets the frames, by the fastest method that works: AF_XDP (zero-copy, else native, else generic), else AF_PACKET.
/// The router prints the method when it starts.
///
/// The receiving worker (without a StaticThreadSched the FromDevices of a configuration take the workers in turn) reads
/// all queues of the interface and spreads the packets over all workers by flow: a Toeplitz hash of addresses and
/// ports, of addresses only for fragments; all non-IP packets are one flow. A flow stays in order.
///
/// The element completes transport checksums that a sender on this machine (the other end of a veth pair) left
/// unfinished. Frames longer than the interface's MTU, which offloads create by merging (GRO) or not yet segmenting
/// (GSO) packets, cannot be forwarded: they are dropped and counted. Switch these offloads off: ethtool -K DEV tx off
/// tso off gso off gro off; and txvlan off where a sender on this machine adds VLAN tags.
///
/// Packets that a ToDevice sends by the interface are not received, unless OUTBOUND is true. If the interface
/// disappears, the element waits for it to return. In a hot swap the new configuration takes over the open interface;
/// no frame is lost or received twice. Needs root, or CAP_NET_RAW and, for SNIFFER false and AF_XDP, CAP_NET_ADMIN and
/// CAP_BPF.
///
/// DEVNAME: the interface; or "pcap:FILE" for a capture file, whose packets come at once, without root.
/// PROMISC true: also receives frames for other hosts. Default false.
/// SNAPLEN: maximum number of bytes captured of a packet, 14 to 65535; longer packets are truncated. Default: by the
/// MTU.
/// SNIFFER false: the kernel does not receive the packets. Default true, except with METHOD AF_XDP.
/// FORCE_IP true: sets the network header; packets that are not IP are dropped. Default false.
/// METHOD: AF_XDP, AF_PACKET (or LINUX), or PCAP. Default: the best that does what the other arguments ask for.
/// BPF_FILTER: a filter of pcap-filter(7) that packets must pass. Not with AF_XDP.
/// ENCAP: the link type to ask the interface for, such as ETHER (see ToDump).
/// OUTBOUND true: also packets that the system sends by the interface. Not with AF_XDP. Default false.
/// HEADROOM: free bytes before the data. Default 128.
/// BURST: maximum number of packets received in a row, which downstream elements see as a batch. Default: what
/// `--batch` says, else as many as fit into the first-level cache (128 with 48 KiB).
/// TIMESTAMP false: packets get no timestamp. Default true.
/// STOP true: stops the router at the end of a capture file. Default false.
/// ALLOW_NONEXISTENT true: waits for an interface that is missing when the router starts. Default false.
/// SPREAD false: every packet stays with the worker that receives. Default true; a capture file is never spread.
///
/// Handlers: `count`, `byte_count` (r) packets received and their bytes; `reset_counts` (w); `kernel_drops` (r) packets
/// that the kernel dropped for lack of room, or "??"; `drops` (r) all packets lost before the element; `method` (r);
/// `encap` (r) the link type.
class FromDevice final : public Element, public DevicePort, public HasDevice, public TouchesMachine {
 public:
  static constexpr Ports kPorts{"0/1-2"};
  static constexpr Processing kProcessing{"h/h"};

  Status configure(Args& args) override;
  Status initialize(Errors& errors) override;
  void add_handlers(Handlers& handlers) override;
  bool run_task(Task& task) override;
  void selected(int fd, int mask) override;
  void take_state(Element& old, Errors& errors) override;
  uint64_t held_packets() const override { return rss_.held(); }
  std::string note() const override;

  bool moves(Direction direction) const override { return direction == Direction::kIn; }
  PortTotals totals(Direction direction, int thread) const override;
  uint64_t missed() const override;
  std::optional<DeviceState> device_state() const override;
  DeviceCounters device_counters() const override;

 private:
  enum Counter { kPackets, kBytes };
  enum Reason { kNotIp, kTooLong, kRingFull };
  Status open_file(const std::string& name, Errors& errors);
  Status open_interface(Errors& errors);
  /// Opens the interface, or shares it with the configuration that runs.
  bool open_port(Errors& errors);
  /// With AF_XDP no other element receives from the interface.
  Status check_others(Errors& errors) const;
  void set_port(std::shared_ptr<io::PortReceiver> port);
  /// For threads other than the one that receives.
  std::shared_ptr<io::PortReceiver> shared_port() const;
  /// Receives from now on, with SNIFFER false in the kernel's place.
  Status start_port(Errors& errors);
  void watch(bool on);
  /// Looks whether the interface went away or came back.
  void look_after_interface();
  /// Appends what is there, up to BURST packets; false at the end of a file.
  bool receive_file(Batch& batch);
  void receive_live(Batch& batch);
  void emit(Batch& batch);
  std::optional<uint64_t> kernel_drops() const;

  std::string device_;
  io::PortRequest request_;
  bool live_ = true;
  bool force_ip_ = false;
  bool timestamps_ = true;
  bool stop_ = false;
  bool may_miss_ = false;
  bool spread_ = true;
  uint32_t headroom_ = Packet::kDefaultHeadroom;
  int burst_ = default_batch();

  /// The receiving thread reads it as it is, and locks to change it; others lock to read it.
  std::shared_ptr<io::PortReceiver> port_;
  mutable std::mutex port_lock_;
  /// What the predecessor had open, if not the same; read until it is empty.
  std::shared_ptr<io::PortReceiver> rest_;
  std::shared_ptr<io::KernelSilence> silence_;
  SingleWriter<int> link_type_ = -1;
  /// Another configuration receives until the first run of the task.
  bool taken_over_ = false;
  /// The port receives for this configuration.
  bool started_ = false;
  bool up_ = true;
  bool said_too_long_ = false;
  /// The descriptor became readable and nothing was there yet.
  bool woken_ = false;
  int quiet_rounds_ = 0;
  io::CaptureReader file_;
  Errors complaints_{Errors::Output::kStderr};
  ThreadCounters counts_{2};
  SingleWriter<uint64_t> missed_;
  /// Of interfaces that are gone.
  SingleWriter<uint64_t> earlier_drops_;
  /// Of the interface when it was started.
  SingleWriter<uint64_t> first_drops_;
  Task task_{this};
  Timer look_{this, [this](Timer&) { look_after_interface(); }};
  std::unique_ptr<io::LinkWatch::Subscription> link_;  // ends before the timer; null: a file
  SoftwareRss rss_{*this, [this](Batch& batch) { emit(batch); }};
};

HEADRACE_ELEMENT(FromDevice)
HEADRACE_ELEMENT_ALIAS(PollDevice, FromDevice)

}  // namespace headrace
