#pragma once
#include "elements/standard/SimplePullSwitch.hh"

namespace headrace {

/// Pulls from one of its inputs, which can be changed while the router runs.
///
///     PullSwitch([INPUT])
///
/// Any number of inputs and one output, pull. Elements that pull from it sleep while the chosen input is known to be
/// empty.
///
/// INPUT: default 0. A negative number, or one without an input, gives no packets.
///
/// Handlers: `switch` (rw) the input, -1 for none; `config` (rw).
class PullSwitch final : public SimplePullSwitch {
 public:
  Status initialize(Errors& errors) override;
  int pull(int port, Batch& batch, int max) override;
  Notifier* notifier(NotifierKind kind, bool output, int port) override;

 protected:
  void switched() override { ready_.wake(); }

 private:
  /// True if there may be packets on the input now.
  bool may_give() const;

  std::vector<Signal> signals_;
  Notifier ready_;
  /// Runs when an input has packets again.
  Task relay_{this, [this](Task&) {
                if (may_give()) ready_.wake();
                return false;
              }};
};

HEADRACE_ELEMENT(PullSwitch)

}  // namespace headrace
