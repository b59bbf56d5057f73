#include "elements/standard/PullSwitch.hh"

namespace headrace {

Status PullSwitch::initialize(Errors&) {
  relay_.initialize(false);
  for (int i = 0; i < ninputs(); ++i) signals_.push_back(Signal::upstream_nonempty(this, i, &relay_));
  return {};
}

bool PullSwitch::may_give() const {
  const int from = input_.load(std::memory_order_relaxed);
  return from >= 0 && signals_[static_cast<size_t>(from)].active();
}

int PullSwitch::pull(int port, Batch& batch, int max) {
  const int n = SimplePullSwitch::pull(port, batch, max);
  if (n == 0 && !may_give()) {
    ready_.sleep();
    // The input may have been changed, or become nonempty, before we went to sleep.
    if (may_give()) ready_.wake();
  }
  return n;
}

Notifier* PullSwitch::notifier(NotifierKind kind, bool output, int) {
  return output && kind == NotifierKind::kNonempty ? &ready_ : nullptr;
}

}  // namespace headrace
