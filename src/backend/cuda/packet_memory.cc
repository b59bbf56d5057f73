#include "backend/cuda/packet_memory.hh"

#include <mutex>

#include "headrace/packet_pool.hh"

namespace headrace::cuda {

std::shared_ptr<PacketMemory> PacketMemory::share(const std::shared_ptr<Device>& device, Errors& errors) {
  static std::mutex lock;
  static std::weak_ptr<Device> registered;
  const std::lock_guard guard(lock);
  PacketPool& pool = PacketPool::instance();
  pool.prepare();
  void* const base = const_cast<void*>(pool.base());
  const Driver& driver = device->driver();
  std::shared_ptr<Device> by = registered.lock();
  device->use();
  if (by == nullptr) {
    const Device::LongCalls calls(*device);
    const CUresult r = driver.cuMemHostRegister(base, pool.bytes(), kHostPortable | kHostMapped);
    if (r != CUresult::kSuccess) {
      (void)errors.error("CUDA device {} cannot read packets where they lie ({} MiB of {}): {}", device->ordinal(),
                         pool.bytes() >> 20, pool.page_kind(), driver.text(r));
      return nullptr;
    }
    registered = by = device;
  }
  CUdeviceptr there = 0;
  const CUresult r = driver.cuMemHostGetDevicePointer(&there, base, 0);
  if (r != CUresult::kSuccess || there != reinterpret_cast<CUdeviceptr>(base)) {
    (void)errors.error("CUDA device {} does not see packets at their own addresses{}", device->ordinal(),
                       r == CUresult::kSuccess ? "" : ": " + driver.text(r));
    return nullptr;
  }
  return std::shared_ptr<PacketMemory>(new PacketMemory(std::move(by)));
}

}  // namespace headrace::cuda
