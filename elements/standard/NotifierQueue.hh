#pragma once
#include "elements/standard/Queue.hh"

namespace headrace {

/// A Queue that notifies pullers, but not pushers.
///
///     NotifierQueue([CAPACITY])
///
/// Ports, arguments and handlers are those of Queue.
class NotifierQueue final : public Queue {
 public:
  Notifier* notifier(NotifierKind kind, bool output, int port) override {
    return kind == NotifierKind::kNonempty ? Queue::notifier(kind, output, port) : nullptr;
  }
};

HEADRACE_ELEMENT(NotifierQueue)

}  // namespace headrace
