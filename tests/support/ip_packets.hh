#pragma once
/// \file
/// IPv4 packets with right checksums, and what is in packets that come out.

#include <string>
#include <string_view>

#include "headrace/args.hh"
#include "headrace/checksum.hh"
#include "headrace/headers.hh"

namespace headrace::testing {

/// Addresses and ports of a packet in a test.
struct Ends {
  std::string_view src;
  uint16_t sport;
  std::string_view dst;
  uint16_t dport;
};

inline IpAddress address(std::string_view text) {
  IpAddress result;
  parse_argument(text, result, ArgContext());
  return result;
}

/// An IP packet around `payload`.
inline std::string ip_packet(std::string_view src, std::string_view dst, uint8_t protocol, std::string_view payload,
                             uint16_t fragment = 0) {
  std::string bytes(20, '\0');
  auto& ip = *reinterpret_cast<Ip4Header*>(bytes.data());
  ip.version_ihl = 0x45;
  ip.total_length = static_cast<uint16_t>(20 + payload.size());
  ip.fragment = fragment;
  ip.ttl = 64;
  ip.protocol = protocol;
  ip.src = address(src);
  ip.dst = address(dst);
  set_ip_checksum(ip);
  return bytes + std::string(payload);
}

inline std::string udp_packet(const Ends& ends, std::string_view data, bool with_checksum = true) {
  std::string segment(8, '\0');
  segment += data;
  auto& udp = *reinterpret_cast<UdpHeader*>(segment.data());
  udp.src_port = ends.sport;
  udp.dst_port = ends.dport;
  udp.length = static_cast<uint16_t>(segment.size());
  std::string bytes = ip_packet(ends.src, ends.dst, ip_protocol::kUdp, segment);
  if (with_checksum) {
    const uint16_t sum =
        transport_checksum(*reinterpret_cast<const Ip4Header*>(bytes.data()), bytes.data() + 20, segment.size());
    reinterpret_cast<UdpHeader*>(bytes.data() + 20)->checksum = sum ? sum : 0xffff;
  }
  return bytes;
}

struct TcpFields {
  uint8_t flags = 0x10;
  uint32_t sequence = 0, acknowledgment = 0;
  std::string_view options = {};  // a multiple of four bytes
};

inline std::string tcp_packet(const Ends& ends, std::string_view data, const TcpFields& fields = {}) {
  std::string segment(20, '\0');
  segment += fields.options;
  segment += data;
  auto& tcp = *reinterpret_cast<TcpHeader*>(segment.data());
  tcp.src_port = ends.sport;
  tcp.dst_port = ends.dport;
  tcp.sequence = fields.sequence;
  tcp.acknowledgment = fields.acknowledgment;
  tcp.data_offset = static_cast<uint8_t>((20 + fields.options.size()) / 4 << 4);
  tcp.flags = fields.flags;
  std::string bytes = ip_packet(ends.src, ends.dst, ip_protocol::kTcp, segment);
  reinterpret_cast<TcpHeader*>(bytes.data() + 20)->checksum =
      transport_checksum(*reinterpret_cast<const Ip4Header*>(bytes.data()), bytes.data() + 20, segment.size());
  return bytes;
}

/// An echo request (type 8) or reply (0).
inline std::string ping_packet(std::string_view src, std::string_view dst, uint8_t type, uint16_t identifier,
                               std::string_view data, uint16_t sequence = 0) {
  std::string message(8, '\0');
  message += data;
  auto& icmp = *reinterpret_cast<IcmpHeader*>(message.data());
  icmp.type = type;
  icmp.rest = uint32_t{identifier} << 16 | sequence;
  icmp.checksum = internet_checksum(message.data(), message.size());
  return ip_packet(src, dst, ip_protocol::kIcmp, message);
}

/// An ICMP error that quotes `bytes` of a packet.
inline std::string icmp_error(std::string_view src, std::string_view dst, uint8_t type, std::string_view quoted) {
  std::string message(8, '\0');
  message += quoted;
  auto& icmp = *reinterpret_cast<IcmpHeader*>(message.data());
  icmp.type = type;
  icmp.checksum = internet_checksum(message.data(), message.size());
  return ip_packet(src, dst, ip_protocol::kIcmp, message);
}

/// "10.0.0.1 1000 > 20.0.0.1 80", without ports for protocols that have none.
inline std::string ends_of(std::string_view bytes) {
  const auto& ip = *reinterpret_cast<const Ip4Header*>(bytes.data());
  const auto& ports = *reinterpret_cast<const UdpHeader*>(bytes.data() + ip.header_length());
  const std::string src = IpAddress(ip.src).unparse(), dst = IpAddress(ip.dst).unparse();
  if (ip.protocol != ip_protocol::kTcp && ip.protocol != ip_protocol::kUdp) return src + " > " + dst;
  return fmt::format("{} {} > {} {}", src, static_cast<uint16_t>(ports.src_port), dst,
                     static_cast<uint16_t>(ports.dst_port));
}

/// True if the checksums of a packet are right: of IP, and of TCP, ICMP, or UDP if it has one.
inline bool checksums_are_right(std::string_view bytes) {
  const auto& ip = *reinterpret_cast<const Ip4Header*>(bytes.data());
  const auto header = static_cast<size_t>(ip.header_length());
  const char* segment = bytes.data() + header;
  const size_t size = ip.total_length - header;
  if (internet_checksum(bytes.data(), header) != 0) return false;
  if (ip.protocol == ip_protocol::kIcmp) return internet_checksum(segment, size) == 0;
  if (ip.protocol == ip_protocol::kUdp && reinterpret_cast<const UdpHeader*>(segment)->checksum == 0) return true;
  return transport_checksum(ip, segment, size) == 0;
}

}  // namespace headrace::testing
