#pragma once
/// \file
/// Protocol headers as they lie in packets, for host code. All have alignment 1; integers are converted from and to
/// network order when they are read and assigned.

#include <cstddef>
#include <cstdint>

#include "headrace/addresses.hh"
#include "headrace/ip_protocol.hh"
#include "headrace/packet.hh"

namespace headrace {

/// An unsigned integer of `Bytes` bytes in network order.
template <typename T>
class NetworkOrder {
 public:
  NetworkOrder() = default;
  NetworkOrder(T value) { *this = value; }
  NetworkOrder& operator=(T value) {
    for (size_t i = 0; i < sizeof(T); ++i) bytes_[i] = static_cast<uint8_t>(value >> 8 * (sizeof(T) - 1 - i));
    return *this;
  }
  operator T() const {
    T value = 0;
    for (const uint8_t byte : bytes_) value = static_cast<T>(value << 8 | byte);
    return value;
  }

 private:
  uint8_t bytes_[sizeof(T)];
};
using Net16 = NetworkOrder<uint16_t>;
using Net32 = NetworkOrder<uint32_t>;

/// An IPv4 address in a header.
class NetIp {
 public:
  NetIp() = default;
  NetIp(IpAddress address) { *this = address; }
  NetIp& operator=(IpAddress address) {
    address.copy_to(bytes_);
    return *this;
  }
  operator IpAddress() const { return IpAddress::from_bytes(bytes_); }

 private:
  uint8_t bytes_[4];
};

/// An Ethernet address in a header.
class NetEther {
 public:
  NetEther() = default;
  NetEther(EtherAddress address) { *this = address; }
  NetEther& operator=(EtherAddress address) {
    address.copy_to(bytes_);
    return *this;
  }
  operator EtherAddress() const { return EtherAddress::from_bytes(bytes_); }

 private:
  uint8_t bytes_[6];
};

struct EtherHeader {
  NetEther dst, src;
  Net16 type;
};
static_assert(sizeof(EtherHeader) == 14);

/// ARP for IPv4 over Ethernet (RFC 826).
struct ArpHeader {
  static constexpr uint16_t kEthernet = 1;
  static constexpr uint16_t kRequest = 1, kReply = 2;
  Net16 hardware, protocol;
  uint8_t hardware_length, protocol_length;
  Net16 operation;
  NetEther sender_ether;
  NetIp sender_ip;
  NetEther target_ether;
  NetIp target_ip;
};
static_assert(sizeof(ArpHeader) == 28);

/// IPv4 (RFC 791), without options.
struct Ip4Header {
  uint8_t version_ihl, tos;
  Net16 total_length, id, fragment;
  uint8_t ttl, protocol;
  Net16 checksum;
  NetIp src, dst;

  /// Length in bytes, including options, as given in the header.
  int header_length() const { return (version_ihl & 0xf) << 2; }
  /// True for every fragment, including the first.
  bool is_fragment() const { return fragment & 0x3fff; }
  bool is_first_fragment() const { return (fragment & 0x1fff) == 0; }
  uint8_t* bytes() { return reinterpret_cast<uint8_t*>(this); }
  const uint8_t* bytes() const { return reinterpret_cast<const uint8_t*>(this); }
};
static_assert(sizeof(Ip4Header) == 20);

namespace ip_option {
inline constexpr uint8_t kEnd = 0, kNop = 1, kRecordRoute = 7, kTimestamp = 68, kLooseSourceRoute = 131,
                         kStrictSourceRoute = 137;
/// The "copied" bit: set in options that every fragment carries.
inline constexpr uint8_t kCopied = 0x80;
}  // namespace ip_option

struct UdpHeader {
  Net16 src_port, dst_port, length, checksum;
};
static_assert(sizeof(UdpHeader) == 8);

struct TcpHeader {
  Net16 src_port, dst_port;
  Net32 sequence, acknowledgment;
  uint8_t data_offset;  // in the upper four bits, in 32-bit words
  uint8_t flags;
  Net16 window, checksum, urgent;

  int header_length() const { return data_offset >> 4 << 2; }
};
static_assert(sizeof(TcpHeader) == 20);

struct IcmpHeader {
  static constexpr uint8_t kEchoReply = 0, kUnreachable = 3, kSourceQuench = 4, kRedirect = 5, kEcho = 8,
                           kTimeExceeded = 11, kParameterProblem = 12, kTimestamp = 13, kTimestampReply = 14,
                           kInfoRequest = 15, kInfoReply = 16;
  uint8_t type, code;
  Net16 checksum;
  Net32 rest;  // its meaning depends on the type
};
static_assert(sizeof(IcmpHeader) == 8);

/// The IPv4 header of a packet; null unless a network header is marked, its length field is plausible, and the whole
/// header lies within the packet.
inline Ip4Header* ip4_header(Packet& p) {
  if (!p.has_network_header() || p.network_length() < 20) return nullptr;
  auto* header = reinterpret_cast<Ip4Header*>(p.network_header());
  const int length = header->header_length();
  return length >= 20 && length <= p.network_length() ? header : nullptr;
}
inline const Ip4Header* ip4_header(const Packet& p) { return ip4_header(const_cast<Packet&>(p)); }

}  // namespace headrace
