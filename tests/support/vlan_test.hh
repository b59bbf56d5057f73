#pragma once
/// \file
/// Frames for the tests of VLAN elements.

#include "headrace/packet.hh"
#include "support/element_test.hh"

namespace headrace::testing {

/// An untagged frame.
inline constexpr std::string_view kPlainFrame = "020202020202 010101010101 0800 aabb";

/// A packet that carries `tci` in its annotation.
inline Packet* with_tci(std::string_view hex, uint16_t tci) {
  const std::string bytes = from_hex(hex);
  Packet* p = Packet::make(bytes.data(), static_cast<uint32_t>(bytes.size()));
  p->set_anno_u16(anno_offset::kVlanTci, tci);
  return p;
}

/// The annotation of packet `i` that a Capture holds.
inline uint16_t tci_of(TestRouter& r, const char* name, size_t i = 0) {
  return capture(r, name).seen().at(i).packet->anno_u16(anno_offset::kVlanTci);
}

}  // namespace headrace::testing
