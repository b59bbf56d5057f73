#pragma once
#include <atomic>

#include "elements/ip/rewriter_base.hh"

namespace headrace {

/// Spreads the new flows of a rewriter over several patterns, as a load balancer does.
///
///     RoundRobinIPMapper(PATTERN FOUTPUT ROUTPUT, ...)
///
/// Name it in an input spec of an IPRewriter or a similar element. Each new flow gets the next pattern; if that has no
/// free port or address, the one after it. Patterns are written as in IPRewriter, without the word `pattern`; a name
/// from IPRewriterPatterns is also a pattern.
class RoundRobinIPMapper final : public Element, public IpMapper {
 public:
  static constexpr Ports kPorts{"0/0"};

  int configure_phase() const override { return kDefaultPhase - 1; }
  Status configure(Args& args) override;
  Status check_user(const RewriterBase& user, Errors& errors) const override;
  bool map(const NewFlow& flow, Rewriting& rewriting) override;

 private:
  std::vector<PatternSpec> patterns_;
  std::atomic<size_t> next_{0};
};

HEADRACE_ELEMENT(RoundRobinIPMapper)

}  // namespace headrace
