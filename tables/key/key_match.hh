#pragma once
/// \file
/// Matches on packet keys in the syntax of ovs-ofctl.

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "tables/key/packet_key_view.hh"

namespace headrace {

/// A set of keys: those whose bits under `mask` are `value`, and whose ports lie between `low` and `high`.
struct KeyMatch {
  std::array<uint32_t, key_word::kCount> value{};
  std::array<uint32_t, key_word::kCount> mask{};
  /// Bounds of source and destination port, as in word kPorts, both inclusive.
  uint32_t low = 0;
  uint32_t high = 0xffffffffu;

  bool operator==(const KeyMatch&) const = default;
};

/// Adds one word of a match, which is between commas in ovs-fields(7): `nw_src=10.0.0.0/8`, `tcp`, `tp_dst=80`,
/// `dl_vlan=10`, `vlan_vid=0x1000/0x1000`. Names are those of key_fields(), and `tp_src`, `tp_dst`, `nw_tos`, `dl_vlan`,
/// `vlan_tci` and the protocols `ip`, `icmp`, `tcp`, `udp`, `sctp`, `arp`, `rarp`, `ipv6`, `icmp6`, `tcp6`, `udp6`,
/// `sctp6`, `mpls` and `mplsm`. Ours is that ports may be ranges, `tp_dst=1024-65535`, and that they may be matched with any
/// protocol or none, `ip,tp_dst=80`, as ClassBench's rules do; what has no ports has ICMP's type and code, or zeros. Returns
/// what is wrong, or an empty text.
std::string add_to_match(KeyMatch& match, std::string_view word);

/// Checks that a match has what its fields require: `tp_dst` without a protocol matches nothing that it means. Returns
/// what is missing, or an empty text. Call it when all words are there.
std::string check_match(const KeyMatch& match, std::string_view text);

/// The words of a match, joined by commas; empty for one of all packets. add_to_match() reads what this writes.
std::string unparse_match(const KeyMatch& match);

}  // namespace headrace
