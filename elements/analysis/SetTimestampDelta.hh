#pragma once
#include <atomic>
#include <headrace/element.hh>

namespace headrace {

/// Replaces timestamps by differences of times.
///
///     SetTimestampDelta([keyword TYPE])
///
/// Packets without a timestamp pass unchanged.
///
/// TYPE: RANGE: the time since the timestamp of the first packet. NOW: the time that has passed since the packet's
/// timestamp. FIRST: its timestamp minus its first timestamp annotation. Default RANGE.
///
/// Handlers: `first` (r) the first packet's timestamp with RANGE; `reset` (w) the next packet is the first.
class SetTimestampDelta final : public SimpleElement {
 public:
  static constexpr Ports kPorts{"1/1"};

  Status configure(Args& args) override;
  void add_handlers(Handlers& handlers) override;
  Packet* act(Packet* p, Emitter& emit) override;
  std::vector<RegionInfo> annotations() const override {
    return type_ == Type::kFirst ? declared(Read{anno::first_timestamp}) : std::vector<RegionInfo>{};
  }

 private:
  enum class Type { kRange, kNow, kFirst };

  Type type_ = Type::kRange;
  std::atomic<int64_t> first_{0};  // nanoseconds; 0: no packet yet
};

HEADRACE_ELEMENT(SetTimestampDelta)

}  // namespace headrace
