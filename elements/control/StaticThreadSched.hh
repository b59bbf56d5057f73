#pragma once
#include <headrace/element.hh>

namespace headrace {

/// Assigns elements to threads.
///
///     StaticThreadSched(ELEMENT THREAD, ...)
///
/// The tasks and timers of ELEMENT run on THREAD, counted from 0. If ELEMENT is a compound, that holds for all elements
/// in it which are not named themselves. THREAD -1 leaves the choice to the router. Elements that are not assigned run
/// on thread 0, but a device port that serves every worker, such as TrafficSource, does so wherever it is assigned.
class StaticThreadSched final : public Element {
 public:
  static constexpr Ports kPorts{"0/0"};
  Status configure(Args& args) override;
};

HEADRACE_ELEMENT(StaticThreadSched)

}  // namespace headrace
