#pragma once
/// \file
/// Random numbers and choices of synthetic traffic.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

namespace headrace {

/// xorshift64* (G. Marsaglia, S. Vigna): fast, seeded, the same everywhere.
class TrafficRandom {
 public:
  explicit TrafficRandom(uint64_t seed) : state_(seed * 0x9e3779b97f4a7c15u + 88172645463325252u) {
    if (state_ == 0) state_ = 88172645463325252u;
  }
  uint64_t next() {
    state_ ^= state_ >> 12;
    state_ ^= state_ << 25;
    state_ ^= state_ >> 27;
    return state_ * 0x2545f4914f6cdd1du;
  }
  uint32_t next32() { return static_cast<uint32_t>(next() >> 32); }
  double unit() { return static_cast<double>(next() >> 11) * 0x1p-53; }

 private:
  uint64_t state_;
};

/// Draws numbers below `n` with probability proportional to 1/(number + 1)^skew, by inverting the distribution.
class ZipfSampler {
 public:
  ZipfSampler(uint32_t n, double skew) : cumulative_(n) {
    double total = 0;
    for (uint32_t i = 0; i < n; ++i) cumulative_[i] = total += 1 / std::pow(i + 1.0, skew);
    for (double& c : cumulative_) c /= total;
  }
  uint32_t draw(TrafficRandom& random) const {
    const auto it = std::upper_bound(cumulative_.begin(), cumulative_.end(), random.unit());
    return static_cast<uint32_t>(std::min<size_t>(it - cumulative_.begin(), cumulative_.size() - 1));
  }

 private:
  std::vector<double> cumulative_;
};

}  // namespace headrace
