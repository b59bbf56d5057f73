#pragma once
#include <headrace/element.hh>

namespace headrace {

/// Pulls from the first input that has a packet.
///
///     PrioSched
///
/// Any number of inputs and one output, pull. Input 0 comes first, always. Inputs known to be empty are skipped.
class PrioSched final : public Element {
 public:
  static constexpr Ports kPorts{"-/1"};
  static constexpr Processing kProcessing{"l/l"};

  Status initialize(Errors&) override {
    for (int i = 0; i < ninputs(); ++i) signals_.push_back(Signal::upstream_nonempty(this, i, nullptr));
    return {};
  }
  int pull(int, Batch& batch, int max) override {
    int n = 0;
    for (int i = 0; i < ninputs() && n < max; ++i)
      if (signals_[i].active()) n += input(i).pull(batch, max - n);
    return n;
  }

 private:
  std::vector<Signal> signals_;
};

HEADRACE_ELEMENT(PrioSched)

}  // namespace headrace
