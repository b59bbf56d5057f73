#pragma once
/// \file
/// A look at short payloads that spares most of them a search.

#include <array>
#include <cstdint>

#include "headrace/team.hh"
#include "tables/pattern/pattern_set.hh"

namespace headrace {

/// Says of a payload that fits into one vector that none of some patterns is in it: a fraction of what a library's call takes
/// before it looks at the first byte. It is Teddy, Hyperscan's filter for few literals (src/fdr/teddy.c of its sources):
/// patterns are dealt out to eight buckets, and three bytes in a row pass if one bucket has, for each of them, a pattern
/// with its half-bytes there.
class ShortFilter {
 public:
  static constexpr uint32_t kLongestPayload = 64;

  /// Without a processor that has AVX-512, and for sets of which too much would pass, it excludes nothing.
  void build(const PatternSet& set);

  /// True: no pattern is in the payload. False: one may be.
  bool excludes(const PayloadBytes& bytes) const {
    return useful_ && bytes.length <= kLongestPayload && none_passes(bytes);
  }
  bool useful() const { return useful_; }

 private:
  static constexpr int kWindow = 3;
  using Half = std::array<uint8_t, 16>;  // by half-byte, the buckets that have it
  static bool is_supported();
  double expected_passes(int first, int last) const;
  bool none_passes(const PayloadBytes& bytes) const;

  Half low_[kWindow] = {}, high_[kWindow] = {};
  bool useful_ = false;
};

}  // namespace headrace
