#pragma once
/// \file
/// Whether chains are compiled for the CPU.

#include <string>

namespace headrace {

struct CompileOptions {
  enum class Mode {
    kOff,   ///< packets go from element to element
    kAuto,  ///< they do until a compiler that runs in the background is done
    kWait   ///< as kAuto, but no packet flows before
  };
  Mode mode = Mode::kOff;
  /// A file that `headrace compile` made; empty: none.
  std::string file;
  /// Chains of fewer shaders are not worth it.
  int shortest = 2;
  /// Smaller batches go from element to element: nothing of a single packet can be done while another one waits for memory.
  int smallest_batch = 2;
};

}  // namespace headrace
