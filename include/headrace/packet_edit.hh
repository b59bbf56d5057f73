#pragma once
/// \file
/// A packet whose bytes a shader rewrites. Read by the host compiler and by NVRTC.

#include "headrace/device/row.hh"
#include "headrace/headers_of.hh"

namespace headrace {

/// One packet's bytes, to be rewritten, lengthened or shortened by a team. On the CPU they lie in the packet, on a
/// device in a copy that becomes the packet when the job is released.
///
/// All lanes make the same calls, and divide among themselves what they write. The end of `team.run` or `team.map`
/// separates writing from reading what other lanes have written.
class PacketEdit {
 public:
  /// \param buffer where byte 0 of the packet's buffer lies, with room for `capacity` bytes
  /// \param header where the packet and its headers lie in the buffer
  HEADRACE_SHADER PacketEdit(uint8_t* buffer, uint32_t capacity, const RowHeader& header) {
    place(buffer, capacity, header);
  }

  HEADRACE_SHADER uint32_t length() const { return length_; }
  HEADRACE_SHADER uint8_t operator[](uint32_t i) const { return buffer_[data_ + i]; }
  /// The packet as it is now.
  HEADRACE_SHADER PacketBytes bytes() const {
    PacketBytes bytes;
    bytes.data = buffer_ + data_;
    bytes.length = length_;
    if (network_ != kNoHeader) bytes.network = network_ - static_cast<int32_t>(data_);
    return bytes;
  }
  /// The first byte, for writing. Valid until the next of the calls below.
  HEADRACE_SHADER uint8_t* write() { return write(0, length_); }
  /// The same, if only the `n` bytes from `at` on are written: a device then moves less.
  HEADRACE_SHADER uint8_t* write(uint32_t at, uint32_t n) {
    mark(data_ + at, data_ + at + n);
    return buffer_ + data_;
  }

  /// Adds `n` bytes at the front, with undefined contents unless they were pulled before. If no buffer of a packet has
  /// room for them, returns false and changes nothing.
  HEADRACE_SHADER bool prepend(uint32_t n) {
    if (n > data_) return grow(n, 0);
    data_ -= n;
    length_ += n;
    mark(data_, data_ + n);
    return true;
  }
  /// Adds `n` bytes with undefined contents at the end; false if no buffer of a packet has room for them.
  HEADRACE_SHADER bool append(uint32_t n) {
    if (n > capacity_ - data_ - length_) return grow(0, n);
    length_ += n;
    mark(data_ + length_ - n, data_ + length_);
    return true;
  }
  /// Removes `n` bytes from the front; false if the packet is shorter.
  HEADRACE_SHADER bool pull(uint32_t n) {
    if (n > length_ || data_ + n >= RowHeader::kNone) return false;
    data_ += n;
    length_ -= n;
    changed_ = true;
    return true;
  }
  /// Removes `n` bytes from the end; false if the packet is shorter.
  HEADRACE_SHADER bool take(uint32_t n) {
    if (n > length_) return false;
    length_ -= n;
    changed_ = true;
    return true;
  }

  /// True after any call that may change the packet.
  HEADRACE_SHADER bool changed() const { return changed_; }
  /// True if this copy had no room although the packet's own buffer may have some: the host must do the work.
  HEADRACE_SHADER bool stopped() const { return stopped_; }
  /// Where the packet begins in its buffer.
  HEADRACE_SHADER uint32_t position() const { return data_; }
  /// The bytes of the buffer that may have been written: [written_from, written_end).
  HEADRACE_SHADER uint32_t written_from() const { return written_from_; }
  HEADRACE_SHADER uint32_t written_end() const { return written_end_; }

 protected:
  HEADRACE_SHADER void place(uint8_t* buffer, uint32_t capacity, const RowHeader& header) {
    buffer_ = buffer;
    capacity_ = capacity;
    data_ = header.data;
    length_ = header.length;
    network_ = header.network == RowHeader::kNone ? kNoHeader : static_cast<int32_t>(header.network);
  }
#if !defined(__CUDA_ARCH__)
  /// Adds `front` bytes at the front or `back` at the end by moving the packet, if it can be moved.
  bool (*make_room_)(PacketEdit&, uint32_t front, uint32_t back) = nullptr;
#endif

 private:
  static constexpr int32_t kNoHeader = -1;

  HEADRACE_SHADER void mark(uint32_t from, uint32_t end) {
    changed_ = true;
    if (from < written_from_) written_from_ = from;
    if (end > written_end_) written_end_ = end;
  }
  HEADRACE_SHADER bool grow([[maybe_unused]] uint32_t front, [[maybe_unused]] uint32_t back) {
#if !defined(__CUDA_ARCH__)
    if (make_room_ != nullptr) {
      changed_ = true;
      return make_room_(*this, front, back);
    }
#endif
    stopped_ = true;
    return false;
  }

  uint8_t* buffer_ = nullptr;
  uint32_t capacity_ = 0;
  uint32_t data_ = 0;
  uint32_t length_ = 0;
  int32_t network_ = kNoHeader;
  uint32_t written_from_ = ~uint32_t{0}, written_end_ = 0;
  bool changed_ = false;
  bool stopped_ = false;
};

}  // namespace headrace
