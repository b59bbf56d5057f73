#pragma once
#include "elements/standard/Queue.hh"

namespace headrace {

/// A Queue that, when full, drops the oldest packet to store the newest.
///
///     FrontDropQueue([CAPACITY])
///
/// Ports, arguments and handlers are those of Queue; output 1 gets the old packets. Pushers are not notified, since
/// there is always space.
class FrontDropQueue final : public Queue {
 public:
  void push(int port, Batch& batch) override;
  Notifier* notifier(NotifierKind kind, bool output, int port) override {
    return kind == NotifierKind::kNonempty ? Queue::notifier(kind, output, port) : nullptr;
  }
};

HEADRACE_ELEMENT(FrontDropQueue)

}  // namespace headrace
