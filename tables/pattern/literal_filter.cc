#include "tables/pattern/literal_filter.hh"

#include <algorithm>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace headrace {

namespace {

/// Where more passes of 64 bytes, looking twice costs more than it saves.
constexpr double kMostPasses = 0.25;
/// As many comparisons of a payload, and a search is due.
constexpr int kMostComparisons = 24;

/// How rare a byte is in payloads, roughly.
int rarity(unsigned char c) {
  if (c == 0) return 0;
  if (c == ' ' || c == 0xff) return 1;
  if (is_letter(c)) return c == fold_case(c) ? 2 : 3;
  return c >= '0' && c <= '9' ? 3 : 4;
}

/// Where the `length` bytes of a pattern begin that are rarest together.
size_t window_of(std::string_view pattern, size_t length) {
  size_t best = 0;
  int most = -1;
  for (size_t at = 0; at + length <= pattern.size(); ++at) {
    int sum = 0;
    for (size_t i = at; i < at + length; ++i) sum += rarity(static_cast<unsigned char>(pattern[i]));
    if (sum <= most) continue;
    most = sum;
    best = at;
  }
  return best;
}

}  // namespace

void LiteralFilter::build(const PatternSet& set, Vectors vectors) {
  *this = LiteralFilter();
  vectors_ = vectors;
  if (set.empty() || vectors_ == Vectors::kNone) return;
  const auto window = [](const Literal& l) { return std::string_view(l.bytes).substr(l.offset, kWindow); };
  std::vector<Literal> all;
  for (const Pattern& pattern : set) {
    const size_t at = window_of(pattern.bytes, std::min<size_t>(kWindow, pattern.bytes.size()));
    all.push_back({pattern.bytes, static_cast<uint32_t>(at), pattern.nocase});
  }
  // Those that are alike share a bucket.
  std::sort(all.begin(), all.end(), [&](const Literal& a, const Literal& b) { return window(a) < window(b); });
  for (size_t i = 0; i < all.size(); ++i) {
    const size_t number = i * kBuckets / all.size();
    const auto bucket = static_cast<uint8_t>(1u << number);
    for (size_t k = 0; k < kWindow; ++k) {
      const auto add = [&](unsigned char c) {
        low_[k][c & 15] |= bucket;
        high_[k][c >> 4] |= bucket;
      };
      if (k >= window(all[i]).size()) {
        for (int half = 0; half < 16; ++half) add(static_cast<unsigned char>(half << 4 | half));
        continue;
      }
      const auto c = static_cast<unsigned char>(window(all[i])[k]);
      add(c);
      if (all[i].nocase && is_letter(c)) add(c ^ 0x20);
    }
    if (all[i].nocase)
      for (char& c : all[i].bytes) c = static_cast<char>(fold_case(static_cast<unsigned char>(c)));
    literals_[number].push_back(std::move(all[i]));
  }
  useful_ = std::max(expected_passes(0, 255), expected_passes(' ', '~')) < kMostPasses;
}

bool LiteralFilter::Literal::is_at(const uint8_t* at) const {
  if (!nocase) return std::memcmp(at, bytes.data(), bytes.size()) == 0;
  for (size_t i = 0; i < bytes.size(); ++i)
    if (fold_case(at[i]) != static_cast<unsigned char>(bytes[i])) return false;
  return true;
}

bool LiteralFilter::confirm(const PayloadBytes& bytes, uint32_t at, uint8_t buckets) const {
  for (unsigned left = buckets; left != 0; left &= left - 1)
    for (const Literal& l : literals_[static_cast<size_t>(__builtin_ctz(left))])
      if (at >= l.offset && l.bytes.size() <= bytes.length - (at - l.offset) && l.is_at(bytes.data + (at - l.offset)))
        return true;
  return false;
}

/// Of 64 random bytes in this range.
double LiteralFilter::expected_passes(int first, int last) const {
  double sum = 0;
  for (size_t bucket = 0; bucket < kBuckets; ++bucket) {
    double share = 64;
    for (int k = 0; k < kWindow; ++k) {
      int with = 0;
      for (int c = first; c <= last; ++c) with += (low_[k][c & 15] & high_[k][c >> 4]) >> bucket & 1;
      share *= static_cast<double>(with) / (last - first + 1);
    }
    sum += share;
  }
  return sum;
}

bool LiteralFilter::looks_bad(const PayloadBytes& bytes, uint32_t at, const uint8_t* buckets, uint64_t passed,
                              int& comparisons) const {
  for (; passed != 0; passed &= passed - 1) {
    const auto i = static_cast<uint32_t>(__builtin_ctzll(passed));
    if (++comparisons > kMostComparisons || confirm(bytes, at + i, buckets[i])) return true;
  }
  return false;
}

#if defined(__x86_64__)

namespace {

uint64_t first_bits(uint32_t n) { return n >= 64 ? ~uint64_t{0} : (uint64_t{1} << n) - 1; }

/// For each byte, the buckets that have it, and the two behind it, in their windows.
__attribute__((target("avx512f,avx512bw"), always_inline)) inline __m512i buckets_of(const __m512i (&low)[3],
                                                                                     const __m512i (&high)[3],
                                                                                     const __m512i (&text)[3]) {
  const __m512i half = _mm512_set1_epi8(15);
  __m512i buckets = _mm512_set1_epi8(-1);
  for (int k = 0; k < 3; ++k) {
    const __m512i by_low = _mm512_shuffle_epi8(low[k], _mm512_and_si512(text[k], half));
    const __m512i by_high = _mm512_shuffle_epi8(high[k], _mm512_and_si512(_mm512_srli_epi16(text[k], 4), half));
    buckets = _mm512_and_si512(buckets, _mm512_and_si512(by_low, by_high));
  }
  return buckets;
}
__attribute__((target("avx2"), always_inline)) inline __m256i buckets_of(const __m256i (&low)[3],
                                                                         const __m256i (&high)[3], const uint8_t* at) {
  const __m256i half = _mm256_set1_epi8(15);
  __m256i buckets = _mm256_set1_epi8(-1);
  for (int k = 0; k < 3; ++k) {
    const __m256i text = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(at + k));
    const __m256i by_low = _mm256_shuffle_epi8(low[k], _mm256_and_si256(text, half));
    const __m256i by_high = _mm256_shuffle_epi8(high[k], _mm256_and_si256(_mm256_srli_epi16(text, 4), half));
    buckets = _mm256_and_si256(buckets, _mm256_and_si256(by_low, by_high));
  }
  return buckets;
}
__attribute__((target("avx2"), always_inline)) inline uint32_t any_of(__m256i buckets) {
  return ~static_cast<uint32_t>(_mm256_movemask_epi8(_mm256_cmpeq_epi8(buckets, _mm256_setzero_si256())));
}

}  // namespace

__attribute__((target("avx512f,avx512bw"))) bool LiteralFilter::none_is_in_by_64(const PayloadBytes& bytes) const {
  constexpr uint32_t kVector = 64;
  // GCC 12 takes the plain intrinsic for a read of something uninitialized.
  constexpr __mmask16 kAll = 0xffff;
  alignas(kVector) uint8_t of[kVector];
  int comparisons = 0;
  // Each turn begins with the tables in registers, which the call at its end does not keep.
  for (uint32_t at = 0; at < bytes.length; at += kVector) {
    __m512i low[kWindow], high[kWindow], text[kWindow];
    for (int k = 0; k < kWindow; ++k) {
      low[k] = _mm512_maskz_broadcast_i32x4(kAll, _mm_loadu_si128(reinterpret_cast<const __m128i*>(low_[k].data())));
      high[k] = _mm512_maskz_broadcast_i32x4(kAll, _mm_loadu_si128(reinterpret_cast<const __m128i*>(high_[k].data())));
    }
    __m512i buckets;
    uint64_t passed = 0;
    for (; bytes.length - at >= kVector + kWindow - 1; at += kVector) {
      for (int k = 0; k < kWindow; ++k) text[k] = _mm512_loadu_si512(bytes.data + at + k);
      buckets = buckets_of(low, high, text);
      passed = _mm512_test_epi8_mask(buckets, buckets);
      if (passed != 0) [[unlikely]]
        break;
    }
    if (passed == 0) {
      const uint32_t left = bytes.length - at;
      for (uint32_t k = 0; k < kWindow; ++k)
        // What is behind the payload is zero here: it may let something pass, but hides nothing.
        text[k] = _mm512_maskz_loadu_epi8(left > k ? first_bits(left - k) : 0, bytes.data + at + k);
      buckets = buckets_of(low, high, text);
      passed = _mm512_test_epi8_mask(buckets, buckets) & first_bits(left);
      if (passed == 0) [[likely]]
        continue;
    }
    _mm512_store_si512(of, buckets);
    if (looks_bad(bytes, at, of, passed, comparisons)) return false;
  }
  return true;
}

__attribute__((target("avx2"))) bool LiteralFilter::none_is_in_by_32(const PayloadBytes& bytes) const {
  constexpr uint32_t kVector = 32;
  alignas(kVector) uint8_t of[kVector];
  int comparisons = 0;
  for (uint32_t at = 0; at < bytes.length; at += kVector) {
    __m256i low[kWindow], high[kWindow];
    for (int k = 0; k < kWindow; ++k) {
      low[k] = _mm256_broadcastsi128_si256(_mm_loadu_si128(reinterpret_cast<const __m128i*>(low_[k].data())));
      high[k] = _mm256_broadcastsi128_si256(_mm_loadu_si128(reinterpret_cast<const __m128i*>(high_[k].data())));
    }
    __m256i buckets;
    uint32_t passed = 0;
    for (; bytes.length - at >= kVector + kWindow - 1; at += kVector) {
      buckets = buckets_of(low, high, bytes.data + at);
      passed = any_of(buckets);
      if (passed != 0) [[unlikely]]
        break;
    }
    if (passed == 0) {
      const uint32_t left = bytes.length - at;
      uint8_t rest[kVector + kWindow - 1] = {};
      std::memcpy(rest, bytes.data + at, left);
      buckets = buckets_of(low, high, rest);
      passed = any_of(buckets) & static_cast<uint32_t>(first_bits(left));
      if (passed == 0) [[likely]]
        continue;
    }
    _mm256_store_si256(reinterpret_cast<__m256i*>(of), buckets);
    if (looks_bad(bytes, at, of, passed, comparisons)) return false;
  }
  return true;
}

LiteralFilter::Vectors LiteralFilter::best_vectors() {
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx512bw")) return Vectors::kAvx512;
  return __builtin_cpu_supports("avx2") ? Vectors::kAvx2 : Vectors::kNone;
}

#else

LiteralFilter::Vectors LiteralFilter::best_vectors() { return Vectors::kNone; }
bool LiteralFilter::none_is_in_by_64(const PayloadBytes&) const { return false; }
bool LiteralFilter::none_is_in_by_32(const PayloadBytes&) const { return false; }

#endif

}  // namespace headrace
