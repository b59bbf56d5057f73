#include "src/io/linux/partial_checksum.hh"

#include <cstring>

#include "headrace/headers_of.hh"

namespace headrace::io {

namespace {

using ip_protocol::kTcp, ip_protocol::kUdp;

uint32_t get16(const uint8_t* at) { return static_cast<uint32_t>(at[0] << 8 | at[1]); }

/// The sum of 16-bit words, an odd last byte as if a zero followed, folded to 16 bits.
uint32_t sum16(const uint8_t* data, uint32_t length, uint64_t sum = 0) {
  for (; length >= 4; data += 4, length -= 4) {
    uint32_t word;
    std::memcpy(&word, data, 4);
    sum += __builtin_bswap32(word);
  }
  if (length >= 2) {
    sum += get16(data);
    data += 2;
    length -= 2;
  }
  if (length) sum += static_cast<uint32_t>(data[0]) << 8;
  while (sum >> 16) sum = (sum & 0xffff) + (sum >> 16);
  return static_cast<uint32_t>(sum);
}

void store_checksum(uint8_t* at, uint32_t sum) {
  uint32_t value = ~sum & 0xffff;
  // Zero would mean "none" in UDP, and is the same number.
  if (value == 0) value = 0xffff;
  at[0] = static_cast<uint8_t>(value >> 8);
  at[1] = static_cast<uint8_t>(value);
}

/// True if a look at few bytes shows that a frame's checksum is not partial: TCP or UDP in IPv4 without options or tags, whose
/// field does not hold the sum of the pseudo-header. False says nothing.
bool is_plainly_whole(const uint8_t* frame, uint32_t length) {
  constexpr uint32_t kIp = 14, kHeader = 20;
  if (length < kIp + 2 * kHeader || frame[12] != 8 || frame[13] != 0 || frame[kIp] != 0x45) return false;
  const uint32_t protocol = frame[kIp + 9];
  if (protocol != kTcp && protocol != kUdp) return false;
  // The sum is the same in either order of bytes, but for the order.
  uint64_t addresses;
  std::memcpy(&addresses, frame + kIp + 12, sizeof addresses);
  addresses = (addresses & 0xffffffff) + (addresses >> 32);
  addresses = (addresses & 0xffff) + (addresses >> 16 & 0xffff) + (addresses >> 32);
  const uint16_t swapped = __builtin_bswap16(static_cast<uint16_t>((addresses & 0xffff) + (addresses >> 16)));
  const uint32_t sum = swapped + protocol + get16(frame + kIp + 2) - kHeader;
  const uint32_t pseudo = (sum & 0xffff) + (sum >> 16);
  return get16(frame + kIp + kHeader + (protocol == kTcp ? 16 : 6)) != pseudo;
}

}  // namespace

bool finish_checksum(uint8_t* data, uint32_t length, uint32_t start, uint32_t offset) {
  if (start + offset + 2 > length) return false;
  store_checksum(data + start + offset, sum16(data + start, length - start));
  return true;
}

bool finish_partial_checksum(uint8_t* frame, uint32_t length) {
  if (is_plainly_whole(frame, length)) [[likely]]
    return false;
  const PacketBytes bytes{frame, length};
  const TransportPlace place = find_transport_in_frame(bytes);
  if (!place.has_header || place.fragment || (place.protocol != kTcp && place.protocol != kUdp)) return false;
  const uint8_t* const ip = frame + place.network;
  const auto total = static_cast<uint32_t>(place.end - place.network);
  if (total != (place.version == 4 ? get16(ip + 2) : 40 + get16(ip + 4))) return false;  // cut short
  const auto segment = static_cast<uint32_t>(place.end - place.at);
  if (segment < (place.protocol == kTcp ? 20u : 8u)) return false;
  const uint32_t pseudo =
      place.version == 4 ? sum16(ip + 12, 8, place.protocol + segment) : sum16(ip + 8, 32, place.protocol + segment);
  uint8_t* const transport = frame + place.at;
  uint8_t* const field = transport + (place.protocol == kTcp ? 16 : 6);
  const uint32_t value = get16(field);
  if (value != pseudo || value == 0) return false;
  const uint32_t sum = sum16(transport, segment);
  if (sum16(nullptr, 0, sum + pseudo) == 0xffff) return false;  // right as it is
  store_checksum(field, sum);
  return true;
}

}  // namespace headrace::io
