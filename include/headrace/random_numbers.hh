#pragma once
/// \file
/// Random numbers without synchronization.

#include <cstdint>
#include <random>

#include "headrace/worker.hh"

namespace headrace {

/// Random numbers for elements: one generator for each thread, so that drawing needs no synchronization. xorshift64*
/// (S. Vigna, "An experimental exploration of Marsaglia's xorshift generators", 2016).
class RandomNumbers {
 public:
  RandomNumbers() {
    std::random_device seed;
    for (int i = 0; i < states_.size(); ++i) states_[i] = uint64_t{seed()} << 32 | seed() | 1;
  }

  /// 32 random bits.
  uint32_t next() {
    uint64_t& state = states_.local();
    state ^= state >> 12;
    state ^= state << 25;
    state ^= state >> 27;
    return static_cast<uint32_t>(state * 0x2545f4914f6cdd1d >> 32);
  }
  /// From 0 to `n` - 1.
  uint32_t below(uint32_t n) { return static_cast<uint32_t>(uint64_t{next()} * n >> 32); }

 private:
  PerThread<uint64_t> states_;
};

}  // namespace headrace
