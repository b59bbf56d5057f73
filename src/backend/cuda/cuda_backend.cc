#include "backend/cuda/cuda_backend.hh"

#include <fmt/format.h>

#include <algorithm>

#include "backend/cuda/compile.hh"
#include "backend/cuda/device_memory.hh"
#include "backend/cuda/lane.hh"
#include "backend/cuda/packet_memory.hh"

namespace headrace::cuda {
namespace {

using offload::LaneOptions;
using offload::Program;
using offload::Run;

constexpr double kMiB = 1024.0 * 1024.0;

class CudaBackend final : public offload::Backend {
 public:
  CudaBackend(std::shared_ptr<Device> device, const CudaOptions& options)
      : device_(std::move(device)), options_(options), memory_(device_) {}
  ~CudaBackend() override;

  Status prepare(Errors& errors) { return memory_.open(errors); }

  offload::DeviceMemory& memory() override { return memory_; }
  Status open(const Program& program, const LaneOptions& options, Errors& errors) override;
  offload::Lane& lane(int worker) override { return *lanes_[static_cast<size_t>(worker)]; }
  bool stop() override;
  int numa_node() const override { return device_->numa_node(); }
  std::string describe() const override;

 private:
  Status check_limits(const Program& program, const LaneOptions& options, Errors& errors);
  Status load(const Image& image, Errors& errors);
  Status make_places(const LaneOptions& options, Errors& errors);
  Status make_stream_lanes(const LaneOptions& options, Errors& errors);
  Status make_resident_lanes(const LaneOptions& options, Errors& errors);
  Places places_of(int worker, const LaneOptions& options) const;
  bool warm_up();
  bool can_write_values();
  int blocks_that_fit(CUfunction function);
  Status failed(Errors& errors) const { return errors.error("CUDA device {} has failed", device_->ordinal()); }

  std::shared_ptr<Device> device_;
  const CudaOptions options_;
  CudaMemory memory_;
  CUmodule module_ = nullptr;
  CUfunction stream_function_ = nullptr;
  CUfunction resident_function_ = nullptr;
  CUfunction update_function_ = nullptr;
  StreamProgram program_;
  uint32_t stride_ = 0;  // longest row of any plan
  uint32_t shared_bytes_ = 0;
  size_t place_count_ = 0;
  Places places_;
  PinnedMemory place_memory_;
  DeviceBuffer there_;  // the same for the stream run
  DeviceBuffer plans_;
  std::shared_ptr<PacketMemory> packets_;  // where a plan scans payloads
  std::unique_ptr<ResidentKernel> kernel_;
  std::vector<std::unique_ptr<offload::Lane>> lanes_;
  Run run_ = Run::kResident;
  std::string note_;
  std::string compiled_;
  int registers_ = 0, local_bytes_ = 0;
};

CudaBackend::~CudaBackend() {
  lanes_.clear();
  kernel_.reset();
  if (device_->failed()) return;
  const Device::Quiet quiet(*device_);
  if (device_->failed()) return;
  device_->use();
  packets_.reset();
  there_.reset();
  plans_.reset();
  place_memory_.reset();
  if (module_ != nullptr) device_->driver().cuModuleUnload(module_);
}

bool CudaBackend::stop() {
  if (kernel_ != nullptr) {
    kernel_->pause();
  } else {
    for (const auto& lane : lanes_) static_cast<StreamLane&>(*lane).pause();
  }
  return !device_->failed();
}

Status CudaBackend::open(const Program& program, const LaneOptions& options, Errors& errors) {
  if (device_->failed()) return failed(errors);
  if (!check_limits(program, options, errors)) return Status::failed();
  Image image;
  const std::string source = program.source + "#include \"headrace/device/kernels.hh\"\n";
  if (!compile_program(source, device_->capability(), true, image, errors)) return Status::failed();
  compiled_ = image.note + (image.cached ? ", from the cache" : "");

  run_ = options.run;
  if (run_ == Run::kResident && device_->attribute(kKernelExecTimeout) != 0) {
    run_ = Run::kStream;
    note_ = " (a display limits the time of kernels, so none can stay)";
  }
  // Everything below may wait for a kernel that stays; the new one starts when this ends.
  const Device::Quiet quiet(*device_);
  if (device_->failed()) return failed(errors);
  device_->copy_rates();
  if (program_.stage_bytes != 0) {
    packets_ = PacketMemory::share(device_, errors);
    if (packets_ == nullptr) return Status::failed();
  }
  if (!load(image, errors) || !make_places(options, errors)) return Status::failed();
  if (!warm_up()) return failed(errors);
  memory_.update_by(update_function_);
  return run_ == Run::kResident ? make_resident_lanes(options, errors) : make_stream_lanes(options, errors);
}

Status CudaBackend::check_limits(const Program& program, const LaneOptions& options, Errors& errors) {
  if (program.plans.size() > size_t{1} << Doorbell::kPlanBits)
    return errors.error("{} plans are too many for a device, it takes {}", program.plans.size(),
                        1 << Doorbell::kPlanBits);
  for (const Program::Plan& plan : program.plans)
    if (plan.row.stride < 16 || plan.row.stride % 16 != 0 || plan.row.stride > kMaxStride)
      return errors.error("a row of {} bytes, kernels take multiples of 16 up to {}", plan.row.stride, kMaxStride);
  if (options.job_size < 1 || options.job_size >= 1 << Doorbell::kSlotBits)
    return errors.error("a job has 1 to {} packets, not {}", (1 << Doorbell::kSlotBits) - 1, options.job_size);
  program_ = StreamProgram();
  program_.parameter_bytes = static_cast<uint32_t>(program.parameter_bytes);
  stride_ = 16;
  for (const Program::Plan& plan : program.plans) {
    const bool scans = plan.row.address_size != 0;
    program_.plans.push_back({static_cast<uint32_t>(plan.row.stride), static_cast<uint32_t>(plan.counters), scans});
    if (scans) program_.stage_bytes = job_stage_bytes(true);
    stride_ = std::max(stride_, program_.plans.back().stride);
    program_.counters = std::max(program_.counters, program_.plans.back().counters);
  }
  shared_bytes_ = job_shared_bytes(program_.counters, program_.parameter_bytes, stride_, program_.stage_bytes);
  const auto room = static_cast<uint32_t>(device_->attribute(kMaxSharedMemoryPerBlockOptin));
  // The kernels have a few bytes of their own, the system another KiB.
  if (shared_bytes_ + 2048 > room)
    return errors.error(
        "{} rows of {} bytes, {} counters and {} bytes of parameters need {} bytes of shared memory, a block of CUDA "
        "device {} has {}",
        kJobThreads, stride_, program_.counters, program_.parameter_bytes, shared_bytes_, device_->ordinal(), room);
  return {};
}

Status CudaBackend::load(const Image& image, Errors& errors) {
  device_->use();
  const Driver& driver = device_->driver();
  if (const CUresult r = driver.cuModuleLoadData(&module_, image.bytes.data()); r != CUresult::kSuccess)
    return errors.error("CUDA device {} does not take the program ({}, driver {}.{}): {}", device_->ordinal(),
                        compiled_, driver.version / 1000, driver.version % 1000 / 10, driver.text(r));
  const auto find = [&](CUfunction& function, const char* name) {
    return device_->check(driver.cuModuleGetFunction(&function, module_, name), name) &&
           device_->check(
               driver.cuFuncSetAttribute(function, kFunctionMaxDynamicShared, static_cast<int>(shared_bytes_)),
               "reserving shared memory");
  };
  if (!find(stream_function_, "headrace_stream") || !find(resident_function_, "headrace_resident"))
    return failed(errors);
  if (!device_->check(driver.cuModuleGetFunction(&update_function_, module_, "headrace_update"), "headrace_update"))
    return failed(errors);
  program_.function = stream_function_;
  const CUfunction used = run_ == Run::kResident ? resident_function_ : stream_function_;
  driver.cuFuncGetAttribute(&registers_, kFunctionRegisters, used);
  driver.cuFuncGetAttribute(&local_bytes_, kFunctionLocalBytes, used);
  return {};
}

Status CudaBackend::make_places(const LaneOptions& options, Errors& errors) {
  places_.rows_at = rows_at(program_.counters);
  // Whole lines, and not all places at the same offset of a page: they would share few sets of the CPU's caches.
  places_.stride = (places_.rows_at + static_cast<size_t>(options.job_size) * stride_ + 127) / 128 * 128 + 128;
  place_count_ = static_cast<size_t>(options.workers) * static_cast<size_t>(options.jobs);
  const size_t bytes = places_.stride * place_count_;
  if (!place_memory_.allocate(device_, bytes))
    return errors.error("no pinned memory for {} workers x {} jobs of {} packets: {:.1f} MiB needed", options.workers,
                        options.jobs, options.job_size, static_cast<double>(bytes) / kMiB);
  places_.host = place_memory_.host();
  places_.address = place_memory_.address();
  const size_t plans = std::max<size_t>(program_.plans.size(), 1) * sizeof(DevicePlan);
  if (!plans_.allocate(device_, plans) || (run_ == Run::kStream && !there_.allocate(device_, bytes)))
    return errors.error("CUDA device {} has not enough memory for jobs: {:.1f} MiB needed, {:.1f} of {:.1f} MiB free",
                        device_->ordinal(), static_cast<double>(bytes + plans) / kMiB,
                        static_cast<double>(memory_.free_bytes()) / kMiB,
                        static_cast<double>(memory_.total_bytes()) / kMiB);
  return memory_.upload(plans_.address(), program_.plans.data(), program_.plans.size() * sizeof(DevicePlan)).ok()
             ? Status()
             : failed(errors);
}

/// The first launch of a kernel may reserve memory; a job without rows and an update without pieces get that over.
bool CudaBackend::warm_up() {
  StreamArguments arguments{};
  arguments.stride = stride_;
  arguments.stage_bytes = program_.stage_bytes;
  void* values[] = {&arguments};
  CUdeviceptr nothing = 0;
  uint32_t none = 0;
  void* no_pieces[] = {&nothing, &none, &nothing};
  Stream stream;
  return stream.create(device_) &&
         device_->check(device_->driver().cuLaunchKernel(update_function_, 1, 1, 1, kJobThreads, 1, 1, 0, stream.get(),
                                                         no_pieces, nullptr),
                        "starting a kernel") &&
         device_->check(device_->driver().cuLaunchKernel(stream_function_, 1, 1, 1, kJobThreads, 1, 1, shared_bytes_,
                                                         stream.get(), values, nullptr),
                        "starting a kernel") &&
         stream.synchronize();
}

bool CudaBackend::can_write_values() {
  const Driver& driver = device_->driver();
  if (driver.cuStreamWriteValue32 == nullptr) return false;
  Stream stream;
  // Into a done word that no job uses yet.
  const uint32_t probe = 0x5eed;
  if (!stream.create(device_) ||
      driver.cuStreamWriteValue32(stream.get(), places_.address + kDoneAt, probe, 0) != CUresult::kSuccess)
    return false;
  const bool works = stream.synchronize() && __atomic_load_n(places_.done(0), __ATOMIC_ACQUIRE) == probe;
  *places_.done(0) = 0;
  return works;
}

Places CudaBackend::places_of(int worker, const LaneOptions& options) const {
  return places_.from(worker * options.jobs);
}

Status CudaBackend::make_stream_lanes(const LaneOptions& options, Errors& errors) {
  program_.write_values = can_write_values();
  for (int w = 0; w < options.workers; ++w) {
    const Places places = places_of(w, options);
    auto lane = std::make_unique<StreamLane>(device_, places, options.jobs,
                                             there_.address() + (places.address - places_.address), program_);
    if (!lane->open()) return failed(errors);
    lanes_.push_back(std::move(lane));
  }
  return {};
}

int CudaBackend::blocks_that_fit(CUfunction function) {
  int blocks = 0;
  device_->check(
      device_->driver().cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, function, kJobThreads, shared_bytes_),
      "asking how many blocks fit");
  return blocks * device_->attribute(kMultiprocessorCount);
}

Status CudaBackend::make_resident_lanes(const LaneOptions& options, Errors& errors) {
  // The other half is for the next generation of the router, which starts while this one ends. Even beside both, there
  // must be room for a block that updates tables.
  const size_t most = static_cast<size_t>(std::max((blocks_that_fit(resident_function_) - 1) / 2, 1));
  const size_t teams = std::min(place_count_, most);
  const size_t in_team = std::clamp<size_t>(most / teams, 1, kMostInTeam);
  if (teams * kPlacesPerBlock < place_count_)
    return errors.error(
        "{} workers x {} jobs are too many for the resident kernel: CUDA device {} takes {}; use RUN stream",
        options.workers, options.jobs, device_->ordinal(), most * kPlacesPerBlock);
  ResidentArguments arguments{};
  arguments.places = places_.address;
  arguments.plans = plans_.address();
  arguments.place_stride = places_.stride;
  arguments.idle_ns = static_cast<uint64_t>(std::max(options_.resident_idle_us, 0)) * 1000;
  arguments.place_count = static_cast<uint32_t>(place_count_);
  arguments.rows_at = places_.rows_at;
  arguments.counters = program_.counters;
  arguments.parameter_bytes = program_.parameter_bytes;
  arguments.stage_bytes = program_.stage_bytes;
  arguments.teams = static_cast<uint32_t>(teams);
  kernel_ = std::make_unique<ResidentKernel>(device_, resident_function_, static_cast<unsigned>(teams * in_team),
                                             shared_bytes_, arguments, places_.host);
  if (!kernel_->start()) return failed(errors);
  for (int w = 0; w < options.workers; ++w)
    lanes_.push_back(std::make_unique<ResidentLane>(device_, places_of(w, options), options.jobs, *kernel_));
  return {};
}

std::string CudaBackend::describe() const {
  const Driver& driver = device_->driver();
  const Device::CopyRates rates = device_->copy_rates();
  std::string text = fmt::format("device: {} (CUDA {}, compute capability {}.{}, {} multiprocessors)\n",
                                 device_->name(), device_->ordinal(), device_->capability() / 10,
                                 device_->capability() % 10, device_->attribute(kMultiprocessorCount));
  text += fmt::format("driver: {}.{}\n", driver.version / 1000, driver.version % 1000 / 10);
  text += fmt::format("link: {}\n", device_->link());
  text += fmt::format("copies: {:.1f} GB/s to the device, {:.1f} GB/s back\n", rates.to_device, rates.from_device);
  text += fmt::format("program: {}, {} registers, {} bytes of stack, {} bytes of shared memory\n", compiled_,
                      registers_, local_bytes_, shared_bytes_);
  text += fmt::format("run: {}{}\n", run_ == Run::kResident ? "resident" : "stream", note_);
  text += fmt::format("lanes: {}, {:.1f} MiB of pinned memory\n", lanes_.size(),
                      static_cast<double>(place_memory_.size()) / kMiB);
  if (kernel_ != nullptr) {
    text += fmt::format("blocks: {} of {} threads in {} teams for {} job places\n", kernel_->blocks(), kJobThreads,
                        kernel_->teams(), place_count_);
    text += fmt::format("starts: {}\n", kernel_->starts());
  } else if (!lanes_.empty()) {
    text += fmt::format("done words: {}\n", program_.write_values ? "written by the stream" : "copied");
  }
  return text;
}

}  // namespace

int cuda_device_count(std::string* why_not) {
  const Driver* driver = Driver::get(why_not);
  if (driver == nullptr) return 0;
  int count = 0;
  const CUresult result = driver->cuDeviceGetCount(&count);
  if (result == CUresult::kSuccess && count > 0) return count;
  if (why_not != nullptr)
    *why_not = "no CUDA device: " + (result == CUresult::kSuccess ? "the driver shows none" : driver->text(result));
  return 0;
}

std::unique_ptr<offload::Backend> make_cuda_backend(int device, Errors& errors, const CudaOptions& options) {
  std::shared_ptr<Device> opened = Device::open(device, errors);
  if (opened == nullptr) return nullptr;
  auto backend = std::make_unique<CudaBackend>(std::move(opened), options);
  if (!backend->prepare(errors)) return nullptr;
  return backend;
}

}  // namespace headrace::cuda
