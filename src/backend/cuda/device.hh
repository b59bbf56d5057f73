#pragma once
/// \file
/// A CUDA device of this process: its context, its failure, and the kernels that stay on it.

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "backend/cuda/driver.hh"
#include "headrace/error.hh"

namespace headrace::cuda {

/// A kernel that stays on a device. Calls that allocate, free or load wait for all kernels, so they ask it to leave
/// first.
class Staying {
 public:
  virtual ~Staying() = default;
  /// Returns when the kernel has ended; it does not start until resume(). Calls nest.
  virtual void pause() = 0;
  virtual void resume() = 0;
};

class Device {
 public:
  /// The device with this number, shared by all who use it; null with a message when there is none.
  static std::shared_ptr<Device> open(int ordinal, Errors& errors);
  ~Device();
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  const Driver& driver() const { return driver_; }
  int ordinal() const { return ordinal_; }
  const std::string& name() const { return name_; }
  /// 90 for compute capability 9.0.
  int capability() const { return capability_; }
  int attribute(CUdevice_attribute which) const;

  /// Makes this device's context that of the calling thread; cheap when it is already.
  void use() const;

  /// After an error nothing more is asked of the device. The first one is reported on standard error.
  bool failed() const { return failed_.load(std::memory_order_relaxed); }
  void fail(const std::string& what);
  /// True if `result` is success; else the device has failed while `doing`.
  bool check(CUresult result, const char* doing) {
    if (result == CUresult::kSuccess) [[likely]]
      return true;
    fail(std::string(doing) + ": " + driver_.text(result));
    return false;
  }

  void add(Staying* kernel);
  void remove(Staying* kernel);

  /// While it lives, no kernel stays on the device.
  class Quiet {
   public:
    explicit Quiet(Device& device);
    ~Quiet();
    Quiet(const Quiet&) = delete;
    Quiet& operator=(const Quiet&) = delete;

   private:
    Device& device_;
    std::unique_lock<std::recursive_mutex> lock_;
  };

  /// GB/s of copies to and from the device; measured once. Nothing may stay on the device meanwhile.
  struct CopyRates {
    double to_device = 0, from_device = 0;
  };
  CopyRates copy_rates();
  /// "0000:17:00.0"; empty where it is not known.
  std::string pci_address() const;
  /// The NUMA node that the kernel counts it to; -1 where nobody knows.
  int numa_node() const;
  /// "PCIe Gen5 x16", or "unknown".
  std::string link() const;

 private:
  Device(const Driver& driver, int ordinal, CUdevice handle);

  const Driver& driver_;
  const int ordinal_;
  const CUdevice handle_;
  const uint64_t id_;  // differs from those of all devices that this process has opened
  CUcontext context_ = nullptr;
  std::string name_;
  int capability_ = 0;
  std::atomic<bool> failed_{false};
  std::recursive_mutex quiet_;  // guards what stands below
  std::vector<Staying*> staying_;
  CopyRates rates_;
  bool measured_ = false;
};

/// Pinned host memory that the device sees; zeroed.
class PinnedMemory {
 public:
  PinnedMemory() = default;
  ~PinnedMemory() { reset(); }
  PinnedMemory(const PinnedMemory&) = delete;
  PinnedMemory& operator=(const PinnedMemory&) = delete;

  bool allocate(std::shared_ptr<Device> device, size_t bytes);
  void reset();
  uint8_t* host() const { return static_cast<uint8_t*>(host_); }
  CUdeviceptr address() const { return address_; }
  size_t size() const { return size_; }

 private:
  std::shared_ptr<Device> device_;
  void* host_ = nullptr;
  CUdeviceptr address_ = 0;
  size_t size_ = 0;
};

/// Memory of the device; zeroed.
class DeviceBuffer {
 public:
  DeviceBuffer() = default;
  ~DeviceBuffer() { reset(); }
  DeviceBuffer(const DeviceBuffer&) = delete;
  DeviceBuffer& operator=(const DeviceBuffer&) = delete;

  bool allocate(std::shared_ptr<Device> device, size_t bytes);
  void reset();
  CUdeviceptr address() const { return address_; }

 private:
  std::shared_ptr<Device> device_;
  CUdeviceptr address_ = 0;
};

/// A stream that waits for no other.
class Stream {
 public:
  Stream() = default;
  ~Stream();
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  bool create(std::shared_ptr<Device> device);
  CUstream get() const { return stream_; }
  /// Waits for all that was put into it; false when the device has failed.
  bool synchronize() const;

 private:
  std::shared_ptr<Device> device_;
  CUstream stream_ = nullptr;
};

}  // namespace headrace::cuda
