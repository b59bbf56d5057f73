#pragma once
#include <headrace/element.hh>

namespace headrace {

/// Drops every packet.
///
///     Discard([keyword ACTIVE, BURST])
///
/// Input 0, push or pull. On a pull input it takes packets whenever there are some.
///
/// ACTIVE false: does not pull. Default true; only for pull.
/// BURST: packets pulled in a row; 0: no limit. Default 1; only for pull.
///
/// Handlers: `count` (r) packets dropped; `reset_counts` (w); `active` (rw, only for pull).
class Discard final : public Element {
 public:
  static constexpr Ports kPorts{"1/0"};

  Status configure(Args& args) override;
  Status initialize(Errors& errors) override;
  void add_handlers(Handlers& handlers) override;

  void push(int port, Batch& batch) override;
  bool run_task(Task& task) override;

 private:
  ThreadCounters count_{1};
  uint32_t burst_ = 1;
  bool active_ = true;
  Task task_{this};
  Signal signal_;
};

HEADRACE_ELEMENT(Discard)

}  // namespace headrace
