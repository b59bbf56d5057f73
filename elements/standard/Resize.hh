#pragma once
#include <headrace/element.hh>

namespace headrace {

/// Adds bytes to packets, or removes some, at either end.
///
///     Resize([HEAD, TAIL])
///
/// Added bytes have arbitrary values. A packet shorter than the number of bytes to remove becomes empty. A packet whose
/// buffer has no room is dropped and counted.
///
/// HEAD: bytes added in front; negative: removed. Default 0.
/// TAIL: bytes added at the end; negative: removed. Default 0.
///
/// Handlers: `head`, `tail` (rw); `config` (rw).
class Resize final : public SimpleElement {
 public:
  static constexpr Ports kPorts{"1/1"};

  Status configure(Args& args) override;
  bool can_live_reconfigure() const override { return true; }
  std::string configuration() const override { return fmt::format("{}, {}", head_, tail_); }
  void add_handlers(Handlers& handlers) override;
  Packet* act(Packet* p, Emitter& emit) override;

 private:
  int32_t head_ = 0, tail_ = 0;
};

HEADRACE_ELEMENT(Resize)

}  // namespace headrace
