#pragma once
/// \file
/// From a program's text to what a device runs.

#include <string>
#include <vector>

#include "headrace/error.hh"

namespace headrace::cuda {

/// What a device loads: a cubin, or PTX where NVRTC is older than the device.
struct Image {
  std::vector<char> bytes;
  bool cached = false;  ///< it came from the disk
  std::string note;     ///< "NVRTC 13.0, sm_90"
};

/// Compiles CUDA C++ for compute capability `capability` (90 for sm_90). Its #includes name embedded headers
/// (<headrace/device/embedded.hh>). With `cache` the result is kept in $XDG_CACHE_HOME/headrace (~/.cache/headrace)
/// and found there again; a cache that cannot be read or written does no harm. Errors: no compiler; the compiler's
/// log.
Status compile_program(const std::string& source, int capability, bool cache, Image& image, Errors& errors);

/// "NVRTC 13.0 from PATH", or why there is none.
std::string describe_compiler();

}  // namespace headrace::cuda
