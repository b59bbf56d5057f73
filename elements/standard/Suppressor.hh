#pragma once
#include <algorithm>
#include <headrace/element.hh>
#include <memory>

namespace headrace {

/// Passes packets from each input to the output of the same number, unless that path is closed.
///
///     Suppressor
///
/// As many outputs as inputs, push or pull. On a closed path pushed packets are dropped, and pulls return nothing.
///
/// Handlers: `active0` ... (rw) whether a path is open; `reset` (w) opens all.
class Suppressor final : public Element {
 public:
  static constexpr Ports kPorts{"-/="};
  static constexpr Flow kFlow{"#/#"};

  Status configure(Args& args) override {
    count_reasons({"suppressed"});
    open_.reset(new bool[static_cast<size_t>(ninputs())]);
    allow_all();
    return args.complete();
  }
  void push(int port, Batch& batch) override {
    if (open_[port])
      output(port).push(batch);
    else
      drop(batch);
  }
  int pull(int port, Batch& batch, int max) override { return open_[port] ? input(port).pull(batch, max) : 0; }
  void add_handlers(Handlers& handlers) override {
    for (int i = 0; i < ninputs(); ++i) handlers.value("active" + std::to_string(i), open_[i]);
    handlers.button("reset", [this] { allow_all(); });
  }
  /// For elements that close and open ways. Workers must be at a quiescent point.
  void set(int port, bool suppressed) { open_[port] = !suppressed; }
  bool suppressed(int port) const { return !open_[port]; }
  void allow_all() { std::fill_n(open_.get(), ninputs(), true); }

 private:
  std::unique_ptr<bool[]> open_;
};

HEADRACE_ELEMENT(Suppressor)

}  // namespace headrace
