#pragma once
#include <atomic>
#include <headrace/element.hh>

namespace headrace {

/// Sends all packets to one output, which can be changed while the router runs.
///
///     Switch([OUTPUT])
///
/// OUTPUT is 0 if it is not given. A negative number drops and counts the packets.
///
/// Handlers: `switch` (rw) the output; a number without an output is taken as -1. `config` (rw).
class Switch final : public Element {
 public:
  static constexpr Ports kPorts{"1/-"};
  static constexpr Processing kProcessing{"h/h"};

  Status configure(Args& args) override;
  bool can_live_reconfigure() const override { return true; }
  std::string configuration() const override { return std::to_string(output_.load(std::memory_order_relaxed)); }
  void add_handlers(Handlers& handlers) override;
  void push(int port, Batch& batch) override;

 private:
  std::atomic<int> output_{0};
};

HEADRACE_ELEMENT(Switch)

}  // namespace headrace
