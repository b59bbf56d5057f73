#pragma once
#include <headrace/element.hh>

#include "headrace/single_writer.hh"

namespace headrace {

/// Shows the first and the last timestamp of the packets that pass.
///
///     TimeRange([keyword SIMPLE])
///
/// Packets pass unchanged. Packets without a timestamp are ignored.
///
/// SIMPLE true: timestamps are known to increase, so only the first and the last packet count. Default false.
///
/// Handlers: `first`, `last` (r) timestamps, 0.0 before the first packet; `range` (r) both; `interval` (r) their
/// difference in seconds; `reset` (w).
class TimeRange final : public SimpleElement {
 public:
  static constexpr Ports kPorts{"1/1"};

  Status configure(Args& args) override;
  void add_handlers(Handlers& handlers) override;
  Packet* act(Packet* p, Emitter& emit) override;

 private:
  /// What one thread has seen; 0: nothing.
  struct Seen {
    SingleWriter<int64_t> first = 0, last = 0;
  };
  Timestamp first() const;
  Timestamp last() const;

  bool simple_ = false;
  PerThread<Seen> seen_;
};

HEADRACE_ELEMENT(TimeRange)

}  // namespace headrace
