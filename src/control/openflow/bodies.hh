#pragma once
/// \file
/// Helpers for the descriptions of structures in bodies_*.hh, which serve both directions and are part of codec.cc.

#include <array>
#include <cstdint>
#include <type_traits>
#include <utility>
#include <vector>

#include "control/openflow/messages.hh"
#include "control/openflow/multipart.hh"
#include "control/openflow/wire.hh"

namespace headrace::openflow {

/// What is read is changed, and what is written is not.
template <typename Io, typename T>
using Of = std::conditional_t<Io::kReads, T, const T>;

/// A number of `size` bytes up to `last`; any other is `bad`.
template <typename Io, typename Enum>
void enumerated(Io& io, Enum& value, size_t size, uint64_t last, ErrorCode bad) {
  if constexpr (Io::kReads) {
    const uint64_t number = io.number(size);
    if (number > last) return io.fail(bad);
    value = static_cast<Enum>(number);
  } else {
    io.number(static_cast<uint64_t>(value), size);
  }
}

template <typename Io, typename... Numbers>
void all_u32(Io& io, Numbers&... numbers) {
  (io.u32(numbers), ...);
}
template <typename Io, typename... Numbers>
void all_u64(Io& io, Numbers&... numbers) {
  (io.u64(numbers), ...);
}

template <typename Io>
void transfer(Io& io, Of<Io, Port>& port) {
  io.port(port.number, 0, 4);
  io.bytes(port.address);
  if (!io.is_1_0()) io.pad(2);
  io.text(port.name, text_size::kPortName);
  io.flags32(port_config_flags(), port.config);
  io.flags32(port_state_flags(), port.state);
  for (auto* features : {&port.current, &port.advertised, &port.supported, &port.peer})
    io.flags32(port_feature_flags(), *features);
  if (!io.is_1_0()) all_u32(io, port.current_speed, port.max_speed);
}

template <typename Io>
void transfer(Io& io, Of<Io, Bucket>& bucket) {
  io.sized(0, 8, ErrorCode::kGroupModBadBucket, [&] {
    io.length();
    io.u16(bucket.weight);
    all_u32(io, bucket.watch_port, bucket.watch_group);
    io.pad(4);
    if constexpr (Io::kReads) {
      actions(io, bucket.actions);
    } else {
      actions(io, bucket.actions, nullptr);
    }
  });
}

template <typename Io>
void transfer(Io& io, Of<Io, MeterBand>& band) {
  io.sized(2, 1, ErrorCode::kRequestBadLen, [&] {
    io.u16(band.type);
    io.length();
    all_u32(io, band.rate, band.burst);
    switch (band.type) {
      case MeterBandType::kDrop:
        io.pad(4);
        break;
      case MeterBandType::kDscpRemark:
        io.u8(band.precedence_levels);
        io.pad(3);
        break;
      case MeterBandType::kExperimenter:
        io.u32(band.experimenter);
        io.rest(band.data);
        if constexpr (Io::kReads) io.object(ErrorCode::kMeterModBadBand);
        break;
      default:
        if constexpr (Io::kReads) io.fail(ErrorCode::kMeterModBadBand);
        break;
    }
  });
}

}  // namespace headrace::openflow
