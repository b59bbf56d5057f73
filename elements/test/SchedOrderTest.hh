#pragma once
#include <headrace/element.hh>
#include <vector>

#include "headrace/single_writer.hh"

namespace headrace {

/// Records the order in which tasks run.
///
///     SchedOrderTest(ID [, keyword SIZE, LIMIT, STOP])
///
/// No ports. Its task schedules itself again and again. All SchedOrderTests of a configuration write their ID to one
/// list, so they must run on one thread. ScheduleInfo sets how often each runs.
///
/// ID: an integer.
/// SIZE: how many IDs are kept; the largest of all elements counts. Default 1024.
/// LIMIT: number of runs of the task; 0: no limit. Default 0.
/// STOP true: stops the router when the list is full. Default false.
///
/// Handlers: `order` (r) the IDs in the order in which the tasks ran.
class SchedOrderTest final : public Element {
 public:
  static constexpr Ports kPorts{"0/0"};

  Status configure(Args& args) override;
  Status initialize(Errors& errors) override;
  void add_handlers(Handlers& handlers) override;
  bool run_task(Task& task) override;

 private:
  int32_t id_ = 0;
  uint32_t size_ = 0;
  uint32_t limit_ = 0;
  bool stop_ = false;
  uint32_t runs_ = 0;
  SchedOrderTest* first_ = nullptr;  // of the router; it has the list
  std::vector<int32_t> order_;
  SingleWriter<size_t> used_;
  Task task_{this};
};

HEADRACE_ELEMENT(SchedOrderTest)

}  // namespace headrace
