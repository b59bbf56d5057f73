#include "backend/reference/reference_backend.hh"
#include "offload/backend.hh"

namespace headrace::offload {

std::vector<std::unique_ptr<Backend>> find_devices(const OffloadOptions& options, std::string& why_not) {
  std::vector<std::unique_ptr<Backend>> found;
  if (options.backend == "reference") {
    for (int i = 0; i < std::max(options.devices, 1); ++i) found.push_back(std::make_unique<ReferenceBackend>(options));
    return found;
  }
  why_not = "no CUDA backend";
  return found;
}

}  // namespace headrace::offload
