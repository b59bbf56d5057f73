#pragma once
#include "elements/standard/RatedUnqueue.hh"

namespace headrace {

/// Pulls packets at a bandwidth and pushes them on.
///
///     BandwidthRatedUnqueue(RATE [, keyword BURST_DURATION, BURST_BYTES])
///
/// Input 0, pull; output 0, push. A token bucket sets the pace; it holds 131072 bytes more than it is told, which must
/// be there before a packet is pulled, so that its length need not be known in advance.
///
/// RATE: a bandwidth, such as 10Mbps.
/// BURST_DURATION: the bucket holds what comes in this time. Default 20 ms.
/// BURST_BYTES: the bucket holds this many bytes. Not together with BURST_DURATION.
///
/// Handlers: `rate`, `active` (rw); `calls` (r) how often it ran, how often in vain, packets moved and fruitless pulls.
class BandwidthRatedUnqueue final : public RatedUnqueue {
 protected:
  uint64_t threshold() const override { return 131072; }
  uint64_t cost(const Packet& p) const override { return p.length(); }
  Args& read_rate(Args& args, uint64_t&, Bandwidth& rate) override { return args.read_mp("RATE", rate); }
  const char* burst_keyword() const override { return "BURST_BYTES"; }
  std::string unparse_rate() const override { return Bandwidth{bucket_.rate()}.unparse(); }
  int most() const override {
    return static_cast<int>(std::clamp<uint64_t>(bucket_.rate() / 15000000, 1, Batch::kCapacity));
  }
};

HEADRACE_ELEMENT(BandwidthRatedUnqueue)

}  // namespace headrace
