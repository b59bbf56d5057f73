#pragma once
#include <algorithm>
#include <cstdint>

#include "headrace/args.hh"

namespace headrace {

/// The arguments RATE, BURST_DURATION and BURST_SIZE (BURST_BYTES where RATE is a bandwidth) of elements that have a
/// token bucket.
struct BucketArgs {
  /// Tokens that must be there before a packet passes at a bandwidth, so that its length need not be known in advance.
  static constexpr uint64_t kBandwidthThreshold = 131072;

  uint64_t rate = 0;
  uint64_t capacity = 1;

  Status read(Args& args, bool is_bandwidth) {
    const char* const burst_keyword = is_bandwidth ? "BURST_BYTES" : "BURST_SIZE";
    uint64_t packets = 0, tokens = 0;
    Bandwidth bandwidth;
    Interval duration = Interval::from_ms(20);
    bool duration_given = false, tokens_given = false;
    if (is_bandwidth)
      args.read_mp("RATE", bandwidth);
    else
      args.read_mp("RATE", packets, Between{0, UINT32_MAX});
    args.read_status("BURST_DURATION", duration, duration_given);
    args.read_status(burst_keyword, tokens, Between{0, UINT32_MAX}, tokens_given);
    if (!args.complete()) return Status::failed();
    if (duration_given && tokens_given)
      return args.errors().error("cannot specify both BURST_DURATION and {}", burst_keyword);
    rate = is_bandwidth ? bandwidth.bytes_per_second : packets;
    if (!tokens_given) tokens = static_cast<uint64_t>(std::min(static_cast<double>(rate) * duration.seconds(), 1e18));
    capacity = is_bandwidth ? tokens + kBandwidthThreshold : std::max<uint64_t>(tokens, 1);
    return {};
  }
};

}  // namespace headrace
