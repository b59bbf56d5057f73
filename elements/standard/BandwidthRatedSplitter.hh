#pragma once
#include "elements/standard/RatedSplitter.hh"

namespace headrace {

/// Passes packets up to a bandwidth and diverts the rest.
///
///     BandwidthRatedSplitter(RATE [, keyword BURST_DURATION, BURST_BYTES])
///
/// Input 0, push. Output 0, push: packets up to RATE, regardless of the load. Output 1 (optional), push: the others;
/// without it they are dropped and counted. A token bucket shared by all workers decides; it holds 131072 bytes more
/// than configured, and a packet passes only if this many bytes are available.
///
/// RATE: a bandwidth, such as 10Mbps.
/// BURST_DURATION: the bucket holds the tokens of this time. Default 20 ms.
/// BURST_BYTES: the bucket holds this many bytes. Not together with BURST_DURATION.
///
/// Handlers: `rate` (rw).
class BandwidthRatedSplitter final : public RatedSplitter {
 protected:
  bool is_bandwidth() const override { return true; }
};

HEADRACE_ELEMENT(BandwidthRatedSplitter)

}  // namespace headrace
