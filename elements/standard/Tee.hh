#pragma once
#include <headrace/element.hh>

namespace headrace {

/// Sends a copy of each packet to every output.
///
///     Tee([N])
///
/// Input 0, push; outputs push, the first gets its copies first, the last the packets themselves.
///
/// N: the number of outputs, which must agree with the connections.
class Tee final : public Element {
 public:
  static constexpr Ports kPorts{"1/1-"};
  static constexpr Processing kProcessing{"h/h"};

  Status configure(Args& args) override;
  void push(int port, Batch& batch) override;
};

HEADRACE_ELEMENT(Tee)

}  // namespace headrace
