#pragma once
#include "elements/ethernet/vlan_tag.hh"

namespace headrace {

/// Puts an Ethernet header with an 802.1Q tag in front of packets.
///
///     EtherVLANEncap(ETHERTYPE, SRC, DST [, VLAN_TCI, VLAN_PCP, keyword VLAN_ID, NATIVE_VLAN])
///
/// The MAC header annotation points to the new header of 18 bytes. A packet whose buffer has no room is dropped and
/// counted. VLANEncap adds a tag to an existing header.
///
/// ETHERTYPE: the type of the payload, such as 0x0800; the outer type is 0x8100.
/// SRC, DST: Ethernet addresses.
/// VLAN_TCI: the tag's 16 bits, VLAN and priority, or `ANNO`: those of the packet's VLAN_TCI annotation.
/// VLAN_PCP: the priority, 0 to 7. Default 0.
/// VLAN_ID: the VLAN, 0 to 4095, instead of VLAN_TCI. Default 0.
/// NATIVE_VLAN: packets for this VLAN get a header of 14 bytes without a tag. -1 for none. Default 0.
///
/// Handlers: `ethertype`, `src`, `dst`, `vlan_tci`, `vlan_id`, `vlan_pcp`, `native_vlan` (rw).
struct EtherVLANEncap : Shader<EtherVLANEncap> {
  static constexpr Field<Anchor::kMac, 0, vlan::TaggedHeaderBytes> tagged_header{};
  static constexpr auto kRegions = regions(ReadWrite{meta::data}, ReadWrite{meta::length}, Write{meta::mac_header},
                                           Write{tagged_header}, Read{vlan::tci_anno});
  enum { kNoRoom };
  static constexpr auto kCounters = counters(reason("no room in front"));

  VlanTag tag;
  EtherHeaderBytes header{};

  Status configure(Args& args);
  void add_handlers(Handlers& handlers);

  void move(Offsets& at) const { at.mac = at.data -= static_cast<int>(vlan::kTaggedHeaderSize); }

  HEADRACE_SHADER Next shade(auto& p) const {
    const uint16_t tci = tag.tci_of(p);
    const bool native = tag.is_native(tci);
    if (!p.push(native ? vlan::kHeaderSize : vlan::kTaggedHeaderSize)) {
      p.count(kNoRoom);
      return kDrop;
    }
    p.set_mac_header();
    if (native) {
      p.set(eth::header, header);
      return 0;
    }
    vlan::TaggedHeaderBytes fresh{};
    for (int i = 0; i < 12; ++i) fresh.b[i] = header.b[i];
    fresh.b[12] = eth::kTypeVlan >> 8;
    fresh.b[13] = eth::kTypeVlan & 0xff;
    fresh.b[14] = static_cast<uint8_t>(tci >> 8);
    fresh.b[15] = static_cast<uint8_t>(tci);
    fresh.b[16] = header.b[12];
    fresh.b[17] = header.b[13];
    p.set(tagged_header, fresh);
    return 0;
  }
};

HEADRACE_ELEMENT(EtherVLANEncap)
HEADRACE_ELEMENT_ALIAS(EtherVlanEncap, EtherVLANEncap)

}  // namespace headrace
