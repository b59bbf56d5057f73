#pragma once
#include <atomic>
#include <headrace/element.hh>

namespace headrace {

/// Passes packets whose timestamps are in a range.
///
///     TimeFilter([START, END, keyword START_DELAY, START_AFTER, END_DELAY, END_AFTER, INTERVAL, STOP, END_CALL])
///
/// Output 0: packets from START on and before END. Output 1 (optional): the others; without it they are dropped and
/// counted.
///
/// START, END: timestamps, in seconds since the epoch. Default: no limit.
/// START_AFTER, END_AFTER: the same, as a time after the first packet's timestamp.
/// START_DELAY, END_DELAY: the same, as a time after the router's start.
/// INTERVAL: END, as a time after START.
/// STOP true: stops the router at the first packet that is not before END. Default false.
/// END_CALL: "HANDLER [VALUE]", written to at that packet; `$t` in VALUE stands for its timestamp. When the call moves
/// END beyond the packet, the packet passes.
///
/// Give at most one of START, START_AFTER and START_DELAY, at most one of END, END_AFTER, END_DELAY and INTERVAL, and
/// one of STOP and END_CALL.
///
/// Handlers: `start`, `end` (rw), `interval` (rw; moves END) in seconds; before the first packet, times relative to it
/// are shown as they were given. `extend_interval` (w) moves END by so much. A write that moves END lets END_CALL be
/// called again.
class TimeFilter final : public SimpleElement {
 public:
  static constexpr Ports kPorts{"1/1-2"};
  static constexpr Processing kProcessing{"a/ah"};

  Status configure(Args& args) override;
  Status initialize(Errors& errors) override;
  void add_handlers(Handlers& handlers) override;
  Packet* act(Packet* p, Emitter& emit) override;

 private:
  enum class From : uint8_t { kEpoch, kInitialize, kFirstPacket, kStart };

  void see_first(int64_t time);
  void set_end(int64_t end);
  void call_end(int64_t time, Emitter& emit);

  From start_from_ = From::kEpoch, end_from_ = From::kEpoch;
  std::atomic<int64_t> start_ = 0, end_ = 0;  // nanoseconds
  std::atomic<bool> seen_first_ = false;
  HandlerCall call_;
  std::string call_value_;
  std::atomic<bool> call_armed_ = false;
};

HEADRACE_ELEMENT(TimeFilter)

}  // namespace headrace
