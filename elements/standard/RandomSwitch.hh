#pragma once
#include <headrace/element.hh>

#include "headrace/random_numbers.hh"

namespace headrace {

/// Sends each packet to an output chosen at random.
///
///     RandomSwitch
///
/// Input 0 and one or more outputs, push.
class RandomSwitch final : public Element {
 public:
  static constexpr Ports kPorts{"1/1-"};
  static constexpr Processing kProcessing{"h/h"};

  void push(int, Batch& batch) override {
    Next nexts[Batch::kCapacity];
    for (int i = 0; i < batch.size(); ++i)
      nexts[i] = static_cast<Next>(random_.below(static_cast<uint32_t>(noutputs())));
    push_split(batch, nexts);
  }

 private:
  RandomNumbers random_;
};

HEADRACE_ELEMENT(RandomSwitch)

}  // namespace headrace
