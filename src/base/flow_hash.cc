#include "headrace/flow_hash.hh"

#include <array>
#include <cstring>

#include "headrace/headers_of.hh"
#include "headrace/packet.hh"

namespace headrace {

namespace {

constexpr uint8_t kRssKey[40] = {0x6d, 0x5a, 0x56, 0xda, 0x25, 0x5b, 0x0e, 0xc2, 0x41, 0x67, 0x25, 0x3d, 0x43, 0xa3,
                                 0x8f, 0xb0, 0xd0, 0xca, 0x2b, 0xcb, 0xae, 0x7b, 0x30, 0xb4, 0x77, 0xcb, 0x2d, 0xa3,
                                 0x80, 0x30, 0xf2, 0x0c, 0x6a, 0x42, 0xb7, 0x3b, 0xbe, 0xac, 0x01, 0xfa};

/// For each input byte position and value the XOR of the key windows of its set bits.
using Tables = std::array<std::array<uint32_t, 256>, 36>;

const Tables& toeplitz_tables() {
  static const Tables tables = [] {
    Tables t{};
    for (int byte = 0; byte < 36; ++byte) {
      for (int bit = 0; bit < 8; ++bit) {
        // The 32 bits of the key that begin at this input bit.
        uint64_t window = 0;
        for (int i = 0; i < 5; ++i) window = window << 8 | kRssKey[byte + i];
        const uint32_t word = static_cast<uint32_t>(window >> (8 - bit));
        for (int value = 0; value < 256; ++value)
          if (value & (0x80 >> bit)) t[byte][value] ^= word;
      }
    }
    return t;
  }();
  return tables;
}

[[gnu::always_inline]] inline uint32_t toeplitz(const uint8_t* input, int n) {
  const Tables& t = toeplitz_tables();
  uint32_t hash = 0;
  for (int i = 0; i < n; ++i) hash ^= t[i][input[i]];
  return hash;
}

uint32_t toeplitz(const FlowKey& key) {
  if (!key.addresses) return 0;
  uint8_t input[36];
  std::memcpy(input, key.addresses, key.address_bytes);
  if (!key.ports) return toeplitz(input, static_cast<int>(key.address_bytes));
  std::memcpy(input + key.address_bytes, key.ports, 4);
  return toeplitz(input, static_cast<int>(key.address_bytes) + 4);
}

/// Source, destination and ports of what most frames are: TCP or UDP in IPv4 without tags, options and fragments. They lie side
/// by side. Null for all others, even if they are the same.
const uint8_t* plain_flow(const uint8_t* frame, uint32_t length) {
  constexpr uint32_t kIp = 14, kPorts = kIp + 20;
  if (length < kPorts + 4 || frame[12] != 8 || frame[13] != 0 || frame[kIp] != 0x45) return nullptr;
  const uint8_t protocol = frame[kIp + 9];
  const bool fragment = (frame[kIp + 6] & 0x3f) != 0 || frame[kIp + 7] != 0;
  const bool has_ports = frame[kIp + 2] != 0 || frame[kIp + 3] >= 24;
  return !fragment && has_ports && (protocol == ip_protocol::kTcp || protocol == ip_protocol::kUdp) ? frame + kIp + 12
                                                                                                    : nullptr;
}

void store32(uint8_t* at, uint32_t value) {
  value = __builtin_bswap32(value);
  std::memcpy(at, &value, 4);
}
void store16(uint8_t* at, uint16_t value) {
  value = __builtin_bswap16(value);
  std::memcpy(at, &value, 2);
}
uint32_t load32(const uint8_t* p) {
  uint32_t v;
  std::memcpy(&v, p, sizeof v);
  return __builtin_bswap32(v);
}

uint32_t mix(uint64_t v) {
  v *= 0x9e3779b97f4a7c15u;
  return static_cast<uint32_t>(v >> 32);
}

}  // namespace

uint32_t toeplitz_ip4(uint32_t src, uint32_t dst, uint16_t src_port, uint16_t dst_port) {
  uint8_t input[12];
  store32(input, src);
  store32(input + 4, dst);
  store16(input + 8, src_port);
  store16(input + 10, dst_port);
  return toeplitz(input, 12);
}

uint32_t toeplitz_ip4(uint32_t src, uint32_t dst) {
  uint8_t input[8];
  store32(input, src);
  store32(input + 4, dst);
  return toeplitz(input, 8);
}

uint32_t toeplitz_ip6(const uint8_t src[16], const uint8_t dst[16], uint16_t src_port, uint16_t dst_port) {
  uint8_t input[36];
  std::memcpy(input, src, 16);
  std::memcpy(input + 16, dst, 16);
  store16(input + 32, src_port);
  store16(input + 34, dst_port);
  return toeplitz(input, 36);
}

uint32_t toeplitz_ip(const uint8_t* ip, uint32_t length) {
  const PacketBytes bytes{ip, length, 0};
  return toeplitz(flow_key(bytes, find_transport(bytes)));
}

uint32_t toeplitz_frame(const uint8_t* frame, uint32_t length) {
  if (const uint8_t* flow = plain_flow(frame, length)) [[likely]]
    return toeplitz(flow, 12);
  const PacketBytes bytes{frame, length};
  return toeplitz(flow_key(bytes, find_transport_in_frame(bytes)));
}

uint32_t hash_of_headers(const Packet& p) {
  const PacketBytes bytes{p.data(), p.length(),
                          p.has_network_header() ? p.network_header_offset() : PacketBytes::kNone};
  const FlowKey key = flow_key(bytes, find_transport(bytes));
  if (!key.addresses) return 0;
  uint64_t sum = key.ports ? load32(key.ports) : 0;
  for (uint32_t i = 0; i < key.address_bytes; i += 4) sum = uint64_t{mix(sum)} << 32 | load32(key.addresses + i);
  return mix(sum);
}

}  // namespace headrace
