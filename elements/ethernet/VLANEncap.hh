#pragma once
#include "elements/ethernet/vlan_tag.hh"

namespace headrace {

/// Adds an 802.1Q tag to Ethernet packets.
///
///     VLANEncap([VLAN_TCI, VLAN_PCP, keyword VLAN_ID, NATIVE_VLAN, ETHERTYPE])
///
/// Input: packets that begin with an Ethernet header; shorter ones are dropped and counted, as are those whose buffer
/// has no room. The MAC header annotation points to the new header. EtherVLANEncap adds a whole header.
///
/// VLAN_TCI: the tag's 16 bits, VLAN and priority, or `ANNO`: those of the packet's VLAN_TCI annotation.
/// VLAN_PCP: the priority, 0 to 7. Default 0.
/// VLAN_ID: the VLAN, 0 to 4095, instead of VLAN_TCI. Default 0.
/// NATIVE_VLAN: packets for this VLAN get no tag. -1 for none. Default 0.
/// ETHERTYPE: the Ethernet type that marks a tag. 0x88a8 is that of service providers (802.1ad). Default 0x8100.
///
/// Handlers: `vlan_tci`, `vlan_id`, `vlan_pcp`, `native_vlan`, `ethertype` (rw).
struct VLANEncap : Shader<VLANEncap> {
  static constexpr Field<Anchor::kData, 0, vlan::AddressBytes> addresses{};
  static constexpr Field<Anchor::kData, 0, vlan::TaggedBytes> tagged{};
  static constexpr auto kRegions = regions(Read{addresses}, Write{tagged}, ReadWrite{meta::data},
                                           ReadWrite{meta::length}, Write{meta::mac_header}, Read{vlan::tci_anno});
  enum { kShort, kNoRoom };
  static constexpr auto kCounters = counters(reason("no Ethernet header"), reason("no room in front"));

  VlanTag tag;
  uint16_t ethertype = eth::kTypeVlan;

  Status configure(Args& args);
  void add_handlers(Handlers& handlers);

  void move(Offsets& at) const { at.mac = at.data -= static_cast<int>(vlan::kTagSize); }

  HEADRACE_SHADER Next shade(auto& p) const {
    if (p.length() < vlan::kHeaderSize) [[unlikely]] {
      p.count(kShort);
      return kDrop;
    }
    const uint16_t tci = tag.tci_of(p);
    if (tag.is_native(tci)) {
      p.set_mac_header();
      return 0;
    }
    const vlan::AddressBytes old = p.get(addresses);
    if (!p.push(vlan::kTagSize)) {
      p.count(kNoRoom);
      return kDrop;
    }
    vlan::TaggedBytes fresh{};
    for (int i = 0; i < 12; ++i) fresh.b[i] = old.b[i];
    fresh.b[12] = static_cast<uint8_t>(ethertype >> 8);
    fresh.b[13] = static_cast<uint8_t>(ethertype);
    fresh.b[14] = static_cast<uint8_t>(tci >> 8);
    fresh.b[15] = static_cast<uint8_t>(tci);
    p.set_mac_header();
    p.set(tagged, fresh);
    return 0;
  }
};

HEADRACE_ELEMENT(VLANEncap)

}  // namespace headrace
