#pragma once
/// \file
/// The headers of a ping.

#include "headrace/checksum.hh"
#include "headrace/headers.hh"
#include "headrace/packet.hh"

namespace headrace {

/// Writes the IP and ICMP headers of an echo request (RFC 792) into the first bytes of `p`, whose other bytes are its
/// data, and sets the network header and the destination annotation.
/// \param number sequence number of the request, also the IP identification
inline void write_echo_request(Packet& p, IpAddress src, IpAddress dst, uint8_t ttl, uint16_t identifier,
                               uint16_t number) {
  p.set_network_header(0, sizeof(Ip4Header));
  auto& ip = *reinterpret_cast<Ip4Header*>(p.data());
  ip.version_ihl = 0x45;
  ip.tos = 0;
  ip.total_length = static_cast<uint16_t>(p.length());
  ip.id = number;
  ip.fragment = 0;
  ip.ttl = ttl;
  ip.protocol = ip_protocol::kIcmp;
  ip.src = src;
  ip.dst = dst;
  set_ip_checksum(ip);

  auto& icmp = *reinterpret_cast<IcmpHeader*>(&ip + 1);
  icmp.type = IcmpHeader::kEcho;
  icmp.code = 0;
  icmp.checksum = 0;
  icmp.rest = uint32_t{identifier} << 16 | number;
  icmp.checksum = internet_checksum(&icmp, p.length() - sizeof(Ip4Header));
  dst.copy_to(p.anno() + anno_offset::kDstIp);
}

}  // namespace headrace
