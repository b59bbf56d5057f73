#pragma once
#include <headrace/element.hh>
#include <map>
#include <string>

namespace headrace {

/// Sets how often elements are scheduled relative to others of the same thread.
///
///     ScheduleInfo(ELEMENT SHARE, ...)
///
/// A task with SHARE 2 runs twice as often as one with 1, the default; SHARE is a real number above 0. If ELEMENT is a
/// compound, the shares of all elements in it are multiplied. Inside a compound, ELEMENT is one of its elements; if
/// several ScheduleInfos name the same element, the outermost applies.
///
///     compound :: { i :: InfiniteSource -> output; ScheduleInfo(i 0.5) } -> ...
///     ScheduleInfo(compound 4)      // now i has the share 2
class ScheduleInfo final : public Element {
 public:
  static constexpr Ports kPorts{"0/0"};
  /// Last, so that the tasks of all others exist.
  int configure_phase() const override { return kLastPhase; }
  Status configure(Args& args) override;
  Status initialize(Errors& errors) override;

 private:
  /// The share of an element or compound, by its whole name; 1 if no ScheduleInfo of the router names it.
  double share_of(const std::string& name) const;

  std::map<std::string, double> shares_;  // by whole name
};

HEADRACE_ELEMENT(ScheduleInfo)

}  // namespace headrace
