#pragma once
/// \file
/// The process's packet memory, made known to the driver so that devices read payloads where they lie.

#include <memory>

#include "backend/cuda/device.hh"

namespace headrace::cuda {

/// The packet pool, registered for all CUDA devices. It stays registered until the device that did it is closed, because
/// the opposite would wait for kernels; so users of other devices keep that one open.
class PacketMemory {
 public:
  /// Null with a message when the driver does not take the memory, or when the device would see it at other addresses
  /// than the host.
  static std::shared_ptr<PacketMemory> share(const std::shared_ptr<Device>& device, Errors& errors);

 private:
  explicit PacketMemory(std::shared_ptr<Device> registered) : registered_(std::move(registered)) {}

  const std::shared_ptr<Device> registered_;
};

}  // namespace headrace::cuda
