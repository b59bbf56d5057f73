#pragma once
/// \file
/// The frame in a Packet, for the edits of tables/openflow/.

#include <cstring>
#include <headrace/packet.hh>

#include "tables/openflow/frame_edit_view.hh"

namespace headrace::openflow {

/// Reads and writes bytes counted from where the frame began; see FrameEdits.
class PacketFrame {
 public:
  explicit PacketFrame(Packet& packet) : packet_(packet), length_(static_cast<int32_t>(packet.length())) {}

  /// Of the frame as it was, which is where the offsets of its parts stay.
  int32_t end() const { return length_; }
  uint32_t byte(int32_t at) const { return bytes()[at]; }
  uint32_t half(int32_t at) const { return uint32_t{bytes()[at]} << 8 | bytes()[at + 1]; }
  uint32_t word(int32_t at) const { return half(at) << 16 | half(at + 2); }
  void set_byte(int32_t at, uint32_t value) { bytes()[at] = static_cast<uint8_t>(value); }
  void set_half(int32_t at, uint32_t value) {
    const uint16_t swapped = __builtin_bswap16(static_cast<uint16_t>(value));
    std::memcpy(bytes() + at, &swapped, sizeof swapped);
  }
  void set_word(int32_t at, uint32_t value) {
    value = __builtin_bswap32(value);
    std::memcpy(bytes() + at, &value, sizeof value);
  }
  bool complete() const { return true; }
  bool move(int32_t n) {
    if (!(n > 0 ? packet_.push(static_cast<uint32_t>(n)) : packet_.pull(static_cast<uint32_t>(-n)))) return false;
    origin_ += n;
    return true;
  }
  /// Makes room for `n` bytes in front of offset `at`; offsets behind stay. False: the buffer has no room.
  bool insert(int32_t at, int32_t n) {
    if (!move(n)) return false;
    std::memmove(bytes() - n, bytes(), static_cast<size_t>(at));
    return true;
  }
  /// Removes the `n` bytes in front of offset `at`.
  void remove(int32_t at, int32_t n) {
    std::memmove(bytes() + n, bytes(), static_cast<size_t>(at - n));
    move(-n);
  }
  uint8_t* bytes() { return packet_.data() + origin_; }
  const uint8_t* bytes() const { return packet_.data() + origin_; }

 private:
  Packet& packet_;
  int32_t length_;
  int32_t origin_ = 0;  // of what was byte 0, from the packet's beginning
};

/// The shortest frame of Ethernet without its check sequence (IEEE 802.3, section 4.2.3.3).
inline constexpr uint32_t kShortestFrame = 60;

/// A frame that leaves, and that tags and labels taken off have made shorter than the shortest, gets zeros at its end. Cards
/// would add them, but not every port is one. A frame that came shorter stays as it is. There is room, since the frame has
/// been longer by what is missing.
/// \param came the length as it came
inline void pad_to_shortest(Packet& packet, uint32_t came) {
  const uint32_t length = packet.length();
  if (length >= kShortestFrame || came < kShortestFrame) return;
  if (packet.put(kShortestFrame - length)) std::memset(packet.data() + length, 0, kShortestFrame - length);
}

/// The key of a packet that holds an Ethernet frame.
inline PacketKey parse_packet(const Packet& packet, const PacketKeyContext& context) {
  PacketBytes bytes;
  bytes.data = packet.data();
  bytes.length = packet.length();
  return parse_frame(bytes, static_cast<int32_t>(packet.length()), context);
}

}  // namespace headrace::openflow
