#pragma once
/// \file
/// Structures of messages about the channel, the switch and its ports. Part of codec.cc.

#include "control/openflow/bodies.hh"

namespace headrace::openflow {

/// Messages that are a header only.
template <typename Io, typename T>
requires(std::is_empty_v<T>) void transfer(Io& /*io*/, T& /*empty*/) {}

namespace hello_element {
inline constexpr uint16_t kVersionBitmap = 1;
}

/// Elements that are unknown or damaged are ignored, for a hello must be understood by all.
inline void transfer(Reader& io, Hello& hello) {
  bool found = false;
  while (io.left() >= 4) {
    const uint16_t type = io.peek_u16(0), length = io.peek_u16(2);
    if (length < 4 || length > io.left()) break;
    io.pad(4);
    const auto bytes = io.take(length - 4u);
    if (type == hello_element::kVersionBitmap && !found) {
      found = true;
      Reader words(bytes.first(bytes.size() / 4 * 4), io.version, io.reading);
      words.list(hello.versions, [&](uint32_t& word) { words.u32(word); });
    }
    io.pad(std::min<size_t>(io.left(), (length + 7u) / 8 * 8 - length));
  }
  io.pad(io.left());
}

inline void transfer(Writer& io, const Hello& hello) {
  if (hello.versions.empty()) return;
  const size_t start = io.at();
  io.sized(2, 1, ErrorCode::kRequestBadLen, [&] {
    io.u16(hello_element::kVersionBitmap);
    io.length();
    for (const uint32_t word : hello.versions) io.u32(word);
  });
  const size_t size = io.at() - start;
  io.pad((size + 7) / 8 * 8 - size);
}

template <typename Io>
void transfer(Io& io, Of<Io, Error>& error) {
  io.u16(error.type);
  io.u16(error.code);
  if (!io.is_1_0() && error.type == 0xffff) io.u32(error.experimenter);
  io.rest(error.data);
}

template <typename Io>
void transfer(Io& io, Of<Io, EchoRequest>& echo) {
  io.rest(echo.data);
}
template <typename Io>
void transfer(Io& io, Of<Io, EchoReply>& echo) {
  io.rest(echo.data);
}

template <typename Io>
void transfer(Io& io, Of<Io, Experimenter>& experimenter) {
  io.u32(experimenter.experimenter);
  if (!io.is_1_0()) io.u32(experimenter.type);
  io.rest(experimenter.data);
}

template <typename Io>
void transfer(Io& io, Of<Io, FeaturesReply>& features) {
  io.u64(features.datapath);
  io.u32(features.buffers);
  io.u8(features.tables);
  if (io.is_1_0()) {
    io.pad(3);
    io.flags32(capability_flags(), features.capabilities);
    io.u32(features.actions_1_0);
    io.list(features.ports, [&](auto& port) { transfer(io, port); });
  } else {
    io.u8(features.auxiliary);
    io.pad(2);
    io.flags32(capability_flags(), features.capabilities);
    io.pad(4);
  }
}

template <typename Io>
void transfer_config(Io& io, Of<Io, SwitchConfig>& config) {
  io.u16(config.flags);
  io.u16(config.miss_send_len);
}
template <typename Io>
void transfer(Io& io, Of<Io, GetConfigReply>& config) {
  transfer_config(io, config);
}
template <typename Io>
void transfer(Io& io, Of<Io, SetConfig>& config) {
  transfer_config(io, config);
}

template <typename Io>
void transfer(Io& io, Of<Io, PortStatus>& status) {
  io.u8(status.reason);
  io.pad(7);
  transfer(io, status.port);
}

template <typename Io>
void transfer(Io& io, Of<Io, PortMod>& mod) {
  io.port(mod.port, 0, 4);
  io.bytes(mod.address);
  if (!io.is_1_0()) io.pad(2);
  io.flags32(port_config_flags(), mod.config);
  io.flags32(port_config_flags(), mod.mask);
  io.flags32(port_feature_flags(), mod.advertise);
  io.pad(4);
}

template <typename Io>
void transfer(Io& io, Of<Io, TableMod>& mod) {
  io.u8(mod.table);
  io.pad(3);
  io.u32(mod.config);
}

template <typename Io>
void transfer(Io& io, Of<Io, QueueGetConfigRequest>& request) {
  io.port(request.port, 2, 4);
}

template <typename Io>
void transfer(Io& io, Of<Io, QueueProperty>& property) {
  io.sized(2, 1, ErrorCode::kRequestBadLen, [&] {
    io.u16(property.type);
    io.length();
    io.pad(4);
    if (property.type == queue_property::kMinRate || (property.type == queue_property::kMaxRate && !io.is_1_0())) {
      io.u16(property.rate);
      io.pad(6);
    } else if (property.type == queue_property::kExperimenter && !io.is_1_0()) {
      io.u32(property.experimenter);
      io.pad(4);
      io.rest(property.data);
    } else {
      io.rest(property.data);
    }
  });
}

template <typename Io>
void transfer(Io& io, Of<Io, QueueGetConfigReply>& reply) {
  io.port(reply.port, 6, 4);
  io.list(reply.queues, [&](auto& queue) {
    io.sized(io.is_1_0() ? 4 : 8, 1, ErrorCode::kRequestBadLen, [&] {
      io.u32(queue.queue);
      if (!io.is_1_0()) io.u32(queue.port);
      io.length();
      io.pad(io.is_1_0() ? 2 : 6);
      io.list(queue.properties, [&](auto& property) { transfer(io, property); });
    });
  });
}

/// In 1.0 vendor and subtype, which decode() and encode() treat as parts of the type, come first.
template <typename Io>
void transfer_role(Io& io, Of<Io, RoleState>& state, uint32_t subtype) {
  if (!io.is_1_0()) {
    enumerated(io, state.role, 4, static_cast<uint64_t>(Role::kSlave), ErrorCode::kRoleBadRole);
    io.pad(4);
    io.u64(state.generation);
  } else if constexpr (Io::kReads) {
    io.pad(8);
    enumerated(io, state.role, 4, static_cast<uint64_t>(Role::kSlave) - 1, ErrorCode::kRoleBadRole);
    state.role = static_cast<Role>(static_cast<uint8_t>(state.role) + 1);
  } else {
    if (state.role == Role::kNoChange) io.inexact();
    io.u32(kNiciraVendor);
    io.u32(subtype);
    io.u32(state.role == Role::kNoChange ? 0 : static_cast<uint32_t>(state.role) - 1);
  }
}
template <typename Io>
void transfer(Io& io, Of<Io, RoleRequest>& request) {
  transfer_role(io, request, kNiciraRoleRequest);
}
template <typename Io>
void transfer(Io& io, Of<Io, RoleReply>& reply) {
  transfer_role(io, reply, kNiciraRoleReply);
}

template <typename Io>
void transfer_async(Io& io, Of<Io, AsyncConfig>& config) {
  for (auto* masks : {&config.packet_in, &config.port_status, &config.flow_removed})
    for (auto& mask : *masks) io.u32(mask);
}
template <typename Io>
void transfer(Io& io, Of<Io, GetAsyncReply>& reply) {
  transfer_async(io, reply);
}
template <typename Io>
void transfer(Io& io, Of<Io, SetAsync>& config) {
  transfer_async(io, config);
}

}  // namespace headrace::openflow
