#include "elements/openflow/frame_actions.hh"

#include <array>
#include <cstring>

#include "elements/openflow/packet_frame.hh"
#include "tables/openflow/meter.hh"

namespace headrace::openflow {

namespace {

/// CRC32c (RFC 9260, appendix A) of bytes, from the state `crc`, without the final complement.
uint32_t crc32c(const uint8_t* bytes, size_t n, uint32_t crc) {
  static constexpr std::array<uint32_t, 256> kTable = [] {
    std::array<uint32_t, 256> table{};
    for (uint32_t i = 0; i < 256; ++i) {
      uint32_t c = i;
      for (int bit = 0; bit < 8; ++bit) c = (c & 1) != 0 ? c >> 1 ^ 0x82f63b78 : c >> 1;
      table[i] = c;
    }
    return table;
  }();
  for (size_t i = 0; i < n; ++i) crc = crc >> 8 ^ kTable[(crc ^ bytes[i]) & 0xff];
  return crc;
}

/// The checksum of an SCTP packet, as a little-endian word: with 0 in its place.
uint32_t sctp_checksum(const PacketFrame& frame, const FrameLayout& at) {
  static constexpr uint8_t kNone[4] = {};
  const uint8_t* const p = frame.bytes() + at.transport;
  uint32_t crc = crc32c(p, 8, ~0u);
  crc = crc32c(kNone, 4, crc);
  return ~crc32c(p + 12, static_cast<size_t>(at.transport_end - at.transport - 12), crc);
}

/// Sets a port of SCTP. The checksum changes by as much as it should, so that a wrong one stays wrong. In a fragment it
/// cannot be known, and stays.
void set_sctp_port(FrameEdits<>& edits, PacketFrame& frame, const PacketKey& key) {
  const FrameLayout at = edits.layout();
  const bool has_checksum = at.has_transport(12) && !at.fragment;
  const uint32_t before = has_checksum ? sctp_checksum(frame, at) : 0;
  edits.write(frame, key);
  if (!has_checksum) return;
  frame.set_word(at.transport + 8, frame.word(at.transport + 8) ^ __builtin_bswap32(before ^ sctp_checksum(frame, at)));
}

Edited push_mpls(PacketFrame& frame, const FrameLayout& at, uint32_t type) {
  if (at.end < 14) return Edited::kDone;
  uint32_t shim = 0x100;  // bottom of stack
  if (at.mpls()) {
    shim = frame.word(at.network) & 0xfffffeff;
  } else if (at.version != 0) {
    shim |= frame.byte(at.network + (at.version == 4 ? 8 : 7));
  }
  if (!frame.insert(at.network, 4)) return Edited::kNoRoom;
  frame.set_half(at.type_at - 4, type);
  frame.set_word(at.network - 4, shim);
  return Edited::kDone;
}

void pop_mpls(PacketFrame& frame, const FrameLayout& at, uint32_t type) {
  if (!at.mpls()) return;
  frame.remove(at.network + 4, 4);
  frame.set_half(at.type_at + 4, type);
}

/// IEEE 802.1ah: the frame becomes the customer's frame behind a copy of its addresses and an I-TAG.
Edited push_pbb(PacketFrame& frame, const FrameLayout& at, uint32_t type) {
  if (at.end < 14) return Edited::kDone;
  uint32_t tci = 0;
  if (at.tag) tci = frame.half(14) >> 13 << 29;
  if (at.pbb()) tci = (tci & 0xff000000) | (frame.word(at.network) & 0xffffff);
  if (!frame.insert(12, 18)) return Edited::kNoRoom;
  // The addresses are in front of the tag now, and go back to where they were as well.
  std::memmove(frame.bytes(), frame.bytes() - 18, 12);
  frame.set_half(-6, type);
  frame.set_word(-4, tci);
  return Edited::kDone;
}

void pop_pbb(PacketFrame& frame, const FrameLayout& at) {
  constexpr int32_t kTag = 18;
  if (at.type != kPbbType || at.end < at.network + kPbbBytes + 2) return;
  std::memmove(frame.bytes(), frame.bytes() + at.network + 4, 12);
  frame.remove(at.network + kPbbBytes, kTag);
}

/// Where the TTL lies of the header behind an MPLS label, one more label or IP; 0: there is none that can be told.
int32_t ttl_behind_label(const PacketFrame& frame, const FrameLayout& at) {
  const int32_t next = at.network + 4;
  if ((frame.word(at.network) & 0x100) == 0) return at.end - next >= 4 ? next + 3 : 0;
  if (at.end - next >= 20 && frame.byte(next) >> 4 == 4) return next + 8;
  if (at.end - next >= 40 && frame.byte(next) >> 4 == 6) return next + 7;
  return 0;
}

void copy_ttl_out(PacketFrame& frame, const FrameLayout& at) {
  if (!at.mpls()) return;
  if (const int32_t inner = ttl_behind_label(frame, at)) frame.set_byte(at.network + 3, frame.byte(inner));
}

void copy_ttl_in(PacketFrame& frame, const FrameLayout& at) {
  if (!at.mpls()) return;
  const int32_t inner = ttl_behind_label(frame, at);
  if (inner == 0) return;
  const uint32_t ttl = frame.byte(at.network + 3);
  const int32_t next = at.network + 4;
  if (inner == next + 8) {
    ChecksumDelta delta;
    const uint32_t before = frame.half(inner), after = ttl << 8 | (before & 0xff);
    delta.half(before, after);
    frame.set_half(next + 10, delta.repaired(frame.half(next + 10)));
  }
  frame.set_byte(inner, ttl);
}

}  // namespace

Edited act_on_frame(Packet& packet, const uint32_t* op, PacketKeyContext& context) {
  PacketFrame frame(packet);
  PacketKey key = parse_packet(packet, context);
  FrameEdits<> edits;
  edits.locate(frame, frame.end());
  const FrameLayout& at = edits.layout();
  switch (op_of(op_word(op))) {
    case Op::kOutput:
    case Op::kGroup:
      return Edited::kDone;
    case Op::kSetField: {
      const SetField set(op);
      edits.set_field(set, key);
      if (set.field == oxm_field::kSctpSrc || set.field == oxm_field::kSctpDst) {
        if (edits.any()) set_sctp_port(edits, frame, key);
        return Edited::kDone;
      }
      if (set.field == oxm_field::kTunnelId)
        context.tunnel_id = uint64_t{key.w[key_word::kTunnelId]} << 32 | key.w[key_word::kTunnelId + 1];
      break;
    }
    case Op::kSetNwTtl:
      edits.set_ttl(op_byte(op_word(op)));
      break;
    case Op::kDecNwTtl:
      if (!edits.decrement_ttl(frame)) return Edited::kInvalidTtl;
      break;
    case Op::kPushVlan:
      edits.push_vlan(op_half(op_word(op)), key);
      break;
    case Op::kPopVlan:
      edits.pop_vlan(frame, key);
      break;
    case Op::kSetVlanVid:
      edits.set_tag(op_half(op_word(op)), 0xfff, key);
      break;
    case Op::kSetVlanPcp:
      edits.set_tag(op_half(op_word(op)) << 13, 0xe000, key);
      break;
    case Op::kSetPort:
      edits.set_port((op_byte(op_word(op)) & 1) != 0, op_half(op_word(op)), key);
      break;
    case Op::kPushMpls:
      return push_mpls(frame, at, op_half(op_word(op)));
    case Op::kPopMpls:
      pop_mpls(frame, at, op_half(op_word(op)));
      return Edited::kDone;
    case Op::kSetMplsTtl:
      edits.set_mpls_ttl(op_byte(op_word(op)));
      break;
    case Op::kDecMplsTtl: {
      if (!at.mpls()) break;
      const uint32_t ttl = frame.byte(at.network + 3);
      if (ttl <= 1) return Edited::kInvalidTtl;
      edits.set_mpls_ttl(ttl - 1);
      break;
    }
    case Op::kPushPbb:
      return push_pbb(frame, at, op_half(op_word(op)));
    case Op::kPopPbb:
      pop_pbb(frame, at);
      return Edited::kDone;
    case Op::kCopyTtlOut:
      copy_ttl_out(frame, at);
      return Edited::kDone;
    case Op::kCopyTtlIn:
      copy_ttl_in(frame, at);
      return Edited::kDone;
  }
  return !edits.any() || edits.write(frame, key) ? Edited::kDone : Edited::kNoRoom;
}

void raise_drop_precedence(Packet& packet, uint32_t levels) {
  PacketKeyContext context;
  const uint32_t dscp = parse_packet(packet, context).w[key_word::kTypes] >> 2 & 0x3f;
  const uint32_t raised = dscp_remarked(dscp, levels);
  if (raised == dscp) return;
  const uint32_t op[3] = {
      static_cast<uint32_t>(Op::kSetField) | oxm_field::kIpDscp << 8 | key_word::kTypes << 16 | 1u << 24, raised << 2,
      0xfc};
  act_on_frame(packet, op, context);
}

}  // namespace headrace::openflow
