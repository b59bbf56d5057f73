#pragma once
/// \file
/// The Internet checksum (RFC 1071) over bytes, for host code. fields.hh has the functions for shaders.

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "headrace/headers.hh"

namespace headrace {

/// Sums 16-bit words. Only the last part may have an odd length.
class ChecksumSum {
 public:
  ChecksumSum& add(const void* bytes, size_t n) {
    const auto* p = static_cast<const uint8_t*>(bytes);
    for (; n >= 8; n -= 8, p += 8) {
      uint64_t word;
      std::memcpy(&word, p, 8);
      sum_ += word;
      sum_ += sum_ < word;  // end-around carry
    }
    if (n > 0) {
      uint64_t word = 0;
      std::memcpy(&word, p, n);
      sum_ += word;
      sum_ += sum_ < word;
    }
    return *this;
  }
  ChecksumSum& add16(uint16_t value) {
    const Net16 word(value);
    return add(&word, 2);
  }

  /// The checksum of the bytes added, in host order: 0 if they include their own, correct checksum.
  uint16_t checksum() const {
    uint64_t sum = (sum_ >> 32) + (sum_ & 0xffffffff);
    sum = (sum >> 32) + (sum & 0xffffffff);
    sum = (sum >> 16) + (sum & 0xffff);
    sum = (sum >> 16) + (sum & 0xffff);
    // The words were added in memory order, so the bytes of the sum are in that order, too.
    return __builtin_bswap16(static_cast<uint16_t>(~sum));
  }

 private:
  uint64_t sum_ = 0;
};

/// The checksum of `n` bytes, in host order.
inline uint16_t internet_checksum(const void* bytes, size_t n) { return ChecksumSum().add(bytes, n).checksum(); }

/// Where a packet finally goes: the last address of a source route that is not used up, else the header's destination
/// (RFC 791, section 3.1). TCP and UDP use this address in the pseudo header.
inline IpAddress final_destination(const Ip4Header& ip) {
  const uint8_t* bytes = ip.bytes();
  const int header_length = ip.header_length();
  for (int at = 20; at + 2 < header_length;) {
    const uint8_t type = bytes[at];
    if (type == ip_option::kEnd) break;
    if (type == ip_option::kNop) {
      ++at;
      continue;
    }
    const int length = bytes[at + 1];
    if (length < 2 || at + length > header_length) break;
    if ((type == ip_option::kLooseSourceRoute || type == ip_option::kStrictSourceRoute) && length >= 7) {
      if (bytes[at + 2] > length) break;
      return IpAddress::from_bytes(bytes + at + length - 4);
    }
    at += length;
  }
  return ip.dst;
}

/// The checksum of a TCP or UDP segment of `n` bytes with its pseudo header (RFC 9293, 3.1; RFC 768), in host order: 0
/// if the segment contains a correct checksum. The header's `length` and `protocol` need not agree with `n`.
inline uint16_t transport_checksum(const Ip4Header& ip, const void* segment, size_t n) {
  const NetIp destination = final_destination(ip);
  return ChecksumSum()
      .add(&ip.src, 4)
      .add(&destination, 4)
      .add16(ip.protocol)
      .add16(static_cast<uint16_t>(n))
      .add(segment, n)
      .checksum();
}

/// Writes the checksum of an IPv4 header, options included.
inline void set_ip_checksum(Ip4Header& ip) {
  ip.checksum = 0;
  ip.checksum = internet_checksum(&ip, static_cast<size_t>(ip.header_length()));
}

}  // namespace headrace
