#pragma once
/// \file
/// The backend that runs programs on CUDA devices. The binary needs no CUDA: the driver and NVRTC are opened when a
/// device is asked for.

#include <memory>
#include <string>

#include "offload/backend.hh"

namespace headrace::cuda {

struct CudaOptions {
  /// The resident kernel leaves when no job came for so long; 0: as soon as all lanes are empty.
  int resident_idle_us = 10000;
};

/// CUDA devices of this machine; 0 with the reason when there is none, or no driver.
int cuda_device_count(std::string* why_not);

/// Device number `device`, or null with a message.
std::unique_ptr<offload::Backend> make_cuda_backend(int device, Errors& errors, const CudaOptions& options = {});

}  // namespace headrace::cuda
