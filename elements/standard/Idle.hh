#pragma once
#include <headrace/element.hh>

namespace headrace {

/// Neither sends nor keeps packets: an end for ports that are not used.
///
///     Idle
///
/// Any number of inputs and outputs, push or pull. What is pushed to it is dropped; it never asks for a packet, and
/// tells those who would pull from it that nothing will come.
class Idle final : public Element {
 public:
  static constexpr Ports kPorts{"-/-"};
  static constexpr Flow kFlow{"x/y"};

  Status configure(Args& args) override {
    nothing_.sleep();
    return args.complete();
  }
  void push(int, Batch& batch) override { batch.kill(); }
  Notifier* notifier(NotifierKind kind, bool output, int) override {
    return output && kind == NotifierKind::kNonempty ? &nothing_ : nullptr;
  }

 private:
  Notifier nothing_;
};

HEADRACE_ELEMENT(Idle)

}  // namespace headrace
