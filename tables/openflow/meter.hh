#pragma once
/// \file
/// A meter of an OpenFlow switch (ONF TS-023, section 5.7): token buckets that all workers take from.

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <span>

namespace headrace::openflow {

/// A band of a meter.
struct MeterRate {
  uint64_t rate = 0;  ///< bits, or packets, a second; more than 0
  /// Bits, or packets, that may pass at once above the rate; 0: a tenth of a second's.
  uint64_t burst = 0;
  uint8_t levels = 0;  ///< of dscp_remarked(); 0: the packet is dropped
};

/// Measures packets against bands. Each band has a bucket, whose state is one number: the time at which it would be full
/// again. The rate is exact in the long run; a packet passes a band while its bucket is not empty.
class Meter {
 public:
  static constexpr int kNoBand = -1;

  /// \param by_packets rates are in packets, else in bits
  Meter(std::span<const MeterRate> bands, bool by_packets)
      : by_packets_(by_packets), count_(bands.size()), bands_(new Band[std::max<size_t>(bands.size(), 1)]) {
    for (size_t i = 0; i < count_; ++i) {
      const double rate = static_cast<double>(bands[i].rate);
      const double burst = bands[i].burst != 0 ? static_cast<double>(bands[i].burst) : rate / 10;
      bands_[i].rate = bands[i].rate;
      bands_[i].levels = bands[i].levels;
      bands_[i].ns_a_unit = 1e9 / rate;
      bands_[i].burst_ns = static_cast<int64_t>(std::min(burst / rate * 1e9, 1e18));
    }
  }

  /// Counts a packet in on any thread. Returns the band to apply: of those whose rates are exceeded, the one of the
  /// highest rate; kNoBand: none. A band that is exceeded does not count the packet. \param now in nanoseconds
  int measure(int64_t now, uint32_t bytes) {
    int found = kNoBand;
    for (size_t i = 0; i < count_; ++i)
      if (!bands_[i].take(now, by_packets_ ? 1 : uint64_t{bytes} * 8) &&
          (found == kNoBand || bands_[i].rate > bands_[static_cast<size_t>(found)].rate))
        found = static_cast<int>(i);
    return found;
  }
  /// What a band does to a packet: dscp_remarked() by so many levels; 0: it is dropped.
  uint32_t levels(int band) const { return bands_[static_cast<size_t>(band)].levels; }

 private:
  struct Band {
    uint64_t rate = 0;
    uint8_t levels = 0;
    double ns_a_unit = 0;
    int64_t burst_ns = 0;
    std::atomic<int64_t> full_at{0};

    bool take(int64_t now, uint64_t units) {
      const auto cost = static_cast<int64_t>(static_cast<double>(units) * ns_a_unit);
      int64_t before = full_at.load(std::memory_order_relaxed), after;
      do {
        if (before > now && before - now >= burst_ns) return false;
        after = std::max(before, now) + cost;
      } while (!full_at.compare_exchange_weak(before, after, std::memory_order_relaxed));
      return true;
    }
  };

  bool by_packets_;
  size_t count_;
  std::unique_ptr<Band[]> bands_;
};

/// The DSCP of a packet that a band of type dscp-remark has met: the drop precedence of assured forwarding (RFC 2597) rises
/// by `levels`, to 3 at most; other classes stay.
inline uint32_t dscp_remarked(uint32_t dscp, uint32_t levels) {
  const uint32_t assured_class = dscp >> 3, precedence = dscp >> 1 & 3;
  if ((dscp & 1) != 0 || precedence == 0 || assured_class < 1 || assured_class > 4) return dscp;
  return assured_class << 3 | std::min(precedence + levels, 3u) << 1;
}

}  // namespace headrace::openflow
