#include "elements/analysis/md5.hh"

#include <bit>
#include <cmath>
#include <cstring>

namespace headrace {

namespace {

struct State {
  uint32_t a = 0x67452301, b = 0xefcdab89, c = 0x98badcfe, d = 0x10325476;
};

/// floor(2^32 * |sin(i + 1)|), as RFC 1321 defines its table.
const std::array<uint32_t, 64>& sines() {
  static const std::array<uint32_t, 64> table = [] {
    std::array<uint32_t, 64> t{};
    for (int i = 0; i < 64; ++i) t[i] = static_cast<uint32_t>(std::floor(std::fabs(std::sin(i + 1.0)) * 4294967296.0));
    return t;
  }();
  return table;
}

void add_block(State& s, const uint8_t* block) {
  static constexpr int kShifts[4][4] = {{7, 12, 17, 22}, {5, 9, 14, 20}, {4, 11, 16, 23}, {6, 10, 15, 21}};
  const auto& k = sines();
  uint32_t words[16];
  for (int i = 0; i < 16; ++i)
    words[i] =
        block[4 * i] | block[4 * i + 1] << 8 | block[4 * i + 2] << 16 | static_cast<uint32_t>(block[4 * i + 3]) << 24;
  State t = s;
  for (int i = 0; i < 64; ++i) {
    uint32_t f;
    int word;
    switch (i / 16) {
      case 0:
        f = (t.b & t.c) | (~t.b & t.d);
        word = i;
        break;
      case 1:
        f = (t.d & t.b) | (~t.d & t.c);
        word = (5 * i + 1) % 16;
        break;
      case 2:
        f = t.b ^ t.c ^ t.d;
        word = (3 * i + 5) % 16;
        break;
      default:
        f = t.c ^ (t.b | ~t.d);
        word = 7 * i % 16;
    }
    const uint32_t sum = t.a + f + k[i] + words[word];
    t.a = t.d;
    t.d = t.c;
    t.c = t.b;
    t.b += std::rotl(sum, kShifts[i / 16][i % 4]);
  }
  s.a += t.a;
  s.b += t.b;
  s.c += t.c;
  s.d += t.d;
}

}  // namespace

std::array<uint8_t, 16> md5(const uint8_t* bytes, size_t n) {
  State s;
  size_t at = 0;
  for (; n - at >= 64; at += 64) add_block(s, bytes + at);
  uint8_t tail[128] = {};
  const size_t rest = n - at;
  if (rest > 0) std::memcpy(tail, bytes + at, rest);
  tail[rest] = 0x80;
  const size_t end = rest < 56 ? 64 : 128;
  const uint64_t bits = static_cast<uint64_t>(n) * 8;
  for (int i = 0; i < 8; ++i) tail[end - 8 + i] = static_cast<uint8_t>(bits >> (8 * i));
  add_block(s, tail);
  if (end == 128) add_block(s, tail + 64);
  std::array<uint8_t, 16> digest;
  const uint32_t words[4] = {s.a, s.b, s.c, s.d};
  for (int i = 0; i < 16; ++i) digest[i] = static_cast<uint8_t>(words[i / 4] >> (8 * (i % 4)));
  return digest;
}

std::string md5_hex(const std::array<uint8_t, 16>& digest) {
  std::string s;
  for (const uint8_t byte : digest) {
    s += "0123456789abcdef"[byte >> 4];
    s += "0123456789abcdef"[byte & 15];
  }
  return s;
}

std::string md5_text(const std::array<uint8_t, 16>& digest) {
  static constexpr char kCharacters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_@";
  std::string s;
  for (int bit = 0; bit < 128; bit += 6) {
    unsigned value = digest[bit / 8] >> (bit % 8);
    if (bit % 8 > 2 && bit / 8 < 15) value |= static_cast<unsigned>(digest[bit / 8 + 1]) << (8 - bit % 8);
    s += kCharacters[value & 63];
  }
  return s;
}

}  // namespace headrace
