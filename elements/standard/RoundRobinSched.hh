#pragma once
#include <headrace/element.hh>

namespace headrace {

/// Pulls from its inputs in turn.
///
///     RoundRobinSched
///
/// Any number of inputs and one output, pull. A pull tries the inputs one after the other, starting after the one that
/// gave the last packet, until one returns a packet. Inputs known to be empty are skipped.
class RoundRobinSched final : public Element {
 public:
  static constexpr Ports kPorts{"-/1"};
  static constexpr Processing kProcessing{"l/l"};

  Status initialize(Errors&) override {
    for (int i = 0; i < ninputs(); ++i) signals_.push_back(Signal::upstream_nonempty(this, i, nullptr));
    return {};
  }
  int pull(int, Batch& batch, int max) override {
    int n = 0;
    for (int fruitless = 0; n < max && fruitless < ninputs(); next_ = next_ + 1 < ninputs() ? next_ + 1 : 0) {
      const int got = signals_[next_].active() ? input(next_).pull(batch, 1) : 0;
      n += got;
      fruitless = got ? 0 : fruitless + 1;
    }
    return n;
  }

 private:
  std::vector<Signal> signals_;
  int next_ = 0;
};

HEADRACE_ELEMENT(RoundRobinSched)

}  // namespace headrace
