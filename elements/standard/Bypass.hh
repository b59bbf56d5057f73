#pragma once
#include <headrace/element.hh>

namespace headrace {

/// Passes packets on, or sends them through a detour that can be switched on while the router runs.
///
///     Bypass([ACTIVE, keyword INLINE])
///
/// One or two inputs and outputs, all push or all pull. Pushed packets leave by output 0, while it is active by output
/// 1; packets that return to input 1 leave by output 0. Pulled, it takes packets from input 0, while it is active from
/// input 1; output 1, which feeds the detour, takes them from input 0.
///
///     source -> b :: Bypass -> sink; b[1] -> Print -> [1]b;
///
/// prints packets after `write b.active true`, whether `source` pushes or is pulled from.
///
/// ACTIVE: default false. Without a second output (pull: input) it makes no difference.
/// INLINE: accepted but ignored. Click's Bypass removes itself from the graph unless this is true; here a batch passes
/// through it with one call.
///
/// Handlers: `active` (rw).
class Bypass final : public Element {
 public:
  static constexpr Ports kPorts{"1-2/1-2"};
  static constexpr Flow kFlow{"xy/[xy]x"};

  Status configure(Args& args) override;
  void add_handlers(Handlers& handlers) override;
  void push(int port, Batch& batch) override;
  int pull(int port, Batch& batch, int max) override;

 private:
  bool active_ = false;
};

HEADRACE_ELEMENT(Bypass)

}  // namespace headrace
