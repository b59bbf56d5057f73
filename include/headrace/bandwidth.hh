#pragma once
/// \file
/// Bandwidth, as arguments and handlers write it.

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>

namespace headrace {

/// A bandwidth in bytes per second.
struct Bandwidth {
  uint64_t bytes_per_second = 0;

  constexpr double bits_per_second() const { return static_cast<double>(bytes_per_second) * 8; }
  /// "1.5Gbps", "80Mbps", "0.8kbps": the decimal prefix that fits, without trailing zeros.
  std::string unparse() const;

  constexpr auto operator<=>(const Bandwidth&) const = default;
};

enum class BandwidthStatus { kOk, kInvalid, kOutOfRange };

/// Reads a real number with a unit: `bps`, `b/s` and `baud` count bits, `Bps` and `B/s` bytes. The prefixes are `k` or
/// `K`, `M`, `G`, `T` (powers of 1000) and `Ki`, `Mi`, `Gi`, `Ti` (powers of 1024). Without a unit, with or without a
/// prefix, the number counts bytes per second. The result is rounded to whole bytes. `out` changes only if the status
/// is kOk.
BandwidthStatus parse(std::string_view text, Bandwidth& out);

}  // namespace headrace
