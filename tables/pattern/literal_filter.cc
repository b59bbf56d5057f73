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

/// Where more passes of a vector, looking twice costs more than it saves.
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

void LiteralFilter::build(const PatternSet& set) {
  *this = LiteralFilter();
  if (set.empty() || !is_supported()) return;
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

/// Of a vector of random bytes in this range.
double LiteralFilter::expected_passes(int first, int last) const {
  double sum = 0;
  for (size_t bucket = 0; bucket < kBuckets; ++bucket) {
    double share = kVector;
    for (int k = 0; k < kWindow; ++k) {
      int with = 0;
      for (int c = first; c <= last; ++c) with += (low_[k][c & 15] & high_[k][c >> 4]) >> bucket & 1;
      share *= static_cast<double>(with) / (last - first + 1);
    }
    sum += share;
  }
  return sum;
}

#if defined(__x86_64__)

bool LiteralFilter::is_supported() {
  __builtin_cpu_init();
  return __builtin_cpu_supports("avx512bw") != 0;
}

__attribute__((target("avx512f,avx512bw"))) bool LiteralFilter::none_is_in(const PayloadBytes& bytes) const {
  // GCC 12 takes the plain intrinsic for a read of something uninitialized.
  constexpr __mmask16 kAll = 0xffff;
  __m512i low[kWindow], high[kWindow];
  for (int k = 0; k < kWindow; ++k) {
    low[k] = _mm512_maskz_broadcast_i32x4(kAll, _mm_loadu_si128(reinterpret_cast<const __m128i*>(low_[k].data())));
    high[k] = _mm512_maskz_broadcast_i32x4(kAll, _mm_loadu_si128(reinterpret_cast<const __m128i*>(high_[k].data())));
  }
  const __m512i half = _mm512_set1_epi8(15);
  const auto first = [](uint32_t n) { return n >= kVector ? ~uint64_t{0} : (uint64_t{1} << n) - 1; };
  int comparisons = 0;
  for (uint32_t at = 0; at < bytes.length; at += kVector) {
    const uint32_t left = bytes.length - at;
    __m512i buckets = _mm512_set1_epi8(-1);
    for (uint32_t k = 0; k < kWindow; ++k) {
      // What is behind the payload is zero here: it may let something pass, but hides nothing.
      const __m512i text = _mm512_maskz_loadu_epi8(left > k ? first(left - k) : 0, bytes.data + at + k);
      const __m512i by_low = _mm512_shuffle_epi8(low[k], _mm512_and_si512(text, half));
      const __m512i by_high = _mm512_shuffle_epi8(high[k], _mm512_and_si512(_mm512_srli_epi16(text, 4), half));
      buckets = _mm512_and_si512(buckets, _mm512_and_si512(by_low, by_high));
    }
    uint64_t passed = _mm512_test_epi8_mask(buckets, buckets) & first(left);
    if (passed == 0) [[likely]]
      continue;
    alignas(kVector) uint8_t of[kVector];
    _mm512_store_si512(of, buckets);
    for (; passed != 0; passed &= passed - 1) {
      const auto i = static_cast<uint32_t>(__builtin_ctzll(passed));
      if (++comparisons > kMostComparisons || confirm(bytes, at + i, of[i])) return false;
    }
  }
  return true;
}

#else

bool LiteralFilter::is_supported() { return false; }
bool LiteralFilter::none_is_in(const PayloadBytes&) const { return false; }

#endif

}  // namespace headrace
