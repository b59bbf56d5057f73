#pragma once
/// \file
/// A CUDA device of this process: its context, its failure, and the kernels that stay on it.

#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "backend/cuda/driver.hh"
#include "headrace/error.hh"

namespace headrace::cuda {

/// Kernels of one owner. Calls that allocate, free or load wait for all kernels, without a limit, so before them a
/// kernel that stays is asked to leave, and it is seen whether the others end.
class Staying {
 public:
  virtual ~Staying() = default;
  /// Returns when the kernels that run now have ended, or the device has failed since they do not. One that stays does
  /// not start until resume(). Calls nest.
  virtual void pause() = 0;
  virtual void resume() = 0;
};

class Device {
 public:
  /// The device with this number, shared by all users; null with a message if there is none.
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

  /// How long a device may take for what it does at once when it works.
  static constexpr std::chrono::milliseconds kPatience{2000};
  /// Polls `query` (cuStreamQuery or cuEventQuery) until it is not "not ready" any more. False when the device has
  /// failed; it has when that takes longer than kPatience. Nothing of a stuck kernel may block the process.
  template <typename Query>
  bool wait(Query&& query, const char* doing) {
    const auto limit = std::chrono::steady_clock::now() + kPatience;
    while (!failed()) {
      const CUresult state = query();
      if (state != CUresult::kNotReady) return check(state, doing);
      if (std::chrono::steady_clock::now() > limit) fail(std::string(doing) + ": no end after 2 s");
      std::this_thread::yield();
    }
    return false;
  }

  void add(Staying* kernel);
  void remove(Staying* kernel);

  /// While it lives, no kernel stays on the device, and none is stuck there unless the device has failed: look after
  /// making one.
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
  /// The NUMA node that the kernel reports for it; -1 if unknown.
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
  /// Waits for all that was put into it, however long it takes; false when the device has failed.
  bool synchronize() const;
  /// The same for work that does not take long: see Device::wait().
  bool wait(const char* doing) const;

 private:
  std::shared_ptr<Device> device_;
  CUstream stream_ = nullptr;
};

}  // namespace headrace::cuda
