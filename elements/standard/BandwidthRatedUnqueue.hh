#pragma once
#include "elements/standard/RatedUnqueue.hh"

namespace headrace {

/// Pulls packets at a bandwidth and pushes them on.
///
///     BandwidthRatedUnqueue(RATE [, keyword BURST_DURATION, BURST_BYTES])
///
/// Input 0, pull; output 0, push. A token bucket sets the pace; it holds 131072 bytes more than configured, and a
/// packet is pulled only if this many bytes are available, since its length is not known in advance.
///
/// RATE: a bandwidth, such as 10Mbps.
/// BURST_DURATION: the bucket holds the tokens of this time. Default 20 ms.
/// BURST_BYTES: the bucket holds this many bytes. Not together with BURST_DURATION.
///
/// Handlers: `rate`, `active` (rw); `calls` (r) number of runs, runs without work, packets moved and failed pulls.
class BandwidthRatedUnqueue final : public RatedUnqueue {
 protected:
  bool is_bandwidth() const override { return true; }
  uint64_t cost(const Packet& p) const override { return p.length(); }
  std::string unparse_rate() const override { return Bandwidth{bucket_.rate()}.unparse(); }
  int most() const override {
    return static_cast<int>(std::clamp<uint64_t>(bucket_.rate() / 15000000, 1, Batch::kCapacity));
  }
};

HEADRACE_ELEMENT(BandwidthRatedUnqueue)

}  // namespace headrace
