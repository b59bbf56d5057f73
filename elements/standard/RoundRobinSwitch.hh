#pragma once
#include <headrace/element.hh>

namespace headrace {

/// Sends packets to its outputs in turn.
///
///     RoundRobinSwitch
///
/// Input 0 and one or more outputs, push. Each pushing thread has its own rotation.
class RoundRobinSwitch final : public Element {
 public:
  static constexpr Ports kPorts{"1/1-"};
  static constexpr Processing kProcessing{"h/h"};

  void push(int, Batch& batch) override {
    Next nexts[Batch::kCapacity];
    int& next = next_.local();
    for (int i = 0; i < batch.size(); ++i) {
      nexts[i] = static_cast<Next>(next);
      next = next + 1 < noutputs() ? next + 1 : 0;
    }
    push_split(batch, nexts);
  }

 private:
  PerThread<int> next_;
};

HEADRACE_ELEMENT(RoundRobinSwitch)

}  // namespace headrace
