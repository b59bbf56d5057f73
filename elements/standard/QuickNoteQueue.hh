#pragma once
#include "elements/standard/Queue.hh"

namespace headrace {

/// A Queue that notifies at once when it becomes empty.
///
///     QuickNoteQueue([CAPACITY])
///
/// Ports, arguments and handlers are those of Queue.
class QuickNoteQueue final : public Queue {
 public:
  QuickNoteQueue() : Queue(0) {}
};

HEADRACE_ELEMENT(QuickNoteQueue)

}  // namespace headrace
