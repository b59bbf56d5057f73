#pragma once
#include <headrace/element.hh>
#include <vector>

#include "elements/ip/rewriter_base.hh"

namespace headrace {

/// Rewrites ICMP errors about packets that rewriters have changed, so that they look as if they were about the original
/// packets (RFC 5508, section 4).
///
///     ICMPRewriter(MAPS [, keyword DST_ANNO, REPLY_ANNO])
///
/// Input: IP packets with a network header. An unreachable, time exceeded, parameter problem, source quench or redirect
/// message quotes the packet that it is about. If one of the rewriters in MAPS has rewritten that, the quoted
/// addresses, ports and checksums become those that it had before, and so do the destination of the message, if it was
/// sent to the quoted source, and its source, if that is the quoted destination. ICMP and IP checksums are repaired.
/// Output 0: messages that were rewritten. Output 1 (optional): other ICMP messages; without it they are dropped.
/// Packets that are not ICMP are dropped.
///
/// MAPS: names of rewriters (IPRewriter, UDPRewriter, TCPRewriter, IPAddrRewriter, IPAddrPairRewriter,
/// ICMPPingRewriter), separated by spaces. With `NAME:OFFSET` messages about flows of that rewriter leave by output
/// OFFSET plus the output by which the rewriter sends what comes back. DST_ANNO true: the destination address
/// annotation is set to the new destination. Default true. REPLY_ANNO: as in the rewriters: an annotation of the flow's
/// first packet, set in messages about it.
class ICMPRewriter final : public SimpleElement {
 public:
  static constexpr Ports kPorts{"1/1-"};
  static constexpr Processing kProcessing{"h/h"};

  int configure_phase() const override { return kDefaultPhase + 1; }
  Status configure(Args& args) override;
  Packet* act(Packet* p, Emitter& emit) override;

 private:
  struct Map {
    RewriterBase* rewriter;
    int offset;  // -1: output 0
  };
  enum Reason : int { kOther, kNotIcmp };

  /// Rewrites a message; the output, or -1 if it is about no known flow.
  int rewrite(Packet& p, Ip4Header& ip) const;

  std::vector<Map> maps_;
  bool dst_anno_ = true;
  int reply_anno_ = -1;
};

HEADRACE_ELEMENT(ICMPRewriter)

}  // namespace headrace
