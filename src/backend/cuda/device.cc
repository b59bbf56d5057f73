#include "backend/cuda/device.hh"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>

namespace headrace::cuda {
namespace {

std::string first_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

/// Generation of PCI Express from "32.0 GT/s PCIe".
int generation_of(const std::string& speed) {
  const double rate = std::atof(speed.c_str());
  int generation = 0;
  for (const double limit : {2.0, 4.0, 7.0, 15.0, 31.0, 63.0})
    if (rate > limit) ++generation;
  return generation;
}

}  // namespace

std::shared_ptr<Device> Device::open(int ordinal, Errors& errors) {
  static std::mutex lock;
  static std::map<int, std::weak_ptr<Device>> opened;
  std::string why_not;
  const Driver* driver = Driver::get(&why_not);
  if (driver == nullptr) {
    (void)errors.error("{}", why_not);
    return nullptr;
  }
  const std::lock_guard guard(lock);
  if (std::shared_ptr<Device> device = opened[ordinal].lock()) return device;
  int count = 0;
  CUdevice handle = 0;
  driver->cuDeviceGetCount(&count);
  if (ordinal < 0 || ordinal >= count || driver->cuDeviceGet(&handle, ordinal) != CUresult::kSuccess) {
    (void)errors.error("there is no CUDA device {}: the driver shows {}", ordinal, count);
    return nullptr;
  }
  std::shared_ptr<Device> device(new Device(*driver, ordinal, handle));
  if (device->capability_ < 80) {
    (void)errors.error("CUDA device {} ({}) has compute capability {}.{}, needed is 8.0", ordinal, device->name_,
                       device->capability_ / 10, device->capability_ % 10);
    return nullptr;
  }
  // Workers poll, so waiting threads may too. Local memory that was once enough for a kernel is not given back: a new
  // size would wait for the kernel that stays.
  driver->cuDevicePrimaryCtxSetFlags(handle, kContextSpin | kContextKeepLocalMemory);
  const CUresult result = driver->cuDevicePrimaryCtxRetain(&device->context_, handle);
  if (result != CUresult::kSuccess) {
    device->context_ = nullptr;
    (void)errors.error("CUDA device {} ({}): {}", ordinal, device->name_, driver->text(result));
    return nullptr;
  }
  opened[ordinal] = device;
  return device;
}

Device::Device(const Driver& driver, int ordinal, CUdevice handle)
    : driver_(driver), ordinal_(ordinal), handle_(handle), id_([] {
        static std::atomic<uint64_t> last{0};
        return ++last;
      }()) {
  char name[256] = "";
  driver_.cuDeviceGetName(name, sizeof name, handle_);
  name_ = name;
  capability_ = 10 * attribute(kComputeCapabilityMajor) + attribute(kComputeCapabilityMinor);
}

Device::~Device() {
  if (context_ == nullptr) return;
  if (!failed()) {
    use();
    for (const Loaded& program : loaded_) driver_.cuModuleUnload(program.module);
    for (const Pinned& p : pinned_) driver_.cuMemFreeHost(p.memory);
    if (memory_stream_ != nullptr) driver_.cuStreamDestroy(memory_stream_);
  }
  driver_.cuDevicePrimaryCtxRelease(handle_);
}

int Device::attribute(CUdevice_attribute which) const {
  int value = 0;
  driver_.cuDeviceGetAttribute(&value, which, handle_);
  return value;
}

void Device::use() const {
  thread_local uint64_t current = 0;
  if (current == id_) [[likely]]
    return;
  driver_.cuCtxSetCurrent(context_);
  current = id_;
}

void Device::fail(const std::string& what) {
  if (failed_.exchange(true)) return;
  const std::string text = fmt::format("headrace: CUDA device {} ({}) failed: {}\n", ordinal_, name_, what);
  std::fputs(text.c_str(), stderr);
}

void Device::add(Staying* kernel) {
  const std::lock_guard guard(quiet_);
  staying_.push_back(kernel);
}

void Device::remove(Staying* kernel) {
  const std::lock_guard guard(quiet_);
  staying_.erase(std::remove(staying_.begin(), staying_.end(), kernel), staying_.end());
}

Device::Quiet::Quiet(Device& device) : device_(device), lock_(device.quiet_) {
  for (Staying* kernel : device_.staying_) kernel->pause();
}

Device::Quiet::~Quiet() {
  for (Staying* kernel : device_.staying_) kernel->resume();
}

CUdeviceptr Device::allocate(size_t bytes) {
  const std::lock_guard guard(memory_);
  if (failed()) return 0;
  use();
  if (memory_stream_ == nullptr &&
      !check(driver_.cuStreamCreate(&memory_stream_, kStreamNonBlocking), "making a stream"))
    return 0;
  CUdeviceptr address = 0;
  bytes = std::max<size_t>(bytes, 1);
  if (driver_.cuMemAllocAsync(&address, bytes, memory_stream_) != CUresult::kSuccess) return 0;
  if (!check(driver_.cuMemsetD8Async(address, 0, bytes, memory_stream_), "clearing memory")) return 0;
  return wait([this] { return driver_.cuStreamQuery(memory_stream_); }, "clearing memory") ? address : 0;
}

void Device::release(CUdeviceptr address) {
  const std::lock_guard guard(memory_);
  if (address == 0 || failed()) return;
  use();
  check(driver_.cuMemFreeAsync(address, memory_stream_), "releasing memory");
}

void* Device::take_pinned(size_t& bytes, int node) {
  const std::lock_guard guard(memory_);
  if (failed()) return nullptr;
  // Not one that is much too large, which another user may need.
  auto best = pinned_.end();
  for (auto it = pinned_.begin(); it != pinned_.end(); ++it)
    if (it->node == node && it->bytes >= bytes && it->bytes <= 2 * bytes + 4096 &&
        (best == pinned_.end() || it->bytes < best->bytes))
      best = it;
  void* memory = nullptr;
  if (best != pinned_.end()) {
    memory = best->memory;
    bytes = best->bytes;
    pinned_.erase(best);
  } else {
    const LongCalls calls(*this);
    use();
    if (driver_.cuMemHostAlloc(&memory, bytes, kHostPortable | kHostMapped) != CUresult::kSuccess) return nullptr;
  }
  std::memset(memory, 0, bytes);
  return memory;
}

void Device::give_back_pinned(void* memory, size_t bytes, int node) {
  const std::lock_guard guard(memory_);
  if (!failed()) pinned_.push_back({memory, bytes, node});
}

CUmodule Device::load(const std::vector<char>& image, const std::function<bool(CUmodule)>& warm_up, CUresult& problem) {
  problem = CUresult::kSuccess;
  const std::lock_guard guard(quiet_);
  const auto known = std::find_if(loaded_.begin(), loaded_.end(), [&](const Loaded& l) { return l.image == image; });
  if (known != loaded_.end()) {
    ++known->users;
    known->used = ++uses_;
    return known->module;
  }
  const LongCalls calls(*this);
  const Quiet quiet(*this);
  if (failed()) return nullptr;
  use();
  constexpr size_t kMostUnused = 4;
  const auto unused = [](const Loaded& l) { return l.users == 0; };
  while (static_cast<size_t>(std::count_if(loaded_.begin(), loaded_.end(), unused)) >= kMostUnused) {
    const auto oldest = std::min_element(loaded_.begin(), loaded_.end(), [](const Loaded& a, const Loaded& b) {
      return std::pair(a.users > 0, a.used) < std::pair(b.users > 0, b.used);
    });
    driver_.cuModuleUnload(oldest->module);
    loaded_.erase(oldest);
  }
  Loaded program{image, nullptr, 1, ++uses_};
  problem = driver_.cuModuleLoadData(&program.module, image.data());
  if (problem != CUresult::kSuccess) return nullptr;
  if (!warm_up(program.module)) return nullptr;
  return loaded_.emplace_back(std::move(program)).module;
}

void Device::unload(CUmodule module) {
  const std::lock_guard guard(quiet_);
  for (Loaded& program : loaded_)
    if (program.module == module) --program.users;
}

Device::CopyRates Device::copy_rates() {
  const std::lock_guard guard(quiet_);
  if (measured_ || failed()) return rates_;
  measured_ = true;
  use();
  constexpr size_t kBytes = size_t{64} << 20;
  constexpr int kRounds = 4;
  void* host = nullptr;
  CUdeviceptr there = 0;
  CUstream stream = nullptr;
  CUevent begin = nullptr, end = nullptr;
  const auto ok = [](CUresult r) { return r == CUresult::kSuccess; };
  if (ok(driver_.cuMemHostAlloc(&host, kBytes, kHostPortable)) && ok(driver_.cuMemAlloc(&there, kBytes)) &&
      ok(driver_.cuStreamCreate(&stream, kStreamNonBlocking)) && ok(driver_.cuEventCreate(&begin, 0)) &&
      ok(driver_.cuEventCreate(&end, 0))) {
    std::memset(host, 1, kBytes);
    const auto rate = [&](auto&& copy) {
      float milliseconds = 0;
      copy();
      driver_.cuEventRecord(begin, stream);
      for (int i = 0; i < kRounds; ++i) copy();
      driver_.cuEventRecord(end, stream);
      driver_.cuEventSynchronize(end);
      driver_.cuEventElapsedTime(&milliseconds, begin, end);
      return milliseconds > 0 ? static_cast<double>(kBytes) * kRounds / milliseconds * 1e-6 : 0;
    };
    rates_.to_device = rate([&] { driver_.cuMemcpyHtoDAsync(there, host, kBytes, stream); });
    rates_.from_device = rate([&] { driver_.cuMemcpyDtoHAsync(host, there, kBytes, stream); });
  }
  if (end != nullptr) driver_.cuEventDestroy(end);
  if (begin != nullptr) driver_.cuEventDestroy(begin);
  if (stream != nullptr) driver_.cuStreamDestroy(stream);
  if (there != 0) driver_.cuMemFree(there);
  if (host != nullptr) driver_.cuMemFreeHost(host);
  return rates_;
}

std::string Device::pci_address() const {
  char id[32] = "";
  if (driver_.cuDeviceGetPCIBusId(id, sizeof id, handle_) != CUresult::kSuccess) return {};
  std::string place = id;
  for (char& c : place) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return place;
}

int Device::numa_node() const {
  const std::string text = first_line("/sys/bus/pci/devices/" + pci_address() + "/numa_node");
  return text.empty() ? -1 : std::atoi(text.c_str());
}

std::string Device::link() const {
  const std::string place = pci_address();
  if (place.empty()) return "unknown";
  const std::string folder = "/sys/bus/pci/devices/" + place;
  const int generation = generation_of(first_line(folder + "/current_link_speed"));
  const std::string width = first_line(folder + "/current_link_width");
  if (generation == 0 || width.empty() || width == "0") return fmt::format("unknown ({})", place);
  return fmt::format("PCIe Gen{} x{} ({})", generation, width, place);
}

bool PinnedMemory::allocate(std::shared_ptr<Device> device, size_t bytes, int node) {
  size_ = bytes;
  node_ = node;
  host_ = device->take_pinned(size_, node);
  if (host_ == nullptr) return false;
  device_ = std::move(device);
  return device_->check(device_->driver().cuMemHostGetDevicePointer(&address_, host_, 0), "mapping pinned memory");
}

void PinnedMemory::reset() {
  if (host_ != nullptr) device_->give_back_pinned(host_, size_, node_);
  host_ = nullptr;
  device_.reset();
}

bool DeviceBuffer::allocate(std::shared_ptr<Device> device, size_t bytes) {
  address_ = device->allocate(bytes);
  if (address_ == 0) return false;
  device_ = std::move(device);
  return true;
}

void DeviceBuffer::reset() {
  if (address_ != 0) device_->release(address_);
  address_ = 0;
  device_.reset();
}

Stream::~Stream() {
  if (stream_ == nullptr || device_->failed()) return;
  device_->use();
  device_->driver().cuStreamDestroy(stream_);
}

bool Stream::create(std::shared_ptr<Device> device) {
  device->use();
  device_ = std::move(device);
  return device_->check(device_->driver().cuStreamCreate(&stream_, kStreamNonBlocking), "making a stream");
}

bool Stream::synchronize() const {
  if (device_->failed()) return false;
  device_->use();
  return device_->check(device_->driver().cuStreamSynchronize(stream_), "waiting for a stream");
}

bool Stream::wait(const char* doing) const {
  if (device_->failed()) return false;
  device_->use();
  return device_->wait([this] { return device_->driver().cuStreamQuery(stream_); }, doing);
}

}  // namespace headrace::cuda
