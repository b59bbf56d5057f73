#pragma once
/// \file
/// What shaders find out about packets besides where they go, on its way back from the processor. Read by NVRTC, too.

#include "headrace/shader_types.hh"

namespace headrace {

/// What `release` gets: the results of packets, as they lie in a job's rows or one behind the other.
template <typename Result>
class Results {
 public:
  /// \param first at a multiple of 4 bytes
  /// \param stride bytes from one result to the next, a multiple of 4
  Results(const void* first, size_t stride) : first_(static_cast<const uint8_t*>(first)), stride_(stride) {
    static_assert(alignof(Result) <= 4, "results lie in rows of a job, where only 4 bytes are aligned");
  }
  explicit Results(const Result* results) : Results(results, sizeof(Result)) {}

  /// Of packet `i`.
  const Result& operator[](int i) const {
    return *reinterpret_cast<const Result*>(first_ + static_cast<size_t>(i) * stride_);
  }

 private:
  const uint8_t* first_;
  size_t stride_;
};

}  // namespace headrace
