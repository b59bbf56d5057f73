#pragma once
#include <headrace/device_port.hh>
#include <headrace/element.hh>

namespace headrace {

/// Drops every packet. The closing table of `headrace run` lists these packets as discarded, not as drops.
///
///     Discard([keyword ACTIVE, BURST])
///
/// Input 0, push or pull. A pull input is polled whenever packets are available.
///
/// ACTIVE false: does not pull. Default true; only for pull.
/// BURST: packets pulled in a row; 0: no limit. Default 1; only for pull.
///
/// Handlers: `count` (r) packets dropped; `reset_counts` (w); `active` (rw, only for pull).
class Discard final : public Element, public PacketSink {
 public:
  static constexpr Ports kPorts{"1/0"};

  Status configure(Args& args) override;
  Status initialize(Errors& errors) override;
  void add_handlers(Handlers& handlers) override;

  void push(int port, Batch& batch) override;
  bool run_task(Task& task) override;

 private:
  uint32_t burst_ = 1;
  bool active_ = true;
  Task task_{this};
  Signal signal_;
};

HEADRACE_ELEMENT(Discard)

}  // namespace headrace
