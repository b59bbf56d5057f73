#include "backend/devices.hh"

#include <unistd.h>

#include <algorithm>
#include <utility>

#include "backend/cuda/cuda_backend.hh"
#include "backend/reference/reference_backend.hh"
#include "offload/backend.hh"

namespace headrace::offload {

namespace {
FindDevices g_replacement;
}  // namespace

void replace_devices(FindDevices find) { g_replacement = std::move(find); }

bool may_have_devices(const OffloadOptions& options) {
  if (g_replacement || options.backend != "auto") return true;
  // What the driver makes on Linux, and in Windows' subsystem for it.
  return access("/dev/nvidiactl", F_OK) == 0 || access("/dev/dxg", F_OK) == 0;
}

std::vector<std::unique_ptr<Backend>> find_devices(const OffloadOptions& options, std::string& why_not) {
  if (g_replacement) return g_replacement(options, why_not);
  std::vector<std::unique_ptr<Backend>> found;
  if (options.backend == "reference") {
    for (int i = 0; i < std::max(options.devices, 1); ++i) found.push_back(std::make_unique<ReferenceBackend>(options));
    return found;
  }
  const int there = cuda::cuda_device_count(&why_not);
  const int wanted = options.devices > 0 ? std::min(options.devices, there) : there;
  Errors errors;
  for (int i = 0; i < wanted; ++i) {
    if (auto device = cuda::make_cuda_backend(i, errors)) {
      found.push_back(std::move(device));
    } else {
      why_not = errors.str();
      while (why_not.ends_with('\n')) why_not.pop_back();
    }
  }
  return found;
}

}  // namespace headrace::offload
