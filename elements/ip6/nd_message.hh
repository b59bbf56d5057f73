#pragma once
/// \file
/// Neighbor Discovery for IPv6 over Ethernet (RFC 4861): the messages that find a neighbor's Ethernet address.

#include <optional>

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

/// The checksum of an ICMPv6 message of `length` bytes with its pseudo header (RFC 8200, 8.1), in host order: 0 if the
/// message contains a correct one.
uint16_t icmp6_checksum(const Ip6Header& ip6, const void* message, uint16_t length);

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

/// The message in `p`, which must begin with its Ethernet header; null unless the message has this type and is valid
/// (RFC 4861, 7.1): hop limit 255, code 0, correct checksum, complete options. The option may be missing: only the
/// fields up to `target` can be read.
const NdMessage* nd_message(const Packet& p, uint8_t type);

/// The Ethernet address in the first option of this type, if there is one. `nd` must come from nd_message().
std::optional<EtherAddress> nd_ether(const NdMessage& nd, uint8_t option);

/// The solicited-node address of `target` (RFC 4291, 2.7.1).
Ip6Address solicited_node(const Ip6Address& target);
/// The Ethernet group of a multicast address (RFC 2464, 7).
EtherAddress ip6_multicast_group(const Ip6Address& ip);

/// A frame with the message; null without a buffer.
Packet* make_nd_message(uint8_t type, uint8_t flags, const EtherAddress& from_ether, const Ip6Address& from,
                        const EtherAddress& to_ether, const Ip6Address& to, const Ip6Address& target, uint8_t option);

}  // namespace headrace
