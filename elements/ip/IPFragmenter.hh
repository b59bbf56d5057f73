#pragma once
#include <headrace/shader.hh>

namespace headrace {

struct IPFragmenterOwner;

/// Splits IP packets that are too large for a link into fragments (RFC 791, 3.2).
///
///     IPFragmenter(MTU [, HONOR_DF, VERBOSE, keyword HEADROOM])
///
/// Input: IP packets with a network header. Output 0: packets of at most MTU bytes from the network header on,
/// unchanged, and the fragments of the others, in order. All annotations are copied to each fragment; only the first
/// has the bytes before the network header. Options without the copy bit are in the first fragment only. Output 1
/// (optional): packets that must not be fragmented, or cannot be because MTU leaves no room for data, unchanged, for
/// ICMPError(..., unreachable, needfrag); without it they are dropped and counted. So are packets with inconsistent
/// length fields.
///
/// MTU: at least 8.
/// HONOR_DF false: fragments also packets whose Don't Fragment bit is set; they get a new identification, because their
/// own need not be unique. Default true.
/// VERBOSE true: reports on standard error each packet that leaves by output 1, not only the first 5. Default false.
/// HEADROOM: bytes kept free in front of each fragment. Default 128.
///
/// Handlers: `drops` (r) packets for output 1; `fragments` (r) fragments made.
struct IPFragmenter : Shader<IPFragmenter> {
  using Owner = IPFragmenterOwner;
  static constexpr Ports kPorts{"1/1-2"};
  static constexpr Processing kProcessing{"h/h"};
  static constexpr auto kRegions = regions(Read{meta::length});
  enum { kMustNot, kBadHeader, kNoBuffer, kFragments };
  static constexpr auto kCounters = counters(reason("must not be fragmented"), reason("bad IP header"),
                                             reason("no buffer"), headrace::counter("fragments"));

  uint32_t mtu = 0;
  uint32_t headroom = 0;
  bool honor_df = true;

  Status configure(Args& args, IPFragmenterOwner& owner);
  void add_handlers(Handlers& handlers, IPFragmenterOwner& owner, ShaderElementBase& element);
  Next escape(Packet*& p, Emitter& emit, IPFragmenterOwner& owner) const;

  HEADRACE_SHADER Next shade(auto& p) const {
    const int length = p.length_from(Anchor::kNetwork);
    return length >= 0 && static_cast<uint32_t>(length) <= mtu ? 0 : kEscape;
  }
};

}  // namespace headrace
