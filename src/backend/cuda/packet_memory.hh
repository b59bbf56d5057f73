#pragma once
/// \file
/// The process's packet memory, made known to the driver so that devices read payloads where they lie.

#include <memory>

#include "backend/cuda/device.hh"

namespace headrace::cuda {

/// The packet pool, registered for all CUDA devices as long as one of these lives. They share one registration.
class PacketMemory {
 public:
  /// Nothing may stay on the device meanwhile. Null with a message when the driver does not take the memory, or when
  /// the device would see it at other addresses than the host.
  static std::shared_ptr<PacketMemory> share(std::shared_ptr<Device> device, Errors& errors);
  ~PacketMemory();
  PacketMemory(const PacketMemory&) = delete;
  PacketMemory& operator=(const PacketMemory&) = delete;

 private:
  PacketMemory(std::shared_ptr<Device> device, void* base) : device_(std::move(device)), base_(base) {}

  std::shared_ptr<Device> device_;
  void* base_;
};

}  // namespace headrace::cuda
