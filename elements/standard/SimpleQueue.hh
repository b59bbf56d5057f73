#pragma once
#include "elements/standard/Queue.hh"

namespace headrace {

/// A Queue without notification: pushers and pullers must try.
///
///     SimpleQueue([CAPACITY])
///
/// Ports, arguments and handlers are those of Queue.
class SimpleQueue final : public Queue {
 public:
  Notifier* notifier(NotifierKind, bool, int) override { return nullptr; }
};

HEADRACE_ELEMENT(SimpleQueue)

}  // namespace headrace
