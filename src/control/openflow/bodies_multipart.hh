#pragma once
/// \file
/// Structures of multipart messages. Part of codec.cc.

#include "control/openflow/bodies.hh"
#include "control/openflow/bodies_control.hh"
#include "control/openflow/bodies_flow.hh"

namespace headrace::openflow {

template <typename Io>
void transfer_flow_request(Io& io, auto& request) {
  if (io.is_1_0()) match(io, request.match);
  io.u8(request.table);
  io.pad(io.is_1_0() ? 1 : 3);
  io.port(request.out_port);
  if (io.is_1_0()) return;
  io.u32(request.out_group);
  io.pad(4);
  all_u64(io, request.cookie, request.cookie_mask);
  match(io, request.match);
}
template <typename Io>
void transfer(Io& io, Of<Io, FlowRequest<MultipartType::kFlow>>& request) {
  transfer_flow_request(io, request);
}
template <typename Io>
void transfer(Io& io, Of<Io, FlowRequest<MultipartType::kAggregate>>& request) {
  transfer_flow_request(io, request);
}

template <typename Io>
void transfer(Io& io, Of<Io, PortStatsRequest>& request) {
  io.port(request.port, 6, 4);
}

template <typename Io>
void transfer(Io& io, Of<Io, QueueStatsRequest>& request) {
  io.port(request.port, 2, 0);
  io.u32(request.queue);
}

template <typename Io>
void transfer_number(Io& io, auto& number) {
  io.u32(number);
  io.pad(4);
}
template <typename Io>
void transfer(Io& io, Of<Io, NumberRequest<MultipartType::kGroup>>& request) {
  transfer_number(io, request.number);
}
template <typename Io>
void transfer(Io& io, Of<Io, NumberRequest<MultipartType::kMeter>>& request) {
  transfer_number(io, request.number);
}
template <typename Io>
void transfer(Io& io, Of<Io, NumberRequest<MultipartType::kMeterConfig>>& request) {
  transfer_number(io, request.number);
}

template <typename Io>
void transfer(Io& io, Of<Io, Description>& description) {
  io.text(description.manufacturer, text_size::kDescription);
  io.text(description.hardware, text_size::kDescription);
  io.text(description.software, text_size::kDescription);
  io.text(description.serial, text_size::kSerial);
  io.text(description.datapath, text_size::kDescription);
}

template <typename Io>
void transfer(Io& io, Of<Io, FlowStats>& flow) {
  io.sized(0, 1, ErrorCode::kRequestBadLen, [&] {
    io.length();
    io.u8(flow.table);
    io.pad(1);
    if (io.is_1_0()) match(io, flow.match);
    all_u32(io, flow.duration_s, flow.duration_ns);
    io.u16(flow.priority);
    io.u16(flow.idle_timeout);
    io.u16(flow.hard_timeout);
    if (io.is_1_0()) {
      io.pad(6);
    } else {
      io.flags16(flow_mod_flags(), flow.flags);
      io.pad(4);
    }
    all_u64(io, flow.cookie, flow.packets, flow.bytes);
    if (!io.is_1_0()) match(io, flow.match);
    transfer_instructions(io, flow.instructions, flow.match);
  });
}

template <typename Io>
void transfer(Io& io, Of<Io, AggregateStats>& aggregate) {
  all_u64(io, aggregate.packets, aggregate.bytes);
  io.u32(aggregate.flows);
  io.pad(4);
}

template <typename Io>
void transfer(Io& io, Of<Io, TableStats>& table) {
  io.u8(table.table);
  io.pad(3);
  if (io.is_1_0()) {
    io.text(table.name, text_size::kTableName);
    all_u32(io, table.wildcards, table.max_entries);
  }
  io.u32(table.active);
  all_u64(io, table.lookups, table.matches);
}

template <typename Io>
void transfer(Io& io, Of<Io, PortStats>& port) {
  io.port(port.port, 6, 4);
  all_u64(io, port.rx_packets, port.tx_packets, port.rx_bytes, port.tx_bytes, port.rx_dropped, port.tx_dropped,
          port.rx_errors, port.tx_errors, port.rx_frame_errors, port.rx_overruns, port.rx_crc_errors, port.collisions);
  if (!io.is_1_0()) all_u32(io, port.duration_s, port.duration_ns);
}

template <typename Io>
void transfer(Io& io, Of<Io, QueueStats>& queue) {
  io.port(queue.port, 2, 0);
  io.u32(queue.queue);
  all_u64(io, queue.tx_bytes, queue.tx_packets, queue.tx_errors);
  if (!io.is_1_0()) all_u32(io, queue.duration_s, queue.duration_ns);
}

template <typename Io>
void transfer(Io& io, Of<Io, GroupStats>& group) {
  io.sized(0, 1, ErrorCode::kRequestBadLen, [&] {
    io.length();
    io.pad(2);
    all_u32(io, group.group, group.references);
    io.pad(4);
    all_u64(io, group.packets, group.bytes);
    all_u32(io, group.duration_s, group.duration_ns);
    io.list(group.buckets, [&](auto& bucket) { all_u64(io, bucket.packets, bucket.bytes); });
  });
}

template <typename Io>
void transfer(Io& io, Of<Io, GroupDescription>& group) {
  io.sized(0, 1, ErrorCode::kRequestBadLen, [&] {
    io.length();
    enumerated(io, group.type, 1, static_cast<uint64_t>(GroupType::kFastFailover), ErrorCode::kGroupModBadType);
    io.pad(1);
    io.u32(group.group);
    io.list(group.buckets, [&](auto& bucket) { transfer(io, bucket); });
  });
}

template <typename Io>
void transfer(Io& io, Of<Io, GroupFeatures>& features) {
  all_u32(io, features.types, features.capabilities);
  for (auto& most : features.max_groups) io.u32(most);
  for (auto& known : features.actions) io.u32(known);
}

template <typename Io>
void transfer(Io& io, Of<Io, MeterStats>& meter) {
  io.sized(4, 1, ErrorCode::kRequestBadLen, [&] {
    io.u32(meter.meter);
    io.length();
    io.pad(6);
    io.u32(meter.flows);
    all_u64(io, meter.packets, meter.bytes);
    all_u32(io, meter.duration_s, meter.duration_ns);
    io.list(meter.bands, [&](auto& band) { all_u64(io, band.packets, band.bytes); });
  });
}

template <typename Io>
void transfer(Io& io, Of<Io, MeterConfig>& meter) {
  io.sized(0, 1, ErrorCode::kRequestBadLen, [&] {
    io.length();
    io.u16(meter.flags);
    io.u32(meter.meter);
    io.list(meter.bands, [&](auto& band) { transfer(io, band); });
  });
}

template <typename Io>
void transfer(Io& io, Of<Io, MeterFeatures>& features) {
  all_u32(io, features.max_meters, features.band_types, features.capabilities);
  io.u8(features.max_bands);
  io.u8(features.max_colors);
  io.pad(2);
}

inline constexpr uint32_t kExperimenterNumber = 0xffff;

/// How the values of a property are written.
enum class PropertyForm : uint8_t { kTypes, kTables, kFields, kBytes };

inline PropertyForm form_of(uint16_t property) {
  if (property <= table_property::kInstructionsMiss) return PropertyForm::kTypes;
  if (property <= table_property::kNextTablesMiss) return PropertyForm::kTables;
  if (property <= table_property::kApplyActionsMiss) return PropertyForm::kTypes;
  const int row = find_number(table_properties(), Version::k1_3, property);
  return row < 0 || property >= table_property::kExperimenter ? PropertyForm::kBytes : PropertyForm::kFields;
}

/// Reads a value and, behind that of an experimenter, the experimenter.
inline void read_value(Reader& io, PropertyForm form, std::vector<uint32_t>& values) {
  if (form == PropertyForm::kTables) {
    values.push_back(static_cast<uint32_t>(io.number(1)));
    return;
  }
  const auto value = static_cast<uint32_t>(io.number(4));
  const uint32_t number = value >> 16;
  // Instructions and actions: a type and the length of their header.
  const uint32_t size = form == PropertyForm::kFields ? 4 : value & 0xffff;
  if (size != (form == PropertyForm::kTypes && number == kExperimenterNumber ? 8 : 4))
    return io.fail(ErrorCode::kTableFeaturesBadLen);
  values.push_back(form == PropertyForm::kFields ? value : number);
  if (number == kExperimenterNumber) values.push_back(static_cast<uint32_t>(io.number(4)));
}

inline void write_values(Writer& io, PropertyForm form, const std::vector<uint32_t>& values) {
  for (size_t i = 0; i < values.size(); ++i) {
    if (form == PropertyForm::kTables) {
      io.u8(values[i]);
      continue;
    }
    const bool fields = form == PropertyForm::kFields;
    const bool experimenter = (fields ? values[i] >> 16 : values[i]) == kExperimenterNumber && i + 1 < values.size();
    io.u32(fields ? values[i] : values[i] << 16 | (experimenter ? 8u : 4u));
    if (experimenter) io.u32(values[++i]);
  }
}

/// The padding up to a multiple of 8 does not count in the length.
inline void transfer(Reader& io, TableProperty& property) {
  const size_t size = io.peek_u16(2), padded = (size + 7) / 8 * 8;
  if (io.left() < 4 || size < 4 || padded > io.left()) return io.fail(ErrorCode::kTableFeaturesBadLen);
  io.u16(property.type);
  io.length();
  const PropertyForm form = form_of(property.type);
  if (form == PropertyForm::kBytes && property.type < table_property::kExperimenter)
    io.object(ErrorCode::kTableFeaturesBadType);
  if (!io.ok()) return;
  io.within(size - 4, ErrorCode::kTableFeaturesBadLen, [&] {
    if (form == PropertyForm::kBytes) return io.rest(property.data);
    while (io.left() > 0 && io.ok()) read_value(io, form, property.values);
  });
  if (io.ok()) io.pad(padded - size);
}
inline void transfer(Writer& io, const TableProperty& property) {
  const size_t start = io.at();
  io.sized(2, 1, ErrorCode::kTableFeaturesBadLen, [&] {
    io.u16(property.type);
    io.length();
    const PropertyForm form = form_of(property.type);
    if (form == PropertyForm::kBytes) return io.rest(property.data);
    write_values(io, form, property.values);
  });
  const size_t size = io.at() - start;
  io.pad((size + 7) / 8 * 8 - size);
}

template <typename Io>
void transfer(Io& io, Of<Io, TableFeatures>& table) {
  io.sized(0, 8, ErrorCode::kTableFeaturesBadLen, [&] {
    io.length();
    io.u8(table.table);
    io.pad(5);
    io.text(table.name, text_size::kTableName);
    all_u64(io, table.metadata_match, table.metadata_write);
    all_u32(io, table.config, table.max_entries);
    io.list(table.properties, [&](auto& property) { transfer(io, property); });
  });
}

template <typename Io>
void transfer(Io& io, Of<Io, ExperimenterMultipart>& multipart) {
  io.u32(multipart.experimenter);
  if (!io.is_1_0()) io.u32(multipart.type);
  io.rest(multipart.data);
}

/// Lists, which may go on in the next message.
template <typename Io, typename T>
void transfer(Io& io, std::vector<T>& elements) {
  io.parts(elements, [&](auto& element) { transfer(io, element); });
}
template <typename Io, typename T>
void transfer(Io& io, const std::vector<T>& elements) {
  io.parts(elements, [&](auto& element) { transfer(io, element); });
}

/// Reads the alternative with this number into a variant.
template <size_t kIndex = 0, typename Variant>
void transfer_alternative(Reader& io, Variant& variant, size_t index) {
  if constexpr (kIndex < std::variant_size_v<Variant>) {
    if (index == kIndex) return transfer(io, variant.template emplace<kIndex>());
    transfer_alternative<kIndex + 1>(io, variant, index);
  }
}

template <typename T>
void transfer_multipart(Reader& io, T& message) {
  uint16_t type = 0;
  io.u16(type);
  io.u16(message.flags);
  if (!io.is_1_0()) io.pad(4);
  if (!io.ok()) return;
  const int row = find_number(multipart_types(), io.version, type);
  if (row < 0) return io.fail(ErrorCode::kRequestBadMultipart);
  transfer_alternative(io, message.body, static_cast<size_t>(row));
}
template <typename T>
void transfer_multipart(Writer& io, const T& message) {
  const int64_t type = multipart_types()[message.body.index()].number(io.version);
  if (type == kAbsent) return io.refuse();
  io.u16(type);
  io.u16(message.flags);
  if (!io.is_1_0()) io.pad(4);
  std::visit([&](const auto& body) { transfer(io, body); }, message.body);
}
inline void transfer(Reader& io, MultipartRequest& request) { transfer_multipart(io, request); }
inline void transfer(Writer& io, const MultipartRequest& request) { transfer_multipart(io, request); }
inline void transfer(Reader& io, MultipartReply& reply) { transfer_multipart(io, reply); }
inline void transfer(Writer& io, const MultipartReply& reply) { transfer_multipart(io, reply); }

}  // namespace headrace::openflow
