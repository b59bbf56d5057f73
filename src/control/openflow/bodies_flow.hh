#pragma once
/// \file
/// Structures of messages about packets, flow entries, groups and meters. Part of codec.cc.

#include "control/openflow/bodies.hh"

namespace headrace::openflow {

/// The only part of a match that packet-in of 1.0 has.
inline void transfer_in_port(Reader& io, Match& match) {
  const KeyField& field = key_fields()[oxm::kInPort];
  uint32_t number = 0;
  io.port(number);
  set_key_field(match.key.value, field, {0, number});
  set_key_field(match.key.mask, field, key_field_ones(field));
}
inline void transfer_in_port(Writer& io, const Match& match) {
  const KeyField& field = key_fields()[oxm::kInPort];
  const bool known = get_key_field(match.key.mask, field) == key_field_ones(field);
  io.port(known ? static_cast<uint32_t>(get_key_field(match.key.value, field).low) : port::kAny);
}

/// A reason; those behind `last_1_0` are `last_1_0` in 1.0.
template <typename Reason>
void transfer_reason(Reader& io, Reason& reason, Reason last_1_0) {
  io.u8(reason);
  if (io.is_1_0() && reason > last_1_0) reason = last_1_0;
}
template <typename Reason>
void transfer_reason(Writer& io, Reason reason, Reason last_1_0) {
  if (io.is_1_0() && reason > last_1_0) {
    io.inexact();
    reason = last_1_0;
  }
  io.u8(reason);
}

template <typename Io>
void transfer(Io& io, Of<Io, PacketIn>& packet) {
  io.u32(packet.buffer);
  io.u16(packet.total_len);
  if (io.is_1_0()) {
    transfer_in_port(io, packet.match);
    transfer_reason(io, packet.reason, PacketInReason::kAction);
    io.pad(1);
  } else {
    transfer_reason(io, packet.reason, PacketInReason::kAction);
    io.u8(packet.table);
    io.u64(packet.cookie);
    match(io, packet.match);
    io.pad(2);
  }
  io.rest(packet.data);
}

template <typename Io>
void transfer(Io& io, Of<Io, FlowRemoved>& removed) {
  if (io.is_1_0()) match(io, removed.match);
  io.u64(removed.cookie);
  io.u16(removed.priority);
  transfer_reason(io, removed.reason, FlowRemovedReason::kDelete);
  if (io.is_1_0()) {
    io.pad(1);
  } else {
    io.u8(removed.table);
  }
  all_u32(io, removed.duration_s, removed.duration_ns);
  io.u16(removed.idle_timeout);
  if (io.is_1_0()) {
    io.pad(2);
  } else {
    io.u16(removed.hard_timeout);
  }
  all_u64(io, removed.packets, removed.bytes);
  if (!io.is_1_0()) match(io, removed.match);
}

inline void transfer(Reader& io, PacketOut& packet) {
  io.u32(packet.buffer);
  io.port(packet.in_port);
  const auto size = static_cast<size_t>(io.number(2));
  if (!io.is_1_0()) io.pad(6);
  if (size > io.left()) return io.fail(ErrorCode::kRequestBadLen);
  io.within(size, ErrorCode::kActionBadLen, [&] { actions(io, packet.actions); });
  io.rest(packet.data);
}
inline void transfer(Writer& io, const PacketOut& packet) {
  io.u32(packet.buffer);
  io.port(packet.in_port);
  const size_t size_at = io.at();
  io.pad(io.is_1_0() ? 2 : 8);
  const size_t start = io.at();
  actions(io, packet.actions, nullptr);
  io.put_u16(size_at, io.at() - start);
  io.rest(packet.data);
}

/// Instructions, or actions in 1.0, up to the end of what they are in.
inline void transfer_instructions(Reader& io, std::vector<Instruction>& list, const Match& /*match*/) {
  instructions(io, list);
}
inline void transfer_instructions(Writer& io, const std::vector<Instruction>& list, const Match& match) {
  instructions(io, list, match.key);
}

template <typename Io>
void transfer_flow_flags(Io& io, Of<Io, FlowMod>& mod) {
  io.flags16(flow_mod_flags(), mod.flags);
  if constexpr (Io::kReads) {
    uint64_t known = 0;
    for (const Definition& row : flow_mod_flags())
      known |= flags_from_wire(flow_mod_flags(), io.version,
                               row.number(io.version) < 0 ? 0 : static_cast<uint32_t>(row.number(io.version)));
    if ((mod.flags & ~known) != 0) io.object(ErrorCode::kFlowModBadFlags);
  }
}

template <typename Io>
void transfer(Io& io, Of<Io, FlowMod>& mod) {
  constexpr auto kLast = static_cast<uint64_t>(FlowCommand::kDeleteStrict);
  if (io.is_1_0()) match(io, mod.match);
  io.u64(mod.cookie);
  if (!io.is_1_0()) {
    io.u64(mod.cookie_mask);
    io.u8(mod.table);
  }
  enumerated(io, mod.command, io.is_1_0() ? 2 : 1, kLast, ErrorCode::kFlowModBadCommand);
  io.u16(mod.idle_timeout);
  io.u16(mod.hard_timeout);
  io.u16(mod.priority);
  io.u32(mod.buffer);
  io.port(mod.out_port);
  if (!io.is_1_0()) io.u32(mod.out_group);
  transfer_flow_flags(io, mod);
  if (!io.is_1_0()) {
    io.pad(2);
    match(io, mod.match);
  }
  transfer_instructions(io, mod.instructions, mod.match);
}

template <typename Io>
void transfer(Io& io, Of<Io, GroupMod>& mod) {
  enumerated(io, mod.command, 2, static_cast<uint64_t>(GroupCommand::kDelete), ErrorCode::kGroupModBadCommand);
  enumerated(io, mod.type, 1, static_cast<uint64_t>(GroupType::kFastFailover), ErrorCode::kGroupModBadType);
  io.pad(1);
  io.u32(mod.group);
  io.list(mod.buckets, [&](auto& bucket) { transfer(io, bucket); });
}

template <typename Io>
void transfer(Io& io, Of<Io, MeterMod>& mod) {
  enumerated(io, mod.command, 2, static_cast<uint64_t>(MeterCommand::kDelete), ErrorCode::kMeterModBadCommand);
  io.u16(mod.flags);
  if constexpr (Io::kReads) {
    constexpr uint16_t kUnits = meter_flag::kKbps | meter_flag::kPktps;
    constexpr uint16_t kKnown = kUnits | meter_flag::kBurst | meter_flag::kStats;
    if (mod.command != MeterCommand::kDelete && ((mod.flags & ~kKnown) != 0 || (mod.flags & kUnits) == kUnits))
      io.object(ErrorCode::kMeterModBadFlags);
  }
  io.u32(mod.meter);
  io.list(mod.bands, [&](auto& band) { transfer(io, band); });
}

}  // namespace headrace::openflow
