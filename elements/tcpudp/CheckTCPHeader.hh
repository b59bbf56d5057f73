#pragma once
#include <headrace/shader.hh>

#include "elements/tcpudp/pseudo_header.hh"

namespace headrace {

struct HeaderCheckOwner;

/// Checks TCP headers.
///
///     CheckTCPHeader([keyword VERBOSE, DETAILS])
///
/// Input: IP packets with a network header. Output 0: TCP packets whose length and checksum are right. Output 1
/// (optional): the others, unchanged; without it they are dropped. They are counted by reason, and the first one is
/// reported on standard error.
///
/// VERBOSE true: reports every bad packet. Default false.
/// DETAILS true: adds the handler drop_details. Default false.
///
/// Handlers: `drops` (r) bad packets; `drop_details` (r) bad packets by reason, one per line.
struct CheckTCPHeader : Shader<CheckTCPHeader> {
  using Owner = HeaderCheckOwner;
  static constexpr Ports kPorts{"1/1-2"};
  static constexpr bool kChecksHeaders = true;
  static constexpr auto kRegions =
      regions(Read{ip4::whole_header}, Read{Span<Anchor::kNetwork, 0, 65535>{}}, Read{meta::length});
  enum Problem { kOtherProtocol, kLength, kChecksum, kProblems, kNone = kProblems };
  static constexpr auto kCounters =
      counters(reason("not TCP"), reason("bad packet length"), reason("bad TCP checksum"));

  bool tells = true;  // a bad packet goes to the host body, which may report it

  Status configure(Args& args, HeaderCheckOwner& owner);
  void add_handlers(Handlers& handlers, HeaderCheckOwner& owner, ShaderElementBase& element);
  void refresh(const HeaderCheckOwner& owner);
  Next escape(Packet*& p, Emitter& emit, HeaderCheckOwner& owner) const;

  HEADRACE_SHADER Next shade(auto& p) const {
    const Problem problem = check(p);
    if (problem == kNone) [[likely]]
      return 0;
    p.count(problem);
    return tells ? kEscape : 1;
  }

 private:
  HEADRACE_SHADER Problem check(auto& p) const {
    const Segment segment = find_segment(p);
    if (segment.header_length == 0 || p.load8(Anchor::kNetwork, 9) != 6) return kOtherProtocol;
    const int length = p.load16(Anchor::kNetwork, 2) - segment.header_length;
    if (length < 20 || length > segment.length) return kLength;
    const int header = p.load8(Anchor::kNetwork, segment.header_length + 12) >> 4 << 2;
    if (header < 20 || header > length) return kLength;
    const uint64_t sum = pseudo_header_sum(p, segment.header_length, length) +
                         checksum_sum(p, Anchor::kNetwork, segment.header_length, length);
    return checksum_of_sum(sum) == 0 ? kNone : kChecksum;
  }
};

}  // namespace headrace
