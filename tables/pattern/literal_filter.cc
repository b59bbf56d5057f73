#include "tables/pattern/short_filter.hh"

#include <algorithm>
#include <string>
#include <vector>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace headrace {

namespace {

constexpr size_t kBuckets = 8;
/// Where more passes of a payload, looking twice costs more than it saves.
constexpr double kMostPasses = 0.25;

struct Window {
  std::string bytes;  // up to three
  bool nocase;
};

/// How rare a byte is in payloads, roughly.
int rarity(unsigned char c) {
  if (c == 0) return 0;
  if (c == ' ' || c == 0xff) return 1;
  if (is_letter(c)) return c == fold_case(c) ? 2 : 3;
  return c >= '0' && c <= '9' ? 3 : 4;
}

/// The three bytes of a pattern that are rarest together; all of a shorter one.
Window window_of(const Pattern& pattern, size_t length) {
  size_t best = 0;
  int most = -1;
  for (size_t at = 0; at + length <= pattern.bytes.size(); ++at) {
    int sum = 0;
    for (size_t i = at; i < at + length; ++i) sum += rarity(static_cast<unsigned char>(pattern.bytes[i]));
    if (sum <= most) continue;
    most = sum;
    best = at;
  }
  return {pattern.bytes.substr(best, length), pattern.nocase};
}

}  // namespace

void ShortFilter::build(const PatternSet& set) {
  *this = ShortFilter();
  if (set.empty() || !is_supported()) return;
  std::vector<Window> windows;
  for (const Pattern& pattern : set)
    windows.push_back(window_of(pattern, std::min<size_t>(kWindow, pattern.bytes.size())));
  // Those that are alike share a bucket.
  std::sort(windows.begin(), windows.end(), [](const Window& a, const Window& b) { return a.bytes < b.bytes; });
  for (size_t i = 0; i < windows.size(); ++i) {
    const auto bucket = static_cast<uint8_t>(1u << (i * kBuckets / windows.size()));
    for (size_t k = 0; k < kWindow; ++k) {
      const auto add = [&](unsigned char c) {
        low_[k][c & 15] |= bucket;
        high_[k][c >> 4] |= bucket;
      };
      if (k >= windows[i].bytes.size()) {
        for (int half = 0; half < 16; ++half) add(static_cast<unsigned char>(half << 4 | half));
        continue;
      }
      const auto c = static_cast<unsigned char>(windows[i].bytes[k]);
      add(c);
      if (windows[i].nocase && is_letter(c)) add(c ^ 0x20);
    }
  }
  useful_ = std::max(expected_passes(0, 255), expected_passes(' ', '~')) < kMostPasses;
}

/// Of a payload of kLongestPayload random bytes in this range.
double ShortFilter::expected_passes(int first, int last) const {
  double sum = 0;
  for (size_t bucket = 0; bucket < kBuckets; ++bucket) {
    double share = kLongestPayload;
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

bool ShortFilter::is_supported() {
  __builtin_cpu_init();
  return __builtin_cpu_supports("avx512bw") != 0;
}

__attribute__((target("avx512f,avx512bw"))) bool ShortFilter::none_passes(const PayloadBytes& bytes) const {
  const uint64_t inside = bytes.length >= 64 ? ~uint64_t{0} : (uint64_t{1} << bytes.length) - 1;
  // GCC 12 takes the plain intrinsic for a read of something uninitialized.
  constexpr __mmask16 kAll = 0xffff;
  const __m512i half = _mm512_set1_epi8(15);
  __m512i buckets = _mm512_set1_epi8(-1);
  for (int k = 0; k < kWindow; ++k) {
    // What is behind the payload is zero here: it may let something pass, but hides nothing.
    const __m512i text = _mm512_maskz_loadu_epi8(inside >> k, bytes.data + k);
    const __m128i low = _mm_loadu_si128(reinterpret_cast<const __m128i*>(low_[k].data()));
    const __m128i high = _mm_loadu_si128(reinterpret_cast<const __m128i*>(high_[k].data()));
    const __m512i by_low = _mm512_shuffle_epi8(_mm512_maskz_broadcast_i32x4(kAll, low), _mm512_and_si512(text, half));
    const __m512i by_high = _mm512_shuffle_epi8(_mm512_maskz_broadcast_i32x4(kAll, high),
                                                _mm512_and_si512(_mm512_srli_epi16(text, 4), half));
    buckets = _mm512_and_si512(buckets, _mm512_and_si512(by_low, by_high));
  }
  return (_mm512_test_epi8_mask(buckets, buckets) & inside) == 0;
}

#else

bool ShortFilter::is_supported() { return false; }
bool ShortFilter::none_passes(const PayloadBytes&) const { return false; }

#endif

}  // namespace headrace
