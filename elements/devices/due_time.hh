#pragma once
/// \file
/// When a frame was due, in an annotation that also names its source.

#include <bit>
#include <cstddef>
#include <cstdint>

namespace headrace {

/// The first timestamp annotation of frames of TrafficSources with a RATE: nanoseconds of the monotonic clock, whose lowest
/// bits are the number of the source among those of the router. There are as many bits as it takes, none for one source.
class DueTime {
 public:
  /// \param sources of the router
  explicit DueTime(size_t sources = 0) : mask_(std::bit_ceil(sources) - 1) {}

  uint64_t make(uint64_t ns, size_t source) const { return (ns & ~mask_) | source; }
  uint64_t ns(uint64_t due) const { return due & ~mask_; }
  size_t source(uint64_t due) const { return due & mask_; }
  /// More than the highest number of a source.
  size_t sources() const { return mask_ + 1; }

 private:
  uint64_t mask_;
};

}  // namespace headrace
