#pragma once
/// \file
/// How long a worker's steps take, and what the longest ones were.

#include <array>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

#include "headrace/histogram.hh"

namespace headrace {

class Element;

/// A step of a worker that took long: one task, or what a worker does between tasks.
struct LongStep {
  int64_t ns = 0;
  int64_t off_cpu_ns = 0;    ///< of these, the thread had no CPU, as far as the kernel knows
  uint64_t page_faults = 0;  ///< within the step
  int worker = 0;
  char element[40] = {};  ///< whose task it was; empty: timers, descriptors, waiting for others
};

/// Belongs to one worker, who calls begin() and note(). Other threads may read meanwhile.
///
/// From one step to the next nothing escapes it: what is not in an element is in the step that was interrupted. A long
/// step in which the thread ran all the time and had no page faults is either work or, if an element never works that
/// long, the hypervisor's: it can stop a virtual CPU, and not every guest's kernel is told.
class StepMeter {
 public:
  explicit StepMeter(int worker) : worker_(worker) {}

  /// The worker starts, or has slept.
  void begin() { last_ = 0; }
  /// A step ends.
  /// \param element whose task it was, or null
  void note(const Element* element);

  const Histogram& times() const { return times_; }
  /// The longest steps, longest first.
  std::vector<LongStep> longest() const;
  void reset();

  /// Steps that take longer are looked at.
  static constexpr int64_t kLongNs = 50'000;

 private:
  static constexpr size_t kKept = 8;

  /// What the kernel says of this thread.
  struct Usage {
    int64_t wall_ns = 0, cpu_ns = 0;
    uint64_t page_faults = 0;
  };
  static Usage usage(int64_t now);
  void look_at(int64_t now, int64_t took, const Element* element);

  const int worker_;
  Histogram times_;
  int64_t last_ = 0;
  Usage before_;
  mutable std::mutex lock_;  // of the longest, taken for long steps only
  std::array<LongStep, kKept> longest_{};
};

}  // namespace headrace
