#pragma once
#include <headrace/element.hh>

#include "tables/files/log_file.hh"

namespace headrace {

/// Prints a line for each IP packet, in the style of tcpdump, and passes the packet on.
///
///     IPPrint([LABEL, keyword CONTENTS, PAYLOAD, MAXLENGTH, ID, TTL, TOS, LENGTH, TIMESTAMP, AGGREGATE, PAINT, SWAP,
///             OUTFILE, ACTIVE])
///
/// Packets without a network header pass without output.
///
/// LABEL: printed at the start of each line. Default: none.
/// CONTENTS: the bytes to show below the line: NONE, HEX or ASCII. Default NONE.
/// PAYLOAD: the same for the bytes behind the headers. Not together with CONTENTS.
/// MAXLENGTH: maximum number of bytes shown; negative: all. Default 1500.
/// ID, TTL, TOS, LENGTH true: show this field of the IP header. Default false.
/// TIMESTAMP false: do not show the packet's time. Default true.
/// AGGREGATE, PAINT true: show this annotation. Default false.
/// SWAP false: ICMP identifiers and sequence numbers are little-endian. Default true.
/// OUTFILE: a file to print to. Default: standard error.
/// ACTIVE false: prints nothing. Default true.
///
/// Handlers: `active` (rw); `lost` (r) lines that OUTFILE does not hold, because the disk was full.
class IPPrint final : public SimpleElement {
 public:
  static constexpr Ports kPorts{"1/1"};

  Status configure(Args& args) override;
  std::vector<RegionInfo> annotations() const override;
  Status initialize(Errors& errors) override;
  void add_handlers(Handlers& handlers) override;
  Packet* act(Packet* p, Emitter& emit) override;

 private:
  enum class Contents : uint8_t { kNone, kHex, kAscii };
  static bool parse_contents(const std::string& word, Contents& contents);

  std::string describe(const Packet& p) const;
  void append_packet(const Packet& p, std::string& line) const;
  void append_icmp(const Packet& p, int length, std::string& line) const;
  void append_contents(const Packet& p, std::string& line) const;

  std::string label_;
  Contents contents_ = Contents::kNone;
  bool payload_only_ = false;
  int max_length_ = 1500;
  bool id_ = false;
  bool ttl_ = false;
  bool tos_ = false;
  bool length_ = false;
  bool timestamp_ = true;
  bool aggregate_ = false;
  bool paint_ = false;
  bool swap_ = true;
  bool active_ = true;
  std::string file_name_;
  LogFile file_;
};

HEADRACE_ELEMENT(IPPrint)

}  // namespace headrace
