#pragma once
/// \file
/// What a packet looks like on its way to a device and back. Read by the host compiler and by NVRTC.
///
/// A row holds what the shaders of a plan read and write of one packet:
///
///     [ RowHeader 16 | addresses | results | annotations, 4 bytes each | window: bytes around the packet's beginning ]
///
/// There are addresses only if shaders of the plan scan payloads, which a device reads in place, or rewrite packets: 8
/// bytes with that of the packet's buffer and, if shaders rewrite packets, another 8 with that of an output buffer (0
/// if there is none), in whose upper 16 bits a device says from which byte on it has written.
///
/// There are results only if shaders of the plan have any: for each shader with a result that a packet can pass, one
/// after the other, the number of its step plus 1 (0: no such shader was passed) in 4 bytes, and its Result.
///
/// The row goes to the device and comes back in the same format. If a shader needs something that the row does not
/// hold, it stops the slot, unchanged, before its element; the host continues there.

#include "headrace/shader_types.hh"

namespace headrace {

/// Maximum number of packet bytes in a row.
inline constexpr int kMaxWindow = 128;
/// Bytes of a buffer of the packet pool, from the address in a row on.
inline constexpr uint32_t kBufferBytes = 2176;

/// Where the parts of a plan's rows lie.
struct RowLayout {
  int32_t stride = 0;        ///< bytes of a row, a multiple of 16
  int32_t annotations = 0;   ///< bit g: annotation bytes 4g to 4g+3 are in the row
  int32_t window_begin = 0;  ///< first packet byte in the row, relative to the packet's start; may be negative
  int32_t window_size = 0;   ///< bytes, a multiple of 4
  int32_t address_size = 0;  ///< 8 if the row holds the address of the packet's buffer, 16 with that of another, else 0
  int32_t result_size = 0;   ///< of one result with its number, a multiple of 4
  int32_t results = 0;       ///< the most results of a packet

  HEADRACE_SHADER static constexpr int ones(uint32_t bits) {
    int n = 0;
    for (; bits != 0; bits &= bits - 1) ++n;
    return n;
  }
  /// Where annotation byte `offset`, which must be in the row, lies in the row.
  HEADRACE_SHADER constexpr int annotation(int offset) const {
    const uint32_t before = static_cast<uint32_t>(annotations) & ((1u << (offset >> 2)) - 1);
    return result(results) + 4 * ones(before) + (offset & 3);
  }
  HEADRACE_SHADER constexpr bool has_annotations(int offset, int size) const {
    for (int g = offset >> 2; g <= (offset + size - 1) >> 2; ++g)
      if (!(annotations >> g & 1)) return false;
    return true;
  }
  HEADRACE_SHADER constexpr int window() const {
    return result(results) + 4 * ones(static_cast<uint32_t>(annotations));
  }
  /// Where result number `i` begins.
  HEADRACE_SHADER constexpr int result(int i) const { return kAddressAt + address_size + i * result_size; }
  static constexpr int kAddressAt = 16;
  static constexpr int kOutputAt = 24;
  static constexpr int kWrittenFromAt = kOutputAt + 6;
};

/// The state of a packet besides its bytes, as in Packet: positions count from the start of the buffer.
struct RowHeader {
  static constexpr uint16_t kNone = 0xffff;  ///< no element has marked this header

  uint32_t length;
  uint16_t data;
  uint16_t mac;
  uint16_t network;
  uint16_t transport;
  uint8_t type;
  uint8_t rewritten;  ///< 1: the packet lies in the output buffer
  /// The next step of the plan or, from kExit on, how the slot left (see Plan).
  uint16_t at;

  HEADRACE_SHADER bool has_mac_header() const { return mac != kNone; }
  HEADRACE_SHADER bool has_network_header() const { return network != kNone; }
  HEADRACE_SHADER bool has_transport_header() const { return transport != kNone; }
};
static_assert(sizeof(RowHeader) == 16);
inline constexpr uint16_t kExit = 0x8000;

}  // namespace headrace
