#pragma once
/// \file
/// What routers do to most frames, done where the frame lies: FrameEdits would look at all that a frame may be.

#include <cstdint>
#include <cstring>

#include "tables/key/packet_key_view.hh"
#include "tables/openflow/frame_edit_view.hh"
#include "tables/openflow/program_view.hh"

namespace headrace::openflow {

inline constexpr uint32_t kUsualTtl = 22, kUsualChecksum = 24;

/// Of frames that parse_usual_frame() takes; the next is about them, too. False: the TTL may not be valid any more.
inline bool can_decrement_ttl(const uint8_t* frame) { return frame[kUsualTtl] > 1; }

/// Changes the addresses of Ethernet and the TTL as a program with program_flag::kRoutes says, and repairs the header's
/// checksum (RFC 1624, equation 3). \pre can_decrement_ttl()
inline void route_usual_frame(uint8_t* frame, const ProgramView& program) {
  const auto load_half = [&](uint32_t at) { return uint32_t{frame[at]} << 8 | frame[at + 1]; };
  const auto store_half = [&](uint32_t at, uint32_t value) {
    frame[at] = static_cast<uint8_t>(value >> 8);
    frame[at + 1] = static_cast<uint8_t>(value);
  };
  const uint32_t* op = program.apply_actions().begin();
  for (uint32_t word = op_word(op); op_of(word) != Op::kOutput; op += op_words(word), word = op_word(op)) {
    if (op_of(word) == Op::kDecNwTtl) {
      const uint32_t before = load_half(kUsualTtl);
      ChecksumDelta delta;
      delta.half(before, before - 0x100);
      store_half(kUsualTtl, before - 0x100);
      store_half(kUsualChecksum, delta.repaired(load_half(kUsualChecksum)));
      continue;
    }
    const SetField set(op);
    for (uint32_t i = 0; i < set.count; ++i) {
      uint8_t* const at = frame + (set.first + i - key_word::kMac) * sizeof(uint32_t);
      uint32_t value;
      std::memcpy(&value, at, sizeof value);
      value = __builtin_bswap32((__builtin_bswap32(value) & ~set.mask(i)) | set.value(i));
      std::memcpy(at, &value, sizeof value);
    }
  }
}

}  // namespace headrace::openflow
