#pragma once
#include <headrace/element.hh>

#include "headrace/rate_pacer.hh"

namespace headrace {

/// Limits the rate at which packets can be pulled.
///
///     Shaper(RATE)
///
/// Input 0 and output 0, pull. Output 1 (optional), pull: gives packets only while output 0 is limited.
///
/// RATE: packets per second.
///
/// Handlers: `rate` (rw); `reset` (w) resets the limiter.
class Shaper : public Element {
 public:
  static constexpr Ports kPorts{"1/1-2"};
  static constexpr Processing kProcessing{"l/l"};

  Status configure(Args& args) override;
  bool can_live_reconfigure() const override { return true; }
  void add_handlers(Handlers& handlers) override;
  int pull(int port, Batch& batch, int max) override;

 protected:
  virtual uint64_t cost(const Packet&) const { return 1; }
  virtual Status read_rate(Args& args, uint64_t& rate);
  virtual std::string unparse_rate() const { return std::to_string(pacer_.rate()); }

  RatePacer pacer_;
};

HEADRACE_ELEMENT(Shaper)

}  // namespace headrace
