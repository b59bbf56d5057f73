#pragma once
#include <headrace/element.hh>
#include <optional>
#include <random>

#include "headrace/device_port.hh"
#include "headrace/end_call.hh"
#include "headrace/single_writer.hh"
#include "src/io/pcap/capture_reader.hh"

namespace headrace {

/// Sends the packets of a capture file.
///
///     FromDump(FILENAME [, TIMING, keyword STOP, ACTIVE, SAMPLE, FORCE_IP, START, START_AFTER, END, END_AFTER,
///              INTERVAL, END_CALL, FILEPOS])
///
/// Output 0, push or pull: the packets, with their timestamps; the extra-length annotation holds the number of bytes
/// not captured. Output 1 (optional), push: with FORCE_IP, packets that are not IP. Packets go out in batches of up to
/// 32, and wait while all queues behind output 0 are full, unless TIMING is true.
///
/// FILENAME: a pcap file (both byte orders, micro- or nanoseconds) or a pcapng file, plain, .gz, .xz,
/// .bz2 or .zst; "-" is standard input.
/// TIMING true: preserves the time intervals between packets. Default false.
/// STOP true: stops the router at the end. Default false.
/// ACTIVE false: sends nothing. Default true.
/// SAMPLE: the probability that a packet is sent. Default 1.
/// FORCE_IP true: sets the network header; packets that are not IP are dropped. Default false, but true for files of
/// bare IP packets.
/// START: skips packets captured before this time. START_AFTER: the same, relative to the first packet.
/// END: ends at the first packet captured at this time or later. END_AFTER: the same, relative to the first packet.
/// INTERVAL: the same, relative to the first packet that is sent.
/// END_CALL: a write handler called at the end. Default: with END, END_AFTER or INTERVAL, makes the element inactive.
/// Not together with STOP.
/// FILEPOS: the position in the file to begin at, as read from `packet_filepos`.
///
/// Handlers: `count` (r) packets sent; `reset_counts` (w); `active` (rw); `stop` (w) stops this and the router;
/// `sampling_prob` (r); `encap` (r) the link type, such as ETHER; `filename`, `filesize`, `packet_filepos` (r);
/// `filepos` (rw); `extend_interval` (w) extends the interval; `reset_timing` (w).
class FromDump final : public Element, public OneWayPort {
 public:
  static constexpr Ports kPorts{"0/1-2"};
  static constexpr Processing kProcessing{"a/ah"};

  FromDump();
  ~FromDump() override;
  Status configure(Args& args) override;
  std::vector<RegionInfo> annotations() const override { return declared(Write{anno::extra_length}); }
  Status initialize(Errors& errors) override;
  void add_handlers(Handlers& handlers) override;

  bool run_task(Task& task) override;
  int pull(int port, Batch& batch, int max) override;
  Notifier* notifier(NotifierKind kind, bool output, int port) override;

 private:
  enum Reason { kNotIp, kNoBuffer };
  enum class Next { kPacket, kNotYet, kNothing, kEnd };
  /// Takes the next packet; kNothing: one that is left out.
  Next next(Packet*& p);
  Next read(Packet*& p);
  bool due(const Packet& p);
  void prepare_times(Timestamp first);
  /// Whether there are queues behind that say when they are full, and packets may wait for them.
  bool waits_for_room() const { return !timing_ && !nonfull_.always_active(); }
  void send();
  void end();
  void set_active(bool active);

  std::string filename_;
  bool timing_ = false;
  bool active_ = true;
  bool force_ip_ = false;
  double sample_ = 1;
  uint64_t start_position_ = 0;
  EndCall end_;

  // Absolute once the first packet was seen.
  std::optional<Timestamp> first_time_, last_time_;
  bool first_relative_ = false;
  bool last_relative_ = false;
  bool last_interval_ = false;
  bool times_known_ = false;
  Timestamp timing_offset_;

  io::CaptureReader reader_;
  Errors complaints_{Errors::Output::kStderr};
  std::minstd_rand random_;
  Packet* held_ = nullptr;
  Batch batch_;  // to be sent
  SingleWriter<uint64_t> count_;
  Task task_{this};
  Signal nonfull_;
  Notifier nonempty_;
  Timer timer_;
};

HEADRACE_ELEMENT(FromDump)

}  // namespace headrace
