#pragma once
/// \file
/// What shaders find out about packets besides where they go, on its way back from the processor. Read by NVRTC, too.

#include "headrace/shader_types.hh"

namespace headrace {

/// What `release` gets: the results of packets, as they lie in a job's rows or one behind the other.
template <typename Result>
class Results {
 public:
  /// \param stride bytes from one result to the next
  Results(const void* first, size_t stride) : first_(static_cast<const uint8_t*>(first)), stride_(stride) {}
  explicit Results(const Result* results) : Results(results, sizeof(Result)) {}

  /// Of packet `i`. Only what is used of it is loaded.
  Result operator[](int i) const {
    Result result;
    __builtin_memcpy(&result, first_ + static_cast<size_t>(i) * stride_, sizeof result);
    return result;
  }

 private:
  const uint8_t* first_;
  size_t stride_;
};

}  // namespace headrace
