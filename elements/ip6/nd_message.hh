#pragma once
/// \file
/// Neighbor Discovery for IPv6 over Ethernet (RFC 4861): the messages that find a neighbor's Ethernet address.

#include "headrace/headers.hh"
#include "headrace/packet.hh"

namespace headrace {

/// IPv6 (RFC 8200), without extension headers.
struct Ip6Header {
  Net32 version_class_flow;
  Net16 payload_length;
  uint8_t next_header, hop_limit;
  uint8_t src[16], dst[16];
};
static_assert(sizeof(Ip6Header) == 40);

/// A solicitation or advertisement with the option that carries an Ethernet address, in its frame.
struct NdMessage {
  static constexpr uint8_t kSolicitation = 135, kAdvertisement = 136;
  static constexpr uint8_t kSourceOption = 1, kTargetOption = 2;
  static constexpr uint8_t kRouterFlag = 0x80, kSolicitedFlag = 0x40, kOverrideFlag = 0x20;
  /// From the ICMPv6 header to the end.
  static constexpr uint32_t kIcmpLength = 32;

  EtherHeader ether;
  Ip6Header ip6;
  uint8_t type, code;
  Net16 checksum;
  uint8_t flags, reserved[3];
  uint8_t target[16];
  uint8_t option, option_units;
  NetEther option_ether;
};
static_assert(sizeof(NdMessage) == 14 + 40 + NdMessage::kIcmpLength);

/// The message in `p`, which begins with its Ethernet header, if it is of `type`, no router forwarded it, and its
/// checksum is right; else null. A solicitation may lack the option: only the fields up to `target` are there for sure.
const NdMessage* nd_message(const Packet& p, uint8_t type);

/// True if the message carries `option` directly behind its target.
bool has_nd_option(const Packet& p, uint8_t option);

/// A frame with the message; null without a buffer.
Packet* make_nd_message(uint8_t type, uint8_t flags, const EtherAddress& from_ether, const Ip6Address& from,
                        const EtherAddress& to_ether, const Ip6Address& to, const Ip6Address& target, uint8_t option);

}  // namespace headrace
