#pragma once
#include <headrace/element.hh>
#include <optional>
#include <random>

#include "elements/standard/end_call.hh"
#include "elements/standard/single_writer.hh"
#include "src/io/pcap/capture_reader.hh"

namespace headrace {

/// Sends the packets of a capture file.
///
///     FromDump(FILENAME [, TIMING, keyword STOP, ACTIVE, SAMPLE, FORCE_IP, START, START_AFTER, END, END_AFTER,
///     INTERVAL,
///              END_CALL, FILEPOS])
///
/// Output 0, push or pull: the packets, with their timestamps; the extra-length annotation says how many bytes were not
/// captured. Output 1 (optional), push: with FORCE_IP, packets that are not IP.
///
/// FILENAME: a pcap file (both byte orders, micro- or nanoseconds) or a pcapng file, plain or compressed by gzip, xz or
/// bzip2; "-" is the standard input.
/// TIMING true: keeps the packets' distances in time. Default false.
/// STOP true: stops the router at the end. Default false.
/// ACTIVE false: sends nothing. Default true.
/// SAMPLE: the probability that a packet is sent. Default 1.
/// FORCE_IP true: sets the network header; packets that are not IP are dropped. Default false, but true for files of
/// bare IP packets. START: leaves out what was captured before this time; START_AFTER: so long after the first packet.
/// END: ends at the first packet captured at this time or later; END_AFTER: so long after the first packet; INTERVAL:
/// so long after the first packet that is sent. END_CALL: a write handler called at the end. Default: with END and its
/// like, makes the element inactive. Not together with STOP. FILEPOS: a position in the file, as `packet_filepos` gave
/// it, to begin at.
///
/// Handlers: `count` (r) packets sent; `reset_counts` (w); `active` (rw); `stop` (w) stops this and the router;
/// `sampling_prob` (r); `encap` (r) the link type, such as ETHER; `filename`, `filesize`, `packet_filepos` (r);
/// `filepos` (rw); `extend_interval` (w) puts off the end; `reset_timing` (w).
class FromDump final : public Element {
 public:
  static constexpr Ports kPorts{"0/1-2"};
  static constexpr Processing kProcessing{"a/ah"};

  FromDump();
  ~FromDump() override;
  Status configure(Args& args) override;
  Status initialize(Errors& errors) override;
  void add_handlers(Handlers& handlers) override;

  bool run_task(Task& task) override;
  int pull(int port, Batch& batch, int max) override;
  Notifier* notifier(NotifierKind kind, bool output, int port) override;

 private:
  enum class Next { kPacket, kNotYet, kNothing, kEnd };
  /// Takes the next packet; kNothing: one that is left out.
  Next next(Packet*& p);
  Next read(Packet*& p);
  bool due(const Packet& p);
  void prepare_times(Timestamp first);
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
  SingleWriter<uint64_t> count_;
  Task task_{this};
  Notifier nonempty_;
  Timer timer_;
};

HEADRACE_ELEMENT(FromDump)

}  // namespace headrace
