#pragma once
#include <atomic>
#include <headrace/element.hh>

namespace headrace {

/// Pulls from one of its inputs, which can be changed while the router runs.
///
///     SimplePullSwitch([INPUT])
///
/// Any number of inputs and one output, pull. Elements that pull from it sleep only while all inputs are known to be
/// empty.
///
/// INPUT: default 0. A negative number, or one without an input, gives no packets.
///
/// Handlers: `switch` (rw) the input, -1 for none; `config` (rw).
class SimplePullSwitch : public Element {
 public:
  static constexpr Ports kPorts{"-/1"};
  static constexpr Processing kProcessing{"l/l"};

  Status configure(Args& args) override;
  bool can_live_reconfigure() const override { return true; }
  std::string configuration() const override { return std::to_string(input_.load(std::memory_order_relaxed)); }
  void add_handlers(Handlers& handlers) override;
  int pull(int port, Batch& batch, int max) override;

 protected:
  /// The input that packets come from has changed.
  virtual void switched() {}

  std::atomic<int> input_{0};

 private:
  void set_input(int input);
};

HEADRACE_ELEMENT(SimplePullSwitch)

}  // namespace headrace
