#pragma once
/// \file
/// Flow hashes: the hash that network cards compute, and the one that divides packets between processors. Both define a
/// flow as flow_key() does: addresses, and ports (TCP, UDP, SCTP) or ESP's security parameters index; for fragments and
/// other protocols, addresses only.

#include <cstdint>

#include "headrace/packet.hh"

namespace headrace {

/// The Toeplitz hash of receive-side scaling over source and destination address and ports, with the default key of
/// Microsoft's specification. All arguments in host order.
uint32_t toeplitz_ip4(uint32_t src, uint32_t dst, uint16_t src_port, uint16_t dst_port);
/// The same for fragments and protocols without ports.
uint32_t toeplitz_ip4(uint32_t src, uint32_t dst);
uint32_t toeplitz_ip6(const uint8_t src[16], const uint8_t dst[16], uint16_t src_port, uint16_t dst_port);
/// The Toeplitz hash of the flow of an IPv4 or IPv6 packet; 0 for other packets.
uint32_t toeplitz_ip(const uint8_t* ip, uint32_t length);
/// The same for an Ethernet frame.
uint32_t toeplitz_frame(const uint8_t* frame, uint32_t length);
/// The worker that a hash belongs to, by an indirection table of 128 entries filled round robin.
inline int rss_worker(uint32_t hash, int workers) {
  return static_cast<int>((hash & 127) % static_cast<uint32_t>(workers));
}

/// A hash of the headers that find_transport() finds; 0 if the packet is not IP.
uint32_t hash_of_headers(const Packet& p);
/// A number for the flow that a packet belongs to: its receive-side-scaling hash if it has one, else
/// hash_of_headers().
inline uint32_t flow_bucket(const Packet& p) {
  const uint32_t hash = p.rx_hash();
  return hash != 0 ? hash : hash_of_headers(p);
}

}  // namespace headrace
