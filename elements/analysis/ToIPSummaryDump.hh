#pragma once
#include <headrace/element.hh>
#include <headrace/touches_machine.hh>
#include <vector>

#include "elements/analysis/summary_field.hh"
#include "tables/files/log_file.hh"

namespace headrace {

/// Writes one line per packet to a file.
///
///     ToIPSummaryDump(FILENAME [, keyword FIELDS, HEADER, VERBOSE, BANNER, BINARY, MULTIPACKET, BAD_PACKETS,
///                     CAREFUL_TRUNC, EXTRA_LENGTH])
///
/// Input 0, push or pull; output 0 (optional), push: the packets, unchanged. Any number of threads may push.
///
/// FILENAME: the dump; "-" is standard output.
/// FIELDS: the fields of a line, separated by spaces; "-" if a packet does not have the field. Default
/// "timestamp ip_src".
///   timestamp ts_sec ts_usec ts_usec1 first_timestamp ntimestamp (nanoseconds in binary dumps),
///   ip_src ip_dst ip_proto (T, U, I or a number) ip_len ip_hl ip_id ip_tos ip_dscp ip_ecn (no, ect1, ect2, ce) ip_ttl
///   ip_sum ip_frag (F first, f later fragment, ! DF, .) ip_fragoff (bytes, + MF, ! DF) ip_opt ip_capture_len,
///   sport dport, tcp_seq tcp_ack tcp_off tcp_flags (of FSRPAUECN, or .) tcp_window tcp_urp tcp_opt tcp_ntopt (without
///   timestamps) tcp_sack, udp_len, icmp_type icmp_code icmp_type_name icmp_code_name icmp_flowid icmp_seq
///   icmp_nextmtu, payload payload_len payload_md5 payload_md5_hex, count link direction (> and <) aggregate, eth_src
///   eth_dst eth_type wire_len. "X" is short for "ip_X".
/// HEADER false: no lines that begin with `!`. Default true.
/// VERBOSE true: the header also names the host and the time. Default false.
/// BANNER: the creator named in the header.
/// BINARY true: records instead of lines. Default false.
/// MULTIPACKET true: a packet that represents several packets gets one line for each. Default false.
/// BAD_PACKETS true: a line `!bad` precedes the line of a packet with a bad header. Default false.
/// CAREFUL_TRUNC false: a packet with less data than its IP length is not bad. Default true.
/// EXTRA_LENGTH false: ignores the extra-length annotation. Default true.
///
/// Handlers: `flush` (w) writes buffered data; `lost` (r) packets whose lines are not in the file, because the disk was
/// full or the reader of a pipe went away.
class ToIPSummaryDump final : public Element, public TouchesMachine {
 public:
  static constexpr Ports kPorts{"1/0-1"};
  static constexpr Processing kProcessing{"a/h"};

  Status configure(Args& args) override;
  std::vector<RegionInfo> annotations() const override;
  Status initialize(Errors& errors) override;
  void add_handlers(Handlers& handlers) override;

  void push(int port, Batch& batch) override;
  bool run_task(Task& task) override;

  /// Adds a comment line.
  void add_note(std::string_view text);

 private:
  std::string header() const;
  void append(Packet* p, std::string& out) const;
  void append_one(const Packet& p, std::string& out) const;
  void append_line(std::string_view line, std::string& out) const;

  std::string filename_;
  std::string banner_;
  bool header_ = true;
  bool verbose_ = false;
  bool binary_ = false;
  bool multipacket_ = false;
  bool bad_packets_ = false;
  bool careful_truncation_ = true;
  bool extra_length_ = true;
  std::vector<const summary::Field*> fields_;

  LogFile file_;
  Task task_{this};
  Signal signal_;
};

HEADRACE_ELEMENT(ToIPSummaryDump)

}  // namespace headrace
