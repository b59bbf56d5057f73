#pragma once
#include <headrace/element.hh>

namespace headrace {

/// Assigns elements to threads.
///
///     StaticThreadSched(ELEMENT THREAD, ...)
///
/// The tasks and timers of ELEMENT run on THREAD, counted from 0. If ELEMENT is a compound, this applies to all
/// elements in it that are not named themselves. THREAD -1 leaves the choice to the router. Unassigned elements run on
/// thread 0. A device port that serves every worker, such as TrafficSource, always does so, even if it is assigned.
class StaticThreadSched final : public Element {
 public:
  static constexpr Ports kPorts{"0/0"};
  Status configure(Args& args) override;
};

HEADRACE_ELEMENT(StaticThreadSched)

}  // namespace headrace
