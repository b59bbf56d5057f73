#pragma once
/// \file
/// What commands that measure kernels share: a report, and a device with a clock.

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "backend/cuda/compile.hh"
#include "backend/cuda/device_memory.hh"
#include "cli/machine.hh"
#include "cli/output.hh"
#include "headrace/mirror.hh"
#include "headrace/version.hh"

namespace headrace::device_bench {

using Clock = std::chrono::steady_clock;
inline double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

/// Rounded to what can be told apart.
inline double rounded(double value) {
  const double unit = value < 10 ? 100 : value < 1000 ? 10 : 1;
  return std::round(value * unit) / unit;
}

/// Prints each result when it is there, and keeps all for the JSON. Begins with the machine and the commit.
class Report {
 public:
  explicit Report(bool quiet) : quiet_(quiet) {
    note("machine", cli::machine_name());
    note("cpu", cli::cpu_details().dump());
    note("commit", kCommit);
  }
  void note(const std::string& key, const std::string& text) {
    json_[key] = text;
    if (!quiet_) cli::print("{:<52}{}\n", key, text);
    std::fflush(stdout);
  }
  void figure(const std::string& group, const std::string& key, double value, const char* unit) {
    value = rounded(value);
    json_[group][key + " " + unit] = value;
    if (!quiet_) cli::print("{:<52}{:>10} {}\n", group + ", " + key, value, unit);
    std::fflush(stdout);
  }
  nlohmann::ordered_json& json() { return json_; }

 private:
  bool quiet_;
  nlohmann::ordered_json json_ = nlohmann::ordered_json::object();
};

/// Copies what a table's view points to.
class Uploads final : public Mirror {
 public:
  explicit Uploads(cuda::CudaMemory& memory) : memory_(memory) {}
  ~Uploads() {
    for (const uint64_t address : addresses_) memory_.release(address);
  }
  bool ok() const { return ok_; }

 private:
  /// An empty table has no address: views ask by it whether there is one.
  uint64_t place(const void* objects, size_t size, ChangedPages*) override {
    return size == 0 ? 0 : put(objects, size);
  }
  uint64_t put(const void* value, size_t size) override {
    const uint64_t address = memory_.allocate(std::max<size_t>(size, 16));
    ok_ = ok_ && address != 0 && memory_.upload(address, value, size).ok();
    addresses_.push_back(address);
    return address;
  }

  cuda::CudaMemory& memory_;
  std::vector<uint64_t> addresses_;
  bool ok_ = true;
};

/// A device, kernels made of a source, and their times by the device's clock.
class DeviceBench {
 public:
  DeviceBench(std::shared_ptr<cuda::Device> device, Report& report)
      : device_(std::move(device)), driver_(device_->driver()), report_(report), memory_(device_) {}
  ~DeviceBench() {
    if (device_->failed()) return;
    device_->use();
    for (const cuda::CUevent event : {begin_, end_})
      if (event != nullptr) driver_.cuEventDestroy(event);
    if (module_ != nullptr) driver_.cuModuleUnload(module_);
  }
  DeviceBench(const DeviceBench&) = delete;
  DeviceBench& operator=(const DeviceBench&) = delete;

 protected:
  Status open(const char* source, Errors& errors) {
    cuda::Image image;
    if (!cuda::compile_program(source, device_->capability(), true, image, errors)) return Status::failed();
    device_->use();
    if (!memory_.open(errors) || !stream_.create(device_)) return Status::failed();
    if (!check(driver_.cuModuleLoadData(&module_, image.bytes.data()), "loading the kernels") ||
        !check(driver_.cuEventCreate(&begin_, 0), "making an event") ||
        !check(driver_.cuEventCreate(&end_, 0), "making an event"))
      return errors.error("the device has failed");
    report_.note("device", fmt::format("{}, {}", device_->name(), image.note));
    report_.note("link", device_->link());
    return {};
  }
  bool check(cuda::CUresult result, const char* doing) { return device_->check(result, doing); }
  cuda::CUfunction function(const char* name) {
    cuda::CUfunction f = nullptr;
    check(driver_.cuModuleGetFunction(&f, module_, name), name);
    return f;
  }
  /// Launches with as many blocks as the device has room for, or `blocks`.
  template <typename... A>
  bool run(cuda::CUfunction f, unsigned blocks, unsigned threads, A... arguments) {
    void* values[] = {&arguments...};
    if (blocks == 0) {
      int fit = 0;
      driver_.cuOccupancyMaxActiveBlocksPerMultiprocessor(&fit, f, static_cast<int>(threads), 0);
      blocks = static_cast<unsigned>(fit * device_->attribute(cuda::kMultiprocessorCount));
    }
    return check(driver_.cuLaunchKernel(f, blocks, 1, 1, threads, 1, 1, 0, stream_.get(), values, nullptr), "a launch");
  }
  /// With `shared` bytes of shared memory for each block.
  template <typename... A>
  bool run_shared(cuda::CUfunction f, unsigned blocks, unsigned threads, unsigned shared, A... arguments) {
    void* values[] = {&arguments...};
    return check(driver_.cuLaunchKernel(f, blocks, 1, 1, threads, 1, 1, shared, stream_.get(), values, nullptr),
                 "a launch");
  }
  /// Seconds of one `work`, of at least `rounds`, on the device's clock; the first one warms up.
  template <typename Work>
  double time(int rounds, Work&& work) {
    work(0);
    driver_.cuEventRecord(begin_, stream_.get());
    for (int i = 1; i <= rounds; ++i) work(i);
    driver_.cuEventRecord(end_, stream_.get());
    if (!check(driver_.cuEventSynchronize(end_), "waiting")) return 1e9;
    float milliseconds = 0;
    driver_.cuEventElapsedTime(&milliseconds, begin_, end_);
    return std::max(milliseconds, 1e-6f) * 1e-3 / rounds;
  }

  std::shared_ptr<cuda::Device> device_;
  const cuda::Driver& driver_;
  Report& report_;
  cuda::CudaMemory memory_;
  cuda::Stream stream_;

 private:
  cuda::CUmodule module_ = nullptr;
  cuda::CUevent begin_ = nullptr, end_ = nullptr;
};

}  // namespace headrace::device_bench
