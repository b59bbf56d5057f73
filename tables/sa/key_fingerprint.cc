#include "tables/sa/key_fingerprint.hh"

#include <bit>
#include <cstring>
#include <random>

namespace headrace {

namespace {

struct SipState {
  uint64_t a, b, c, d;

  void round() {
    a += b;
    c += d;
    b = std::rotl(b, 13) ^ a;
    d = std::rotl(d, 16) ^ c;
    a = std::rotl(a, 32);
    c += b;
    a += d;
    b = std::rotl(b, 17) ^ c;
    d = std::rotl(d, 21) ^ a;
    c = std::rotl(c, 32);
  }
  void take(uint64_t word) {
    d ^= word;
    round();
    round();
    a ^= word;
  }
};

uint64_t little_endian(const uint8_t* bytes) {
  uint64_t word = 0;
  std::memcpy(&word, bytes, sizeof word);
  return std::endian::native == std::endian::little ? word : __builtin_bswap64(word);
}

std::array<uint8_t, 16> draw_key() {
  std::random_device device;
  std::array<uint8_t, 16> key;
  for (uint8_t& byte : key) byte = static_cast<uint8_t>(device());
  return key;
}

}  // namespace

uint64_t sip_hash(std::span<const uint8_t, 16> key, std::span<const uint8_t> bytes) {
  const uint64_t low = little_endian(key.data()), high = little_endian(key.data() + 8);
  SipState state{low ^ 0x736f6d6570736575u, high ^ 0x646f72616e646f6du, low ^ 0x6c7967656e657261u,
                 high ^ 0x7465646279746573u};
  const uint64_t length = bytes.size();
  for (; bytes.size() >= 8; bytes = bytes.subspan(8)) state.take(little_endian(bytes.data()));
  uint8_t last[8] = {};
  if (!bytes.empty()) std::memcpy(last, bytes.data(), bytes.size());
  last[7] = static_cast<uint8_t>(length);
  state.take(little_endian(last));
  state.c ^= 0xff;
  for (int i = 0; i < 4; ++i) state.round();
  return state.a ^ state.b ^ state.c ^ state.d;
}

KeyFingerprint fingerprint_of(std::span<const uint8_t> bytes) {
  static const std::array<uint8_t, 16> keys[2] = {draw_key(), draw_key()};
  KeyFingerprint fingerprint;
  for (int i = 0; i < 2; ++i) {
    const uint64_t half = sip_hash(keys[i], bytes);
    std::memcpy(fingerprint.data() + 8 * i, &half, sizeof half);
  }
  return fingerprint;
}

}  // namespace headrace
