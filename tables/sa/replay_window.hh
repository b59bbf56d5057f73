#pragma once
/// \file
/// Which sequence numbers of an inbound association have been received.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "headrace/single_writer.hh"

namespace headrace {

/// The anti-replay window of ESP (RFC 4303, section 3.4.3), with the high half of extended sequence numbers found by
/// its appendix A2.
///
/// A bit for each number lies in a ring that is larger than the window (RFC 6479), so a window that moves clears whole
/// words and shifts nothing. The ring has the same size for every window, and holds the truth for its last 8,128
/// numbers: the size of the window may change at any time.
///
/// One thread, the owner of the association, calls check() and update(). Any thread may call last() and set_size().
class ReplayWindow {
 public:
  static constexpr uint32_t kSmallest = 64, kLargest = 4096;

  enum class Verdict : uint8_t { kFresh, kReplayed, kTooOld };
  struct Answer {
    Verdict verdict = Verdict::kFresh;
    /// The high half of the number, which the ICV covers; 0 without extended numbers.
    uint32_t sequence_high = 0;
  };

  /// \param size packets, kSmallest to kLargest; other sizes are clamped
  /// \param extended whether numbers have 64 bits, of which packets carry the low half
  /// \param last numbers up to this one count as received. 0 for a new association, whose first number is 1
  explicit ReplayWindow(uint32_t size, bool extended = false, uint64_t last = 0) : extended_(extended), last_(last) {
    set_size(size);
    seen_.fill(~uint64_t{0});
    // The numbers above `last` in its word lie ahead.
    const uint32_t used = static_cast<uint32_t>(last % 64) + 1;
    if (used < 64) seen_[word_of(last)] = (uint64_t{1} << used) - 1;
  }
  ReplayWindow(const ReplayWindow&) = delete;
  ReplayWindow& operator=(const ReplayWindow&) = delete;

  /// What is known about a packet's number before its ICV has been verified. Changes nothing.
  Answer check(uint32_t sequence_low) const {
    const uint64_t last = last_;
    const uint32_t high = extended_ ? infer_high(last, sequence_low) : 0;
    const uint64_t sequence = uint64_t{high} << 32 | sequence_low;
    // A number far from the last one in the other half wraps around the end of 64 bits: it is none at all.
    if (extended_ && sequence > last && sequence - last > uint64_t{1} << 32) return {Verdict::kTooOld, high};
    return {verdict(last, sequence), high};
  }

  /// Notes that a packet with this number was authentic. False, and no change, if it is not fresh any more: the same
  /// number was received meanwhile, or the window has left it behind.
  bool update(uint64_t sequence) {
    const uint64_t last = last_;
    if (verdict(last, sequence) != Verdict::kFresh) return false;
    if (sequence > last) {
      const uint64_t words = std::min<uint64_t>(sequence / 64 - last / 64, kWords);
      for (uint64_t i = 1; i <= words; ++i) seen_[(last / 64 + i) % kWords] = 0;
      last_ = sequence;
    }
    seen_[word_of(sequence)] |= bit_of(sequence);
    return true;
  }

  /// The largest number that was received.
  uint64_t last() const { return last_; }
  bool extended() const { return extended_; }
  uint32_t size() const { return size_; }
  /// The window from now on; clamped to kSmallest to kLargest.
  void set_size(uint32_t size) { size_ = std::clamp(size, kSmallest, kLargest); }

 private:
  static constexpr size_t kWords = 2 * kLargest / 64;

  static size_t word_of(uint64_t sequence) { return sequence / 64 % kWords; }
  static uint64_t bit_of(uint64_t sequence) { return uint64_t{1} << (sequence % 64); }

  /// RFC 4303, appendix A2.1: the high half that puts the number into the window or ahead of it by less than 2^32.
  uint32_t infer_high(uint64_t last, uint32_t low) const {
    const uint32_t last_high = static_cast<uint32_t>(last >> 32);
    const uint32_t last_low = static_cast<uint32_t>(last);
    const uint32_t bottom = last_low - (size_ - 1);  // of the window; may be of the half before
    if (last_low >= size_ - 1) return low >= bottom ? last_high : last_high + 1;
    return low >= bottom ? last_high - 1 : last_high;
  }

  Verdict verdict(uint64_t last, uint64_t sequence) const {
    if (sequence > last) return Verdict::kFresh;
    if (last - sequence >= size_) return Verdict::kTooOld;
    return seen_[word_of(sequence)] & bit_of(sequence) ? Verdict::kReplayed : Verdict::kFresh;
  }

  const bool extended_;
  SingleWriter<uint32_t> size_;
  SingleWriter<uint64_t> last_;
  std::array<uint64_t, kWords> seen_;
};

}  // namespace headrace
