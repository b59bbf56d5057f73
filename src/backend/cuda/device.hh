#pragma once
/// \file
/// A CUDA device of this process: its context, its failure, and the kernels that stay on it.

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "backend/cuda/driver.hh"
#include "headrace/error.hh"

namespace headrace::cuda {

/// Kernels of one owner. Calls that load or unload programs wait for all kernels, without a limit, so before them a
/// kernel that stays is asked to leave, and it is seen whether the others end. Calls that free memory would wait, too:
/// memory is freed in the order of a stream, or kept.
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

  /// Memory of the device, zeroed and aligned to 256; 0 if there is not enough. Waits for no kernel.
  CUdeviceptr allocate(size_t bytes);
  /// Nothing may use it any more.
  void release(CUdeviceptr address);
  /// Pinned memory, zeroed; it comes from what was given back, if that is large enough. Null if there is not enough.
  /// \param bytes wanted; set to what the memory has
  /// \param node the NUMA node that it should be on, -1: any
  void* take_pinned(size_t& bytes, int node);
  void give_back_pinned(void* memory, size_t bytes, int node);

  /// The functions of a program, loaded. A program that was loaded before is there at once; a new one makes the kernels
  /// that stay leave for a moment. It remains loaded for later users.
  /// \param warm_up called in this moment, to launch what would wait for other kernels when first launched
  /// Null if the driver does not take the program; `problem` is its answer.
  CUmodule load(const std::vector<char>& image, const std::function<bool(CUmodule)>& warm_up, CUresult& problem);
  void unload(CUmodule module);

  /// True while a thread makes calls that may hold the driver's locks for long: workers then do without the driver.
  bool driver_is_busy() const { return long_calls_.load(std::memory_order_relaxed) > 0; }
  class LongCalls {
   public:
    explicit LongCalls(Device& device) : device_(device) { device_.long_calls_.fetch_add(1); }
    ~LongCalls() { device_.long_calls_.fetch_sub(1); }
    LongCalls(const LongCalls&) = delete;
    LongCalls& operator=(const LongCalls&) = delete;

   private:
    Device& device_;
  };

  void add(Staying* kernel);
  void remove(Staying* kernel);
  /// While it is held, there is no Quiet.
  std::unique_lock<std::recursive_mutex> not_quiet() { return std::unique_lock(quiet_); }

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
  std::atomic<int> long_calls_{0};
  std::recursive_mutex quiet_;  // guards what stands below
  std::vector<Staying*> staying_;
  CopyRates rates_;
  bool measured_ = false;
  struct Loaded {
    std::vector<char> image;
    CUmodule module = nullptr;
    int users = 0;
    uint64_t used = 0;  // last, in uses_
  };
  std::vector<Loaded> loaded_;
  uint64_t uses_ = 0;
  std::mutex memory_;  // guards what stands below
  CUstream memory_stream_ = nullptr;
  struct Pinned {
    void* memory;
    size_t bytes;
    int node;
  };
  std::vector<Pinned> pinned_;  // given back
};

/// Pinned host memory that the device sees; zeroed.
class PinnedMemory {
 public:
  PinnedMemory() = default;
  ~PinnedMemory() { reset(); }
  PinnedMemory(const PinnedMemory&) = delete;
  PinnedMemory& operator=(const PinnedMemory&) = delete;

  /// \param node as in Device::take_pinned()
  bool allocate(std::shared_ptr<Device> device, size_t bytes, int node = -1);
  void reset();
  uint8_t* host() const { return static_cast<uint8_t*>(host_); }
  CUdeviceptr address() const { return address_; }
  size_t size() const { return size_; }

 private:
  std::shared_ptr<Device> device_;
  void* host_ = nullptr;
  CUdeviceptr address_ = 0;
  size_t size_ = 0;
  int node_ = -1;
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
