#include "src/io/linux/partial_checksum.hh"

#include <cstring>

namespace headrace::io {

namespace {

constexpr uint8_t kTcp = 6, kUdp = 17;

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

}  // namespace

bool finish_checksum(uint8_t* data, uint32_t length, uint32_t start, uint32_t offset) {
  if (start + offset + 2 > length) return false;
  store_checksum(data + start + offset, sum16(data + start, length - start));
  return true;
}

bool finish_partial_checksum(uint8_t* frame, uint32_t length) {
  uint32_t at = 12;
  if (length < 14 + 20) return false;
  uint32_t type = get16(frame + at);
  while ((type == 0x8100 || type == 0x88a8) && at + 6 + 20 <= length) {
    at += 4;
    type = get16(frame + at);
  }
  at += 2;
  const uint8_t* ip = frame + at;
  uint32_t header, segment, protocol, pseudo;
  if (type == 0x0800) {
    header = (ip[0] & 15) * 4u;
    const uint32_t total = get16(ip + 2);
    if (ip[0] >> 4 != 4 || header < 20 || total < header || at + total > length || (get16(ip + 6) & 0x3fff))
      return false;
    segment = total - header;
    protocol = ip[9];
    pseudo = sum16(ip + 12, 8, protocol + segment);
  } else if (type == 0x86dd && at + 40 <= length && ip[0] >> 4 == 6) {
    header = 40;
    segment = get16(ip + 4);
    if (at + header + segment > length) return false;
    protocol = ip[6];
    pseudo = sum16(ip + 8, 32, protocol + segment);
  } else {
    return false;
  }
  if (protocol != kTcp && protocol != kUdp) return false;
  const uint32_t offset = protocol == kTcp ? 16 : 6;
  if (segment < (protocol == kTcp ? 20u : 8u)) return false;
  uint8_t* field = frame + at + header + offset;
  const uint32_t value = get16(field);
  if (value != pseudo || value == 0) return false;
  const uint32_t sum = sum16(frame + at + header, segment);
  if (sum16(nullptr, 0, sum + pseudo) == 0xffff) return false;  // right as it is
  store_checksum(field, sum);
  return true;
}

}  // namespace headrace::io
