#pragma once
/// \file
/// Compiles kernels that use table views, as a device would have them.

#include <cstdlib>
#include <string>
#include <vector>

#include "backend/cuda/driver.hh"
#include "headrace/device/embedded.hh"

namespace headrace {

/// What the compiler says, or an empty text if it has no complaint, spills no registers, and needs no local memory but
/// what `calls` that are not inlined pass. \param image if not null,
/// gets the machine code
inline std::string device_complaint(const cuda::Nvrtc& nvrtc, const std::string& source, const char* architecture,
                                    std::string* image = nullptr, bool calls = false) {
  std::vector<const char*> texts, paths;
  for (const EmbeddedText& header : embedded_headers()) {
    texts.push_back(header.text.data());
    paths.push_back(header.path.data());
  }
  cuda::nvrtcProgram compiled = nullptr;
  if (nvrtc.nvrtcCreateProgram(&compiled, source.c_str(), "test.cu", static_cast<int>(texts.size()), texts.data(),
                               paths.data()) != 0)
    return "no program";
  const char* const options[] = {architecture, "--std=c++20", "--device-as-default-execution-space",
                                 "--ptxas-options=-v"};
  const int result = nvrtc.nvrtcCompileProgram(compiled, 4, options);
  size_t size = 0;
  nvrtc.nvrtcGetProgramLogSize(compiled, &size);
  std::string log(size, '\0');
  nvrtc.nvrtcGetProgramLog(compiled, log.data());
  if (result == 0 && image != nullptr) {
    nvrtc.nvrtcGetCUBINSize(compiled, &size);
    image->resize(size);
    nvrtc.nvrtcGetCUBIN(compiled, image->data());
  }
  nvrtc.nvrtcDestroyProgram(&compiled);
  constexpr int kPassed = 80;  // bytes
  bool good = result == 0 && log.find("warning") == std::string::npos;
  const auto most = [&](const std::string& what, int limit) {
    for (size_t at = log.find(what); at != std::string::npos; at = log.find(what, at + 1)) {
      const size_t number = log.find_last_of(' ', at - 2) + 1;
      good = good && std::atoi(log.c_str() + number) <= limit;
    }
  };
  most("bytes stack frame", calls ? kPassed : 0);
  most("bytes spill stores", 0);
  return good ? "" : log;
}

}  // namespace headrace
