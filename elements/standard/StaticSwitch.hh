#pragma once
#include <headrace/element.hh>

namespace headrace {

/// Sends all packets to one output.
///
///     StaticSwitch(OUTPUT)
///
/// Input 0 and any number of outputs, push. Like Switch, but the output is fixed.
///
/// OUTPUT: a negative number, or one without an output, drops and counts the packets.
class StaticSwitch final : public Element {
 public:
  static constexpr Ports kPorts{"1/-"};
  static constexpr Processing kProcessing{"h/h"};

  Status configure(Args& args) override {
    if (!args.read_mp("OUTPUT", output_).complete()) return Status::failed();
    if (output_ >= noutputs()) output_ = -1;
    return {};
  }
  void push(int, Batch& batch) override {
    if (output_ >= 0)
      output(output_).push(batch);
    else
      drop(batch);
  }

 private:
  int output_ = 0;
};

HEADRACE_ELEMENT(StaticSwitch)

}  // namespace headrace
