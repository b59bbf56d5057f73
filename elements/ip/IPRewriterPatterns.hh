#pragma once
#include <headrace/element.hh>
#include <map>

#include "elements/ip/rewriter_pattern.hh"

namespace headrace {

/// Defines named patterns for the input specs of IPRewriter and similar elements.
///
///     IPRewriterPatterns(NAME SADDR SPORT DADDR DPORT, ...)
///
/// A name is known in the compound element that this element is part of, and in those within it. Rewriters that use the
/// same name share the pattern: a port assigned in turn by one is not reused at once by another. See IPRewriter for
/// patterns.
class IPRewriterPatterns final : public Element {
 public:
  static constexpr Ports kPorts{"0/0"};

  int configure_phase() const override { return kInfoPhase; }
  Status configure(Args& args) override;

  /// The pattern called `name` as seen from `user`, or null.
  static std::shared_ptr<RewriterPattern> find(std::string_view name, const Element& user);

 private:
  std::map<std::string, std::shared_ptr<RewriterPattern>, std::less<>> patterns_;
};

HEADRACE_ELEMENT(IPRewriterPatterns)

}  // namespace headrace
