#pragma once
/// \file
/// A time in a frame's payload, where annotations do not reach: through devices, from one router to another.

#include <cstdint>
#include <cstring>
#include <ctime>

namespace headrace {

/// Behind the headers of an IP frame made by TrafficSource: four bytes that mark it, eight of time in nanoseconds of the
/// monotonic clock, in the machine's own order. Both ends are on one machine, or the times mean nothing.
struct FrameStamp {
  static constexpr uint32_t kMark = 0x4d545248;  // "HRTM"
  static constexpr uint32_t kSize = 12;
  static constexpr uint32_t kAtIp4 = 14 + 20 + 8;
  static constexpr uint32_t kAtIp6 = 14 + 40 + 8;
  static constexpr uint32_t kNowhere = 0xffff;

  static uint64_t now_ns() {
    timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return static_cast<uint64_t>(t.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(t.tv_nsec);
  }
  /// Where the payload of an IP frame made by TrafficSource begins, which has one VLAN tag at most and no options, and
  /// behind ICMPv6 room for neighbor discovery. Others have no place: it is beyond all frames.
  /// \param frame at least kAtIp4 bytes
  static uint32_t place(const uint8_t* frame) {
    const uint32_t at = frame[12] == 0x81 && frame[13] == 0x00 ? 18 : 14;
    const bool ip6 = frame[at - 2] == 0x86 && frame[at - 1] == 0xdd;
    if (!ip6 && (frame[at - 2] != 0x08 || frame[at - 1] != 0x00)) return kNowhere;
    const uint8_t protocol = frame[at + (ip6 ? 6 : 9)];
    const uint32_t transport = protocol == 6 ? 20 : protocol == 132 ? 12 : protocol == 58 && ip6 ? 32 : 8;
    return at + (ip6 ? 40 : 20) + transport;
  }
  static void write(uint8_t* frame, uint32_t length, uint64_t ns) {
    const uint32_t at = place(frame);
    if (length < at + kSize) return;
    std::memcpy(frame + at, &kMark, sizeof kMark);
    std::memcpy(frame + at + sizeof kMark, &ns, sizeof ns);
  }
  /// 0: the frame has none.
  static uint64_t read(const uint8_t* frame, uint32_t length) {
    if (length < kAtIp4 + kSize) return 0;
    const uint32_t at = place(frame);
    uint32_t mark;
    uint64_t ns;
    if (length < at + kSize) return 0;
    std::memcpy(&mark, frame + at, sizeof mark);
    std::memcpy(&ns, frame + at + sizeof mark, sizeof ns);
    return mark == kMark ? ns : 0;
  }
};

}  // namespace headrace
