#pragma once
#include <headrace/device_port.hh>
#include <headrace/element.hh>
#include <optional>
#include <random>
#include <vector>

#include "elements/analysis/summary_field.hh"
#include "src/io/input_file.hh"

namespace headrace {

/// Creates packets from the lines of an IP summary dump, a text file as written by ToIPSummaryDump.
///
///     FromIPSummaryDump(FILENAME [, keyword STOP, TIMING, ACTIVE, ZERO, CHECKSUM, PROTO, MULTIPACKET, SAMPLE, FIELDS,
///                       FLOWID, ALLOW_NONEXISTENT, DATA])
///
/// Output 0, push or pull: IP packets, one per line. A line `!data FIELD...` defines the contents of the following
/// lines; the fields are those of ToIPSummaryDump. Lines that begin with `#` and other lines that begin with `!` are
/// not packets. Fields that a line does not give are zero, except the IP version and header length, the TTL (100) and
/// the protocol. The packet has the bytes for which fields were given; if it should be longer, the extra-length
/// annotation holds the difference.
///
/// FILENAME: the dump, plain, .gz, .xz, .bz2 or .zst; "-" is standard input.
/// STOP true: stops the router at the end. Default false.
/// TIMING true: preserves the time intervals between packets. Default false.
/// ACTIVE false: sends nothing. Default true.
/// ZERO false: bytes not set by a field need not be zero. Default true.
/// CHECKSUM true: IP, TCP, UDP and ICMP checksums are right, and packets have all their bytes. Default false.
/// PROTO: the IP protocol of packets without a protocol field. Default 6 (TCP).
/// MULTIPACKET true: a line with a packet count creates that many packets. Default false.
/// SAMPLE: the probability that a packet is sent. Default 1.
/// FIELDS: the fields of lines before the first `!data`.
/// FLOWID: "SRC SPORT DST DPORT [PROTO]", for packets without these fields; like a line `!flowid`.
/// ALLOW_NONEXISTENT true: a missing or empty file counts as a file without packets. Default false.
/// DATA: text to read instead of a file.
///
/// Handlers: `active` (rw); `stop` (w) stops this and the router; `sampling_prob`, `encap` (r) "IP"; `filename`,
/// `filesize` (r), `filepos` (rw).
class FromIPSummaryDump final : public Element, public OneWayPort {
 public:
  static constexpr Ports kPorts{"0/1"};

  FromIPSummaryDump();
  ~FromIPSummaryDump() override;
  Status configure(Args& args) override;
  std::vector<RegionInfo> annotations() const override {
    return declared(Write{anno::extra_length}, Write{anno::dst_ip});
  }
  Status initialize(Errors& errors) override;
  void add_handlers(Handlers& handlers) override;

  bool run_task(Task& task) override;
  int pull(int port, Batch& batch, int max) override;
  Notifier* notifier(NotifierKind kind, bool output, int port) override;

 private:
  /// There was no buffer for a packet.
  void not_made() {
    moved_.add(1, 0);
    count_drops(1);
  }
  /// The next packet that is due and was chosen, or null; at_end() then tells whether there will be none.
  Packet* next();
  /// The packet of the next line that is one.
  Packet* read_packet();
  /// The next line or record that is a packet, without those that are not.
  bool read_record(std::string& record, bool& binary);
  bool read_binary_record(std::string& record, bool& binary);
  void read_directive(const std::string& line);
  bool due(Packet* p);
  Packet* split(Packet* p);
  bool at_end() const { return !file_.is_open() && !held_; }
  void end();

  void set_fields(std::string_view words);
  void set_flow(std::string_view words, const char* what);
  void set_protocol(std::string_view word, const char* what);
  void build_from_text(std::string_view line, summary::Builder& builder, int& fields);
  void build_from_binary(std::string_view record, summary::Builder& builder, int& fields);
  Status check_banner(Errors& errors);

  std::string filename_;
  std::string data_;
  bool stop_ = false;
  bool active_ = true;
  bool checksum_ = false;
  bool timing_ = false;
  bool multipacket_ = false;
  bool may_miss_ = false;
  double sample_ = 1;

  io::InputFile file_;
  Errors complaints_{Errors::Output::kStderr};
  bool complained_ = false;
  bool binary_ = false;
  int minor_version_ = summary::kMinorVersion;
  std::optional<std::string> first_line_;
  std::vector<const summary::Field*> fields_;
  std::vector<int> order_;  // in which they are put into a packet
  uint8_t protocol_ = summary::kTcp;
  std::optional<summary::FlowId> flow_;
  std::minstd_rand random_;

  Packet* held_ = nullptr;
  std::optional<Timestamp> timing_offset_;
  uint32_t split_length_ = 0;
  Timestamp split_step_, split_last_;
  bool splitting_ = false;

  Task task_{this};
  Notifier nonempty_;
  Timer timer_;
};

HEADRACE_ELEMENT(FromIPSummaryDump)

}  // namespace headrace
