#pragma once
#include <headrace/element.hh>

namespace headrace {

/// Sets the timestamp annotation.
///
///     SetTimestamp([TIMESTAMP, keyword FIRST])
///
/// TIMESTAMP: seconds since 1970. Default: the time when the packet's batch arrives here.
/// FIRST true: sets the first timestamp annotation instead. Default false.
class SetTimestamp final : public Element {
 public:
  static constexpr Ports kPorts{"1/1"};

  Status configure(Args& args) override;
  std::vector<RegionInfo> annotations() const override {
    if (!first_) return {};
    return declared(Write{anno::first_timestamp});
  }
  void push(int port, Batch& batch) override;
  int pull(int port, Batch& batch, int max) override;

 private:
  void set(Packet** begin, Packet** end) const;

  std::optional<Timestamp> time_;
  bool first_ = false;
};

HEADRACE_ELEMENT(SetTimestamp)

}  // namespace headrace
