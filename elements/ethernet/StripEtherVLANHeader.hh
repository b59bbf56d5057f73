#pragma once
#include "elements/ethernet/vlan_tag.hh"

namespace headrace {

/// Removes the Ethernet header of packets, with its 802.1Q tag if it has one.
///
///     StripEtherVLANHeader([NATIVE_VLAN])
///
/// Input: packets that begin with an Ethernet header; truncated ones are dropped and counted. Output 0: the payload.
/// The VLAN_TCI annotation is set to the 16 bits of the tag, or to NATIVE_VLAN for a packet without one. Output 1
/// (optional): if NATIVE_VLAN is negative, packets without a tag, unchanged; without that output they are dropped and
/// counted.
///
/// NATIVE_VLAN: up to 4095. Default 0.
struct StripEtherVLANHeader : Shader<StripEtherVLANHeader> {
  static constexpr Ports kPorts{"1/1-2"};
  static constexpr Field<Anchor::kData, 12, uint16_t> type{};
  static constexpr Field<Anchor::kData, 14, uint16_t> tci_field{};
  static constexpr auto kRegions =
      regions(Read{type}, Read{tci_field}, ReadWrite{meta::data}, ReadWrite{meta::length}, Write{vlan::tci_anno});
  enum { kShort, kNoTag };
  static constexpr auto kCounters = counters(reason("no Ethernet header"), reason("no VLAN tag"));

  int32_t native = 0;

  Status configure(Args& args);

  void move(Offsets& at) const { at.data += static_cast<int>(vlan::kTaggedHeaderSize); }

  HEADRACE_SHADER Next shade(auto& p) const {
    const uint32_t length = p.length();
    const bool has_tag = length >= vlan::kHeaderSize && p.get(type) == eth::kTypeVlan;
    if (length < (has_tag ? vlan::kTaggedHeaderSize : vlan::kHeaderSize)) [[unlikely]] {
      p.count(kShort);
      return kDrop;
    }
    if (!has_tag && native < 0) {
      p.count(kNoTag);
      return 1;
    }
    const uint16_t tci = has_tag ? p.get(tci_field) : static_cast<uint16_t>(native);
    p.pull(has_tag ? vlan::kTaggedHeaderSize : vlan::kHeaderSize);
    p.set(vlan::tci_anno, tci);
    return 0;
  }
};

HEADRACE_ELEMENT(StripEtherVLANHeader)
HEADRACE_ELEMENT_ALIAS(StripEtherVlanHeader, StripEtherVLANHeader)

}  // namespace headrace
