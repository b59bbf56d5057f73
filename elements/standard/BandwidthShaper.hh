#pragma once
#include "elements/standard/Shaper.hh"

namespace headrace {

/// Limits the bandwidth at which packets can be pulled.
///
///     BandwidthShaper(RATE)
///
/// Input 0 and output 0, pull.
///
/// RATE: a bandwidth, such as 10Mbps.
///
/// Handlers: `rate` (rw); `reset` (w) resets the limiter.
class BandwidthShaper final : public Shaper {
 public:
  static constexpr Ports kPorts{"1/1"};

 protected:
  uint64_t cost(const Packet& p) const override { return p.length(); }
  Status read_rate(Args& args, uint64_t& rate) override {
    Bandwidth bandwidth;
    const Status status = args.read_mp("RATE", bandwidth).complete();
    rate = bandwidth.bytes_per_second;
    return status;
  }
  std::string unparse_rate() const override { return Bandwidth{pacer_.rate()}.unparse(); }
};

HEADRACE_ELEMENT(BandwidthShaper)

}  // namespace headrace
