#pragma once
#include <headrace/element.hh>

namespace headrace {

/// Sends a copy of each packet pulled through it to its other outputs.
///
///     PullTee([N])
///
/// Input 0 and output 0, pull; the other outputs push.
///
/// N: the number of outputs, which must agree with the connections.
class PullTee final : public Element {
 public:
  static constexpr Ports kPorts{"1/1-"};
  static constexpr Processing kProcessing{"l/lh"};

  Status configure(Args& args) override;
  int pull(int port, Batch& batch, int max) override;
};

HEADRACE_ELEMENT(PullTee)

}  // namespace headrace
