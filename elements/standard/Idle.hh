#pragma once
#include <headrace/device_port.hh>
#include <headrace/element.hh>

namespace headrace {

/// Neither sends nor stores packets: terminates unused ports.
///
///     Idle
///
/// Any number of inputs and outputs, push or pull. What is pushed to it is dropped; it never pulls a packet, and
/// signals elements that would pull from it that it stays empty.
class Idle final : public Element, public PacketSink {
 public:
  static constexpr Ports kPorts{"-/-"};
  static constexpr Flow kFlow{"x/y"};

  Status configure(Args& args) override {
    nothing_.sleep();
    return args.complete();
  }
  void push(int, Batch& batch) override {
    discarded_.add(0, batch.size());
    batch.kill();
  }
  Notifier* notifier(NotifierKind kind, bool output, int) override {
    return output && kind == NotifierKind::kNonempty ? &nothing_ : nullptr;
  }

 private:
  Notifier nothing_;
};

HEADRACE_ELEMENT(Idle)

}  // namespace headrace
