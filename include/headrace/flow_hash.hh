#pragma once
/// \file
/// Hashes of flows: the one of network cards, and the one by which packets are divided between processors. Both have
/// the same idea of a flow, see flow_key(): addresses, and ports (TCP, UDP, SCTP) or ESP's security parameters index;
/// addresses only for fragments and other protocols.

#include <cstdint>

namespace headrace {

class Packet;

/// The Toeplitz hash of receive-side scaling over source and destination address and ports, with the default key of
/// Microsoft's specification. All arguments in host order.
uint32_t toeplitz_ip4(uint32_t src, uint32_t dst, uint16_t src_port, uint16_t dst_port);
/// The same for fragments and protocols without ports.
uint32_t toeplitz_ip4(uint32_t src, uint32_t dst);
uint32_t toeplitz_ip6(const uint8_t src[16], const uint8_t dst[16], uint16_t src_port, uint16_t dst_port);
/// The Toeplitz hash of the flow of an IPv4 or IPv6 packet; 0 for what is neither.
uint32_t toeplitz_ip(const uint8_t* ip, uint32_t length);
/// The same for an Ethernet frame.
uint32_t toeplitz_frame(const uint8_t* frame, uint32_t length);
/// The worker a hash belongs to: an indirection table of 128 entries, filled in turn.
inline int rss_worker(uint32_t hash, int workers) {
  return static_cast<int>((hash & 127) % static_cast<uint32_t>(workers));
}

/// A number of the flow that a packet belongs to: its receive-side-scaling hash if it has one, else one made from its
/// headers, wherever they are marked; 0 for what is not IP.
uint32_t flow_bucket(const Packet& p);

}  // namespace headrace
