#pragma once
#include <headrace/element.hh>

namespace headrace {

/// Blocks a thread of the router for a while, to test how the other threads behave meanwhile.
///
///     BlockThread
///
/// Handlers: `block` (w) a time: the writing thread sleeps for that time and processes no packets. In simulated time
/// it does not wait.
class BlockThread final : public Element {
 public:
  static constexpr Ports kPorts{"0/0"};
  void add_handlers(Handlers& handlers) override;
};

HEADRACE_ELEMENT(BlockThread)

}  // namespace headrace
