#pragma once
#include "elements/ethernet/vlan_tag.hh"

namespace headrace {

/// Removes the 802.1Q tag of Ethernet packets.
///
///     VLANDecap([ANNO, keyword ETHERTYPE])
///
/// Input: packets that begin with an Ethernet header, with a tag or without; those in which the header ends early are
/// dropped and counted. Output: the packets without the first tag. The MAC header annotation points to their header.
///
/// ANNO true: sets the VLAN_TCI annotation to the tag's 16 bits, or to 0 if there was no tag. Default true.
/// ETHERTYPE: the Ethernet type that marks a tag. Default 0x8100.
struct VLANDecap : Shader<VLANDecap> {
  static constexpr Field<Anchor::kData, 0, vlan::AddressBytes> addresses{};
  static constexpr Field<Anchor::kData, 12, uint16_t> type{};
  static constexpr Field<Anchor::kData, 14, uint16_t> tci_field{};
  static constexpr auto kRegions = regions(ReadWrite{addresses}, Read{type}, Read{tci_field}, ReadWrite{meta::data},
                                           ReadWrite{meta::length}, Write{meta::mac_header}, Write{vlan::tci_anno});
  enum { kShort };
  static constexpr auto kCounters = counters(reason("no Ethernet header"));

  bool annotate = true;
  uint16_t ethertype = eth::kTypeVlan;

  Status configure(Args& args);

  void move(Offsets& at) const { at.mac = at.data += static_cast<int>(vlan::kTagSize); }

  HEADRACE_SHADER Next shade(auto& p) const {
    const uint32_t length = p.length();
    const bool has_tag = length >= vlan::kHeaderSize && p.get(type) == ethertype;
    if (length < (has_tag ? vlan::kTaggedHeaderSize : vlan::kHeaderSize)) [[unlikely]] {
      p.count(kShort);
      return kDrop;
    }
    uint16_t tci = 0;
    if (has_tag) {
      tci = p.get(tci_field);
      const vlan::AddressBytes both = p.get(addresses);
      p.pull(vlan::kTagSize);
      p.set(addresses, both);
    }
    p.set_mac_header();
    if (annotate) p.set(vlan::tci_anno, tci);
    return 0;
  }
};

HEADRACE_ELEMENT(VLANDecap)

}  // namespace headrace
