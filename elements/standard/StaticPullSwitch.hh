#pragma once
#include <headrace/element.hh>

namespace headrace {

/// Pulls from one of its inputs.
///
///     StaticPullSwitch(INPUT)
///
/// Any number of inputs and one output, pull. Like PullSwitch, but the input is fixed.
///
/// INPUT: a negative number, or one without an input, gives no packets.
class StaticPullSwitch final : public Element {
 public:
  static constexpr Ports kPorts{"-/1"};
  static constexpr Processing kProcessing{"l/l"};

  Status configure(Args& args) override {
    if (!args.read_mp("INPUT", input_).complete()) return Status::failed();
    if (input_ >= ninputs()) input_ = -1;
    nothing_.sleep();
    return {};
  }
  int pull(int, Batch& batch, int max) override { return input_ < 0 ? 0 : input(input_).pull(batch, max); }
  Notifier* notifier(NotifierKind kind, bool output, int) override {
    return output && kind == NotifierKind::kNonempty && input_ < 0 ? &nothing_ : nullptr;
  }

 private:
  int input_ = 0;
  Notifier nothing_;
};

HEADRACE_ELEMENT(StaticPullSwitch)

}  // namespace headrace
