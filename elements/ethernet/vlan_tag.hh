#pragma once
/// \file
/// The 802.1Q tag as shaders read and write it.

#include <headrace/shader.hh>

namespace headrace {

namespace vlan {

/// The VLAN_TCI annotation.
inline constexpr Field<Anchor::kAnno, 20, uint16_t> tci_anno{};

struct AddressBytes {
  uint8_t b[12];
};
/// Both addresses, then the tag: its Ethernet type and TCI.
struct TaggedBytes {
  uint8_t b[16];
};
/// A whole tagged header: addresses, tag, the type of what follows.
struct TaggedHeaderBytes {
  uint8_t b[18];
};

inline constexpr uint32_t kTagSize = 4;
inline constexpr uint32_t kHeaderSize = sizeof(EtherHeaderBytes);
inline constexpr uint32_t kTaggedHeaderSize = sizeof(TaggedHeaderBytes);
inline constexpr uint16_t kIdMask = 0xfff;

}  // namespace vlan

/// Which tag an element gives to packets.
struct VlanTag {
  uint16_t tci = 0;
  bool from_annotation = false;
  /// The VLAN whose packets are sent without a tag; -1: none.
  int16_t native = 0;

  HEADRACE_SHADER uint16_t tci_of(auto& p) const { return from_annotation ? p.get(vlan::tci_anno) : tci; }
  HEADRACE_SHADER bool is_native(uint16_t packet_tci) const { return (packet_tci & vlan::kIdMask) == native; }
};

}  // namespace headrace
