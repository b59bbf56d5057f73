#pragma once
/// \file
/// Numbers in the frames of each flow, by which a sink knows exactly what is lost, doubled or reordered.

#include <atomic>
#include <cstdint>
#include <cstring>
#include <headrace/worker.hh>
#include <unordered_map>
#include <vector>

#include "elements/devices/frame_stamp.hh"

namespace headrace {

/// Behind the headers of an IP frame, or behind a FrameStamp that is there: four bytes that mark it, of which one is the
/// number of its source, four for the number of its flow, eight for its own number, in the machine's own order.
struct FrameSequence {
  static constexpr uint32_t kMark = 0x00515348;  // "HSQ"
  static constexpr uint32_t kSize = 16;
  static constexpr uint32_t kMostSources = 256;

  uint32_t source = 0;
  uint32_t flow = 0;
  uint64_t number = 0;

  /// \param at where
  void write(uint8_t* at) const {
    const uint32_t mark = kMark | source << 24;
    std::memcpy(at, &mark, sizeof mark);
    std::memcpy(at + 4, &flow, sizeof flow);
    std::memcpy(at + 8, &number, sizeof number);
  }
  /// False: the frame has none.
  bool read(const uint8_t* frame, uint32_t length) {
    if (length < FrameStamp::kAtIp4 + kSize) return false;
    uint32_t at = FrameStamp::place(frame), mark;
    if (length < at + kSize) return false;
    std::memcpy(&mark, frame + at, sizeof mark);
    if (mark == FrameStamp::kMark) {
      at += FrameStamp::kSize;
      if (length < at + kSize) return false;
      std::memcpy(&mark, frame + at, sizeof mark);
    }
    if ((mark & 0xffffff) != kMark) return false;
    source = mark >> 24;
    std::memcpy(&flow, frame + at + 4, sizeof flow);
    std::memcpy(&number, frame + at + 8, sizeof number);
    return true;
  }
};

/// What has arrived of the flows of one source, at whichever sinks of the router. A flow belongs to one worker; flows of
/// one worker have neighboring numbers.
class FlowSequence {
 public:
  struct Counts {
    uint64_t checked = 0;    ///< frames with a number
    uint64_t lost = 0;       ///< frames that are missing although a later one of their flow has arrived
    uint64_t doubled = 0;    ///< frames that had arrived before
    uint64_t reordered = 0;  ///< frames that arrived after a later one of their flow

    Counts& operator+=(const Counts& other);
  };

  explicit FlowSequence(size_t flows) : expected_(flows) {}

  /// On the thread of the flow's worker. Frames of flows that the source does not have are ignored.
  void arrive(const FrameSequence& frame) {
    if (frame.flow >= expected_.size()) [[unlikely]]
      return;
    uint64_t& expected = expected_[frame.flow];
    ++counters_.local()[kChecked];
    if (frame.number == expected) [[likely]]
      ++expected;
    else
      arrive_out_of_turn(frame, expected);
  }

  /// Any thread.
  Counts counts() const;
  /// Counts from zero; where flows are is not forgotten. Any thread.
  void reset();

 private:
  /// `kFound`: of those in `kMissing`, later ones that arrived after all.
  enum Counter { kChecked, kMissing, kFound, kDoubled, kReordered, kCounters };
  using Missing = std::unordered_map<uint64_t, uint32_t>;  // flow and number, to the generation that counts it
  /// Of one thread. Of what is missing beyond that, a frame that comes after all counts as doubled.
  static constexpr size_t kMostMissing = 1 << 20;

  static uint64_t key(uint32_t flow, uint64_t number) {
    return uint64_t{flow} << 38 | (number & ((uint64_t{1} << 38) - 1));
  }
  void arrive_out_of_turn(const FrameSequence& frame, uint64_t& expected);

  std::vector<uint64_t> expected_;  // by flow: one more than the highest number that has arrived
  PerThread<Missing> missing_;
  std::atomic<uint32_t> generation_{0};  // of counts: grows with each reset
  ThreadCounters counters_{kCounters};
};

}  // namespace headrace
