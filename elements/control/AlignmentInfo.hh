#pragma once
#include <headrace/element.hh>

namespace headrace {

/// Declares how packets are aligned in memory; it has no effect.
///
///     AlignmentInfo(ELEMENT [MODULUS OFFSET ...], ...)
///
/// Click's tool click-align writes this element into configurations, for processors that require aligned access.
/// Headrace's elements read words at any address.
///
/// ELEMENT: an element of the configuration. Each MODULUS and OFFSET describe one of its inputs.
class AlignmentInfo final : public Element {
 public:
  static constexpr Ports kPorts{"0/0"};
  Status configure(Args& args) override;
};

HEADRACE_ELEMENT(AlignmentInfo)

}  // namespace headrace
