#pragma once
/// \file
/// Memory that runs out where a test says so.

namespace headrace {

/// While it lives, arrays (DeviceArray) that the running thread makes get no memory, but for the first `spared`. One at a
/// time on a thread.
class AllocationFailures {
 public:
  explicit AllocationFailures(int spared) { spared_ = spared; }
  ~AllocationFailures() { spared_ = kNever; }
  AllocationFailures(const AllocationFailures&) = delete;
  AllocationFailures& operator=(const AllocationFailures&) = delete;

  /// Whether the array that is about to be made gets none.
  static bool next() {
    if (spared_ == 0) return true;
    if (spared_ != kNever) --spared_;
    return false;
  }

 private:
  static constexpr int kNever = -1;
  static inline thread_local int spared_ = kNever;
};

}  // namespace headrace
