#pragma once
/// \file
/// What a packet looks like on its way to a device and back. Read by the host compiler and by NVRTC.
///
/// A row holds what the shaders of a plan read and write of one packet. It is ordered so that what travels is in one
/// piece:
///
///     [ results | annotations | header | output address | annotations | window | annotations | address | annotations ]
///       comes back ---------->|  goes and comes back ---------------------| goes ------------------->|  stays
///
/// The header is a RowHeader. The window is the packet's bytes around its beginning; those behind the last byte that a
/// shader writes only go. Annotations are in units of 4 bytes. One that is written before it is read does not go; one
/// that nobody reads behind the chain does not come back.
///
/// If the shaders of a plan scan payloads, which a device reads in place, or rewrite packets, a row holds the address of
/// the packet's buffer and, in the second case, that of an output buffer (0 if there is none), in whose upper 16 bits a
/// device says from which byte on it has written.
///
/// There are results only if shaders of the plan have any: for each shader with a result that a packet can pass, one
/// after the other, the number of its step plus 1 (0: no such shader was passed) in 4 bytes, and its Result.
///
/// If a shader needs something that the row does not hold, it stops the slot, unchanged, before its element; the host
/// continues there. A slot that the host has to go on with, or whose shader wrote bytes that do not come back, comes
/// back whole, beside the others: see RowHeader::kWhole.

#include "headrace/shader_types.hh"

namespace headrace {

/// Maximum number of packet bytes in a row.
inline constexpr int kMaxWindow = 128;
/// Bytes of a buffer of the packet pool, from the address in a row on.
inline constexpr uint32_t kBufferBytes = 2176;

/// The state of a packet besides its bytes, as in Packet: positions count from the start of the buffer.
struct RowHeader {
  static constexpr uint16_t kNone = 0xffff;  ///< no element has marked this header
  /// Bits of `flags`. The packet lies in the output buffer. The whole row comes back.
  static constexpr uint8_t kRewritten = 1, kWhole = 2;

  uint32_t length;
  uint16_t data;
  uint16_t mac;
  uint16_t network;
  uint16_t transport;
  uint8_t type;
  uint8_t flags;
  /// The next step of the plan or, from kExit on, how the slot left (see Plan).
  uint16_t at;

  HEADRACE_SHADER bool has_mac_header() const { return mac != kNone; }
  HEADRACE_SHADER bool has_network_header() const { return network != kNone; }
  HEADRACE_SHADER bool has_transport_header() const { return transport != kNone; }
  HEADRACE_SHADER bool rewritten() const { return (flags & kRewritten) != 0; }
  HEADRACE_SHADER bool whole() const { return (flags & kWhole) != 0; }
};
static_assert(sizeof(RowHeader) == 16);
inline constexpr uint16_t kExit = 0x8000;

/// Where the parts of a plan's rows lie. Bit g of a set of annotations stands for their bytes 4g to 4g+3.
struct RowLayout {
  int32_t stride = 16;  ///< bytes of a row, a multiple of 16
  int32_t header = 0;   ///< where RowHeader lies, a multiple of 16: what is in front of it only comes back
  int32_t there = 16;   ///< bytes that go to the device, from the header on; a multiple of 16
  int32_t back = 16;    ///< bytes that come back, from the beginning on; a multiple of 16
  /// 1: rows come back to where they were, as many bytes as went: the CPU then needs half of the cache lines.
  int32_t in_place = 0;
  int32_t annotations_back = 0;   ///< only come back
  int32_t annotations_both = 0;   ///< go and come back
  int32_t annotations_there = 0;  ///< only go
  int32_t annotations_stay = 0;   ///< travel in whole rows only
  int32_t window_begin = 0;       ///< first packet byte in the row, relative to the packet's start; may be negative
  int32_t window_size = 0;        ///< bytes, a multiple of 4
  int32_t written = 0;            ///< bytes of the window that come back, from its beginning on; a multiple of 4
  int32_t address_size = 0;  ///< 8 if the row holds the address of the packet's buffer, 16 with that of another, else 0
  int32_t result_size = 0;   ///< of one result with its number, a multiple of 4
  int32_t results = 0;       ///< the most results of a packet

  HEADRACE_SHADER static constexpr int ones(uint32_t bits) {
    int n = 0;
    for (; bits != 0; bits &= bits - 1) ++n;
    return n;
  }
  HEADRACE_SHADER static constexpr int bytes_of(int annotations) {
    return 4 * ones(static_cast<uint32_t>(annotations));
  }

  /// Where result number `i` begins.
  HEADRACE_SHADER constexpr int result(int i) const { return i * result_size; }
  HEADRACE_SHADER constexpr int back_annotations() const { return result(results); }
  HEADRACE_SHADER constexpr int output() const { return header + static_cast<int>(sizeof(RowHeader)); }
  HEADRACE_SHADER constexpr int written_from() const { return output() + 6; }
  HEADRACE_SHADER constexpr int both_annotations() const { return output() + (address_size == 16 ? 8 : 0); }
  HEADRACE_SHADER constexpr int window() const { return both_annotations() + bytes_of(annotations_both); }
  HEADRACE_SHADER constexpr int there_annotations() const { return window() + window_size; }
  HEADRACE_SHADER constexpr int address() const { return there_annotations() + bytes_of(annotations_there); }
  HEADRACE_SHADER constexpr int stay_annotations() const { return address() + (address_size != 0 ? 8 : 0); }
  HEADRACE_SHADER constexpr int end() const { return stay_annotations() + bytes_of(annotations_stay); }

  /// Where annotation byte `offset`, which must be in the row, lies in the row.
  HEADRACE_SHADER constexpr int annotation(int offset) const {
    const int bit = 1 << (offset >> 2);
    const auto in = [&](int set, int begin) { return begin + bytes_of(set & (bit - 1)) + (offset & 3); };
    return (annotations_both & bit) != 0    ? in(annotations_both, both_annotations())
           : (annotations_back & bit) != 0  ? in(annotations_back, back_annotations())
           : (annotations_there & bit) != 0 ? in(annotations_there, there_annotations())
                                            : in(annotations_stay, stay_annotations());
  }
  /// True if these bytes of annotations are in the row, next to each other.
  HEADRACE_SHADER constexpr bool has_annotations(int offset, int size) const {
    int groups = 0;
    for (int g = offset >> 2; g <= (offset + size - 1) >> 2; ++g) groups |= 1 << g;
    return (groups & ~annotations_both) == 0 || (groups & ~annotations_back) == 0 ||
           (groups & ~annotations_there) == 0 || (groups & ~annotations_stay) == 0;
  }
};

}  // namespace headrace
