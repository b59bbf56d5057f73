#include "elements/devices/flow_sequence.hh"

#include <algorithm>

namespace headrace {

FlowSequence::Counts& FlowSequence::Counts::operator+=(const Counts& other) {
  checked += other.checked;
  lost += other.lost;
  doubled += other.doubled;
  reordered += other.reordered;
  return *this;
}

// It allocates memory, but only where something is amiss.
void FlowSequence::arrive_out_of_turn(const FrameSequence& frame, uint64_t& expected) {
  Missing& missing = missing_.local();
  const uint32_t generation = generation_.load(std::memory_order_relaxed);
  if (frame.number > expected) {
    counters_.add(kMissing, frame.number - expected);
    for (uint64_t n = expected; n < frame.number && missing.size() < kMostMissing; ++n)
      missing.emplace(key(frame.flow, n), generation);
    expected = frame.number + 1;
    return;
  }
  const auto it = missing.find(key(frame.flow, frame.number));
  if (it == missing.end()) {
    counters_.add(kDoubled, 1);
    return;
  }
  counters_.add(kReordered, 1);
  if (it->second == generation) counters_.add(kFound, 1);
  missing.erase(it);
}

FlowSequence::Counts FlowSequence::counts() const {
  // In this order, since one that is found was missing before.
  const uint64_t found = counters_.sum(kFound), missing = counters_.sum(kMissing);
  return {counters_.sum(kChecked), missing - std::min(found, missing), counters_.sum(kDoubled),
          counters_.sum(kReordered)};
}

void FlowSequence::reset() {
  generation_.fetch_add(1, std::memory_order_relaxed);
  counters_.reset();
}

}  // namespace headrace
