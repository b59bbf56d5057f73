#include "backend/cuda/packet_memory.hh"

#include <mutex>

#include "headrace/packet_pool.hh"

namespace headrace::cuda {

std::shared_ptr<PacketMemory> PacketMemory::share(std::shared_ptr<Device> device, Errors& errors) {
  static std::mutex lock;
  static std::weak_ptr<PacketMemory> shared;
  const std::lock_guard guard(lock);
  PacketPool& pool = PacketPool::instance();
  pool.prepare();
  void* const base = const_cast<void*>(pool.base());
  const Driver& driver = device->driver();
  std::shared_ptr<PacketMemory> memory = shared.lock();
  device->use();
  if (memory == nullptr) {
    const CUresult r = driver.cuMemHostRegister(base, pool.bytes(), kHostPortable | kHostMapped);
    if (r != CUresult::kSuccess) {
      (void)errors.error("CUDA device {} cannot read packets where they lie ({} MiB of {}): {}", device->ordinal(),
                         pool.bytes() >> 20, pool.page_kind(), driver.text(r));
      return nullptr;
    }
    memory.reset(new PacketMemory(device, base));
    shared = memory;
  }
  CUdeviceptr there = 0;
  const CUresult r = driver.cuMemHostGetDevicePointer(&there, base, 0);
  if (r != CUresult::kSuccess || there != reinterpret_cast<CUdeviceptr>(base)) {
    (void)errors.error("CUDA device {} does not see packets at their own addresses{}", device->ordinal(),
                       r == CUresult::kSuccess ? "" : ": " + driver.text(r));
    return nullptr;
  }
  return memory;
}

PacketMemory::~PacketMemory() {
  if (device_->failed()) return;
  const Device::Quiet quiet(*device_);
  if (device_->failed()) return;
  device_->use();
  device_->driver().cuMemHostUnregister(base_);
}

}  // namespace headrace::cuda
