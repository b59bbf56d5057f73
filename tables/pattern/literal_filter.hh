#pragma once
/// \file
/// A look at payloads that spares most of them a search.

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "headrace/team.hh"
#include "tables/pattern/pattern_set.hh"

namespace headrace {

/// Says of a payload that none of a few patterns is in it: of short ones in a fraction of what a library's call takes before it
/// looks at the first byte, and of long ones at a vector in a few cycles. It is Teddy, Hyperscan's filter for few literals
/// (src/fdr/teddy.c of its sources): patterns are dealt out to eight buckets, and three bytes in a row pass if one bucket
/// has, for each of them, a pattern with its half-bytes there. Where three bytes pass, the patterns of the bucket are
/// compared.
class LiteralFilter {
 public:
  /// What a processor has for it.
  enum class Vectors { kNone, kAvx2, kAvx512 };
  static Vectors best_vectors();

  /// Without vectors, and for sets of which too much would pass, it excludes nothing.
  /// \param vectors at most best_vectors()
  void build(const PatternSet& set, Vectors vectors = best_vectors());

  /// True: no pattern is in the payload. False: one may be, or so much passes that a search tells sooner.
  bool excludes(const PayloadBytes& bytes) const {
    return useful_ && (vectors_ == Vectors::kAvx512 ? none_is_in_by_64(bytes) : none_is_in_by_32(bytes));
  }
  bool useful() const { return useful_; }

 private:
  static constexpr int kWindow = 3;
  static constexpr size_t kBuckets = 8;
  using Half = std::array<uint8_t, 16>;  // by half-byte, the buckets that have it
  struct Literal {
    std::string bytes;    // in lower case if `nocase`
    uint32_t offset = 0;  // of its window
    bool nocase = false;
    bool is_at(const uint8_t* at) const;
  };
  double expected_passes(int first, int last) const;
  bool none_is_in_by_64(const PayloadBytes& bytes) const;
  bool none_is_in_by_32(const PayloadBytes& bytes) const;
  /// True if a pattern is in the payload and has its window where a vector that begins at `at` passed, or if so much passed
  /// that a search is due. \param buckets by byte of the vector \param passed the bytes for which there are any
  /// \param comparisons so far
  [[gnu::noinline]] bool looks_bad(const PayloadBytes& bytes, uint32_t at, const uint8_t* buckets, uint64_t passed,
                                   int& comparisons) const;
  /// True if a pattern of one of the buckets is in the payload and has its window at `at`.
  bool confirm(const PayloadBytes& bytes, uint32_t at, uint8_t buckets) const;

  Half low_[kWindow] = {}, high_[kWindow] = {};
  std::array<std::vector<Literal>, kBuckets> literals_;
  Vectors vectors_ = Vectors::kNone;
  bool useful_ = false;
};

}  // namespace headrace
