#pragma once
#include <headrace/element.hh>

namespace headrace {

/// Adds a time to timestamps.
///
///     AdjustTimestamp([TIME, keyword FIRST, ALL])
///
/// TIME: seconds, may be negative. Default 0.
/// FIRST true: changes the first timestamp annotation instead of the timestamp. Default false.
/// ALL true: also adjusts packets without a timestamp, that is, with a timestamp of zero. Default false.
///
/// Handlers: `time` (rw).
class AdjustTimestamp final : public SimpleElement {
 public:
  static constexpr Ports kPorts{"1/1"};

  Status configure(Args& args) override;
  void add_handlers(Handlers& handlers) override;
  Packet* act(Packet* p, Emitter& emit) override;
  std::vector<RegionInfo> annotations() const override {
    return first_ ? declared(ReadWrite{anno::first_timestamp}) : std::vector<RegionInfo>{};
  }

 private:
  Timestamp by_;
  bool first_ = false;
  bool all_ = false;
};

HEADRACE_ELEMENT(AdjustTimestamp)

}  // namespace headrace
