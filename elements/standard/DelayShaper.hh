#pragma once
#include <headrace/element.hh>

namespace headrace {

/// Delays packets that are pulled through it.
///
///     DelayShaper(DELAY)
///
/// Input 0 and output 0, pull. A packet can be pulled no earlier than DELAY after its timestamp, and then gets the
/// present time as its timestamp. A packet without a timestamp, or with one below one second (as in captures that count
/// from 0), is delayed from its arrival here. The element holds one packet at a time, and wakes the elements that pull
/// from it when a packet may leave.
///
/// DELAY: a time.
///
/// Handlers: `delay` (rw).
class DelayShaper final : public Element {
 public:
  static constexpr Ports kPorts{"1/1"};
  static constexpr Processing kProcessing{"l/l"};

  ~DelayShaper() override;
  Status configure(Args& args) override { return args.read_mp("DELAY", delay_).complete(); }
  Status initialize(Errors& errors) override;
  void add_handlers(Handlers& handlers) override;
  int pull(int port, Batch& batch, int max) override;
  Notifier* notifier(NotifierKind kind, bool output, int port) override;

  uint64_t held_packets() const override { return held_ ? 1 : 0; }

 private:
  /// The packet that may leave now, or null.
  Packet* next();

  Interval delay_;
  Packet* held_ = nullptr;
  Notifier ready_;
  Signal upstream_;
  /// Runs when those in front of us have packets again, to pass that on.
  Task relay_{this, [this](Task&) {
                ready_.wake();
                return false;
              }};
  Timer timer_{this, [this](Timer&) { ready_.wake(); }};
};

HEADRACE_ELEMENT(DelayShaper)

}  // namespace headrace
