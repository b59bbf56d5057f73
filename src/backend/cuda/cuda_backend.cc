#include "backend/cuda/cuda_backend.hh"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "backend/cuda/compile.hh"
#include "backend/cuda/device_memory.hh"
#include "backend/cuda/lane.hh"
#include "backend/cuda/packet_memory.hh"
#include "offload/placement.hh"

namespace headrace::cuda {
namespace {

using offload::LaneOptions;
using offload::PlanKind;
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
  Status open_lanes(const std::vector<LaneFor>& lanes, Errors& errors) override;
  bool offers(Run run) const override { return run == Run::kResident ? resident_ : stream_; }
  int resident_idle_us() const override { return resident_ ? std::max(options_.resident_idle_us, 1) : 0; }
  offload::Lane* lane(int worker, Run run) override {
    const Lanes& lanes = lanes_[static_cast<size_t>(worker)];
    return run == Run::kResident ? static_cast<offload::Lane*>(lanes.resident.get()) : lanes.stream.get();
  }
  bool stop() override;
  int numa_node() const override { return device_->numa_node(); }
  std::string describe() const override;

 private:
  Status check_limits(const Program& program, const LaneOptions& options, Errors& errors);
  Status load(const Image& image, Errors& errors);
  Status open_kernels(Errors& errors);
  /// Memory for one worker's places of one kind of lanes.
  Status make_places(const LaneFor& lane, Run run, Errors& errors);
  Places places_of(int worker, Run run) const;
  bool make_stream_lane(int worker);
  bool find_kernels(CUmodule module);
  bool warm_up();
  bool can_write_values(const Places& places);
  /// The most blocks that the resident kernel of each class may have.
  std::array<unsigned, kPlanClasses> most_blocks();
  Status failed(Errors& errors) const { return errors.error("CUDA device {} has failed", device_->ordinal()); }

  std::shared_ptr<Device> device_;
  const CudaOptions options_;
  CudaMemory memory_;
  CUmodule module_ = nullptr;
  CUfunction update_function_ = nullptr;
  StreamProgram program_;
  LaneOptions options_of_lanes_;
  /// What all plans of one class have in common.
  struct OfClass {
    bool used = false;
    uint32_t stride = 16;   // of the longest row
    uint32_t counters = 0;  // of the plan that has most
    uint32_t shared_bytes = 0;
    bool homes = false;  // packets stay on the device between shaders
    CUfunction stream = nullptr, resident = nullptr;
    int registers = 0, local_bytes = 0;
  };
  std::array<OfClass, kPlanClasses> of_class_;
  std::vector<PlanKind> kinds_;  // of plans
  Places layout_;                // of each lane's places
  DeviceBuffer plans_;
  DeviceBuffer lane_list_;  // addresses of the resident lanes' places
  DeviceBuffer homes_;      // for the resident run: see Slot::home
  /// By worker.
  struct LaneMemory {
    std::array<PinnedMemory, offload::kRuns> places;  // by kind
    DeviceBuffer there;                               // the same for the stream run
    DeviceBuffer homes;                               // for it: see Slot::home
  };
  std::unique_ptr<LaneMemory[]> lane_memory_;
  std::shared_ptr<PacketMemory> packets_;  // where a plan scans payloads
  ResidentLane::Kernels kernels_;
  /// Of all stream lanes, where the resident kernels run, too: streams share a few queues of the device, and what is
  /// behind a kernel that stays would wait for it.
  StreamLane::Streams shared_streams_;
  struct Lanes {
    std::unique_ptr<ResidentLane> resident;
    std::unique_ptr<StreamLane> stream;
  };
  std::vector<Lanes> lanes_;              // by worker
  bool resident_ = true, stream_ = true;  // the kinds of lanes that there are
  std::string note_;
  std::string compiled_;
};

CudaBackend::~CudaBackend() {
  lanes_.clear();
  for (auto& kernel : kernels_) kernel.reset();
  if (module_ != nullptr) device_->unload(module_);
}

bool CudaBackend::stop() {
  for (const auto& kernel : kernels_)
    if (kernel != nullptr) kernel->pause();
  for (const Lanes& lanes : lanes_)
    if (lanes.stream != nullptr) lanes.stream->pause();
  return !device_->failed();
}

Status CudaBackend::open(const Program& program, const LaneOptions& options, Errors& errors) {
  if (device_->failed()) return failed(errors);
  if (!check_limits(program, options, errors)) return Status::failed();
  Image image;
  const std::string source = program.source + "#include \"headrace/device/kernels.hh\"\n";
  if (!compile_program(source, device_->capability(), true, image, errors)) return Status::failed();
  compiled_ = image.note + (image.cached ? ", from the cache" : "");

  resident_ = options.resident;
  stream_ = options.stream;
  if (resident_ && device_->attribute(kKernelExecTimeout) != 0) {
    resident_ = false;
    stream_ = true;
    note_ = " (a display limits the time of kernels, so none can stay)";
  }
  device_->copy_rates();
  if (of_class_[kPayloadPlans].used) {
    packets_ = PacketMemory::share(device_, errors);
    if (packets_ == nullptr) return Status::failed();
  }
  if (!load(image, errors)) return Status::failed();
  if (resident_ && stream_)
    for (Stream& stream : shared_streams_)
      if (!stream.create(device_)) return failed(errors);
  memory_.update_by(update_function_);
  lanes_.resize(static_cast<size_t>(options.workers));
  lane_memory_ = std::make_unique<LaneMemory[]>(lanes_.size());
  return open_kernels(errors);
}

Status CudaBackend::check_limits(const Program& program, const LaneOptions& options, Errors& errors) {
  if (program.plans.size() > size_t{1} << Doorbell::kPlanBits)
    return errors.error("{} plans are too many for a device, it takes {}", program.plans.size(),
                        1 << Doorbell::kPlanBits);
  for (const Program::Plan& plan : program.plans)
    for (const int bytes : {plan.row.stride, plan.row.there, plan.row.back})
      if (bytes < 16 || bytes % 16 != 0 || bytes > kMaxStride)
        return errors.error("a row of {} bytes, kernels take multiples of 16 up to {}", bytes, kMaxStride);
  if (options.job_size < 1 || options.job_size >= 1 << Doorbell::kSlotBits)
    return errors.error("a job has 1 to {} packets, not {}", (1 << Doorbell::kSlotBits) - 1, options.job_size);
  options_of_lanes_ = options;
  program_ = StreamProgram();
  program_.parameter_bytes = static_cast<uint32_t>(program.parameter_bytes);
  program_.tiles = static_cast<size_t>((options.job_size + kJobThreads - 1) / kJobThreads);
  kinds_.clear();
  of_class_ = {};
  for (const Program::Plan& plan : program.plans) {
    const PlanClass c = class_of(plan.row);
    const RowLayout& row = plan.row;
    const DevicePlan p{static_cast<uint32_t>(row.stride),
                       static_cast<uint32_t>(row.header),
                       static_cast<uint32_t>(row.there),
                       static_cast<uint32_t>(row.back),
                       static_cast<uint32_t>(row.in_place),
                       static_cast<uint32_t>(plan.counters),
                       c};
    program_.plans.push_back(p);
    kinds_.push_back({c, row.in_place != 0});
    OfClass& of_class = of_class_[c];
    of_class.used = true;
    of_class.homes |= plan.reads_payloads_again;
    of_class.stride = std::max(of_class.stride, p.stride);
    of_class.counters = std::max(of_class.counters, p.counters);
    program_.counters = std::max(program_.counters, p.counters);
  }
  layout_ = offload::lay_out_places(program.plans, options.job_size);
  const auto room = static_cast<uint32_t>(device_->attribute(kMaxSharedMemoryPerBlockOptin));
  for (const PlanClass c : {kHeaderPlans, kPayloadPlans}) {
    OfClass& of_class = of_class_[c];
    program_.block_bytes[c] = program.block_bytes[c];
    of_class.shared_bytes =
        program_.block_bytes[c] + job_shared_bytes(c, of_class.counters, program_.parameter_bytes, of_class.stride);
    // The kernels have a few bytes of their own, the system another KiB.
    if (of_class.used && of_class.shared_bytes + 2048 > room)
      return errors.error(
          "{} rows of {} bytes, {} counters and {} bytes of parameters need {} bytes of shared memory, a block of CUDA "
          "device {} has {}",
          kJobThreads, of_class.stride, of_class.counters, program_.parameter_bytes, of_class.shared_bytes,
          device_->ordinal(), room);
  }
  return {};
}

Status CudaBackend::load(const Image& image, Errors& errors) {
  CUresult problem;
  module_ = device_->load(
      image.bytes, [this](CUmodule module) { return find_kernels(module) && warm_up(); }, problem);
  if (problem != CUresult::kSuccess)
    return errors.error("CUDA device {} does not take the program ({}, driver {}.{}): {}", device_->ordinal(),
                        compiled_, device_->driver().version / 1000, device_->driver().version % 1000 / 10,
                        device_->driver().text(problem));
  if (module_ == nullptr || !find_kernels(module_)) return failed(errors);
  const size_t plans = std::max<size_t>(program_.plans.size(), 1) * sizeof(DevicePlan);
  const size_t list = static_cast<size_t>(std::max(options_of_lanes_.workers, 1)) * sizeof(CUdeviceptr);
  if (!plans_.allocate(device_, plans) || !lane_list_.allocate(device_, list))
    return errors.error("CUDA device {} has not enough memory: {:.1f} of {:.1f} MiB free", device_->ordinal(),
                        static_cast<double>(memory_.free_bytes()) / kMiB,
                        static_cast<double>(memory_.total_bytes()) / kMiB);
  return memory_.upload(plans_.address(), program_.plans.data(), program_.plans.size() * sizeof(DevicePlan)).ok()
             ? Status()
             : failed(errors);
}

bool CudaBackend::find_kernels(CUmodule module) {
  const Driver& driver = device_->driver();
  const auto find = [&](CUfunction& function, const char* name, uint32_t shared_bytes) {
    if (!device_->check(driver.cuModuleGetFunction(&function, module, name), name)) return false;
    int reserved = 0;
    driver.cuFuncGetAttribute(&reserved, kFunctionMaxDynamicShared, function);
    return reserved >= static_cast<int>(shared_bytes) ||
           device_->check(
               driver.cuFuncSetAttribute(function, kFunctionMaxDynamicShared, static_cast<int>(shared_bytes)),
               "reserving shared memory");
  };
  const char* const names[kPlanClasses][2] = {{"headrace_stream_headers", "headrace_resident_headers"},
                                              {"headrace_stream_payloads", "headrace_resident_payloads"}};
  for (size_t c = 0; c < of_class_.size(); ++c) {
    OfClass& of_class = of_class_[c];
    if (!of_class.used) continue;
    if (!find(of_class.stream, names[c][0], of_class.shared_bytes) ||
        !find(of_class.resident, names[c][1], of_class.shared_bytes))
      return false;
    program_.functions[c] = of_class.stream;
    const CUfunction function = resident_ ? of_class.resident : of_class.stream;
    driver.cuFuncGetAttribute(&of_class.registers, kFunctionRegisters, function);
    driver.cuFuncGetAttribute(&of_class.local_bytes, kFunctionLocalBytes, function);
  }
  return find(update_function_, "headrace_update", 0);
}

/// The first launch of a kernel may reserve memory for its stack, and would wait for kernels that stay. Here each does
/// nothing.
bool CudaBackend::warm_up() {
  Stream stream;
  if (!stream.create(device_)) return false;
  const auto launch = [&](CUfunction function, uint32_t shared_bytes, void** values) {
    return device_->check(device_->driver().cuLaunchKernel(function, 1, 1, 1, kJobThreads, 1, 1, shared_bytes,
                                                           stream.get(), values, nullptr),
                          "starting a kernel");
  };
  CUdeviceptr nothing = 0;
  uint32_t none = 0;
  void* no_pieces[] = {&nothing, &none, &nothing};
  bool ok = launch(update_function_, 0, no_pieces);
  for (const OfClass& of_class : of_class_) {
    if (!of_class.used) continue;
    StreamArguments no_job{};
    no_job.layout.stride = of_class.stride;
    ResidentArguments leave{};
    void* no_rows[] = {&no_job};
    void* no_places[] = {&leave};
    ok = ok && launch(of_class.stream, of_class.shared_bytes, no_rows) &&
         launch(of_class.resident, of_class.shared_bytes, no_places);
  }
  return ok && stream.synchronize();
}

bool CudaBackend::can_write_values(const Places& places) {
  const Driver& driver = device_->driver();
  if (driver.cuStreamWriteValue32 == nullptr) return false;
  Stream stream;
  // Into a done word that no job uses yet.
  const uint32_t probe = 0x5eed;
  uint32_t* const done = places.done(0, kHeaderPlans);
  if (!stream.create(device_) ||
      driver.cuStreamWriteValue32(stream.get(), places.address + done_at(kHeaderPlans), probe, 0) != CUresult::kSuccess)
    return false;
  const bool works = stream.synchronize() && __atomic_load_n(done, __ATOMIC_ACQUIRE) == probe;
  *done = 0;
  return works;
}

std::array<unsigned, kPlanClasses> CudaBackend::most_blocks() {
  std::array<unsigned, kPlanClasses> fit{}, most{};  // fit: on a multiprocessor, if there is nothing else
  const auto processors = static_cast<unsigned>(device_->attribute(kMultiprocessorCount));
  for (size_t c = 0; c < fit.size(); ++c) {
    int blocks = 0;
    if (of_class_[c].used)
      device_->check(device_->driver().cuOccupancyMaxActiveBlocksPerMultiprocessor(
                         &blocks, of_class_[c].resident, kJobThreads, of_class_[c].shared_bytes),
                     "asking how many blocks fit");
    fit[c] = static_cast<unsigned>(blocks);
  }
  // Half of the room is for the next generation of the router, which starts while this one ends. Even beside both,
  // there must be room for a block that updates tables.
  const auto half = [&](unsigned on_each) { return std::max((on_each * processors - 1) / 2, 1U); };
  if (fit[0] == 0 || fit[1] == 0) {
    for (size_t c = 0; c < fit.size(); ++c) most[c] = fit[c] == 0 ? 0 : half(fit[c]);
    return most;
  }
  // Headers take little time: their blocks are few, but enough to poll all places. Each, of both generations, takes the
  // room of at most so many blocks for payloads, also when it is the only one of its kind on a multiprocessor.
  const auto places = static_cast<unsigned>(options_of_lanes_.workers * options_of_lanes_.jobs);
  const unsigned polled = (places + kPlacesPerBlock - 1) / kPlacesPerBlock;
  const bool share = fit[kHeaderPlans] > 1 && fit[kPayloadPlans] > 1;
  const unsigned headers = std::max(std::clamp(polled, processors / (share ? 4 : 8), processors / 4), 1U);
  const unsigned taken = (fit[kPayloadPlans] + fit[kHeaderPlans] - 1) / fit[kHeaderPlans];
  const unsigned room = fit[kPayloadPlans] * processors;
  most[kHeaderPlans] = headers;
  most[kPayloadPlans] = std::max((room - std::min(room, 2 * headers * taken + 1)) / 2, 1U);
  return most;
}

Status CudaBackend::open_kernels(Errors& errors) {
  if (!resident_) return {};
  const std::array<unsigned, kPlanClasses> most = most_blocks();
  ResidentArguments arguments{};
  arguments.plans = plans_.address();
  arguments.place_stride = layout_.stride;
  arguments.idle_ns = static_cast<uint64_t>(std::max(options_.resident_idle_us, 0)) * 1000;
  arguments.rows = layout_.at_rows;
  arguments.parameter_bytes = program_.parameter_bytes;
  for (const PlanClass c : {kHeaderPlans, kPayloadPlans}) {
    const OfClass& of_class = of_class_[c];
    if (!of_class.used) continue;
    arguments.counters = of_class.counters;
    if (of_class.homes && !homes_.allocate(device_, most[c] * kHomeBytes))
      return errors.error("CUDA device {} has not enough memory for packets between shaders: {} MiB needed",
                          device_->ordinal(), most[c] * kHomeBytes >> 20);
    arguments.homes = of_class.homes ? homes_.address() : 0;
    kernels_[c] =
        std::make_unique<ResidentKernel>(device_, of_class.resident, c, most[c], of_class.shared_bytes, arguments);
    if (!kernels_[c]->open()) return failed(errors);
  }
  return {};
}

Status CudaBackend::make_places(const LaneFor& lane, Run run, Errors& errors) {
  const size_t bytes = layout_.stride * static_cast<size_t>(options_of_lanes_.jobs);
  LaneMemory& memory = lane_memory_[static_cast<size_t>(lane.worker)];
  const offload::NearNode near(lane.node);
  if (!memory.places[static_cast<size_t>(run)].allocate(device_, bytes, lane.node))
    return errors.error("no pinned memory for worker {} x {} jobs of {} packets: {:.1f} MiB needed", lane.worker,
                        options_of_lanes_.jobs, options_of_lanes_.job_size, static_cast<double>(bytes) / kMiB);
  const size_t homes =
      of_class_[kPayloadPlans].homes ? program_.tiles * kHomeBytes * static_cast<size_t>(options_of_lanes_.jobs) : 0;
  if (run == Run::kStream &&
      (!memory.there.allocate(device_, bytes) || (homes > 0 && !memory.homes.allocate(device_, homes))))
    return errors.error("CUDA device {} has not enough memory for jobs: {:.1f} MiB needed, {:.1f} of {:.1f} MiB free",
                        device_->ordinal(), static_cast<double>(bytes + homes) / kMiB,
                        static_cast<double>(memory_.free_bytes()) / kMiB,
                        static_cast<double>(memory_.total_bytes()) / kMiB);
  return {};
}

Places CudaBackend::places_of(int worker, Run run) const {
  const PinnedMemory& memory = lane_memory_[static_cast<size_t>(worker)].places[static_cast<size_t>(run)];
  Places places = layout_;
  places.host = memory.host();
  places.address = memory.address();
  return places;
}

bool CudaBackend::make_stream_lane(int worker) {
  const LaneMemory& memory = lane_memory_[static_cast<size_t>(worker)];
  const Places places = places_of(worker, Run::kStream);
  if (!program_.write_values) program_.write_values = can_write_values(places);
  auto lane = std::make_unique<StreamLane>(device_, places, options_of_lanes_.jobs, kinds_, memory.there.address(),
                                           memory.homes.address(), program_, resident_ ? &shared_streams_ : nullptr);
  if (!lane->open()) return false;
  lanes_[static_cast<size_t>(worker)].stream = std::move(lane);
  return true;
}

Status CudaBackend::open_lanes(const std::vector<LaneFor>& lanes, Errors& errors) {
  if (device_->failed()) return failed(errors);
  const auto open = static_cast<size_t>(
      std::count_if(lanes_.begin(), lanes_.end(), [](const Lanes& l) { return l.resident || l.stream; }));
  const size_t places = (open + lanes.size()) * static_cast<size_t>(options_of_lanes_.jobs);
  for (const auto& kernel : kernels_)
    if (kernel != nullptr && kernel->most_places() < places)
      return errors.error(
          "{} workers x {} jobs are too many for the resident kernel: CUDA device {} takes {}; use RUN stream",
          open + lanes.size(), options_of_lanes_.jobs, device_->ordinal(), kernel->most_places());
  device_->use();
  std::vector<int> streaming;  // workers
  bool lacks = false;
  for (const LaneFor& lane : lanes) {
    if (resident_ && !make_places(lane, Run::kResident, errors).ok()) return Status::failed();
    Errors of_choice;  // who has a resident lane can do without the other
    if (!stream_) continue;
    if (make_places(lane, Run::kStream, resident_ ? of_choice : errors).ok()) {
      streaming.push_back(lane.worker);
    } else {
      if (!resident_) return Status::failed();
      lacks = true;
      note_ = " (not enough memory for stream lanes of all workers)";
    }
  }
  for (const LaneFor& lane : lanes)
    if (resident_)
      lanes_[static_cast<size_t>(lane.worker)].resident = std::make_unique<ResidentLane>(
          device_, places_of(lane.worker, Run::kResident), options_of_lanes_.jobs, kinds_, kernels_);
  for (const int worker : streaming)
    if (!make_stream_lane(worker)) return failed(errors);
  if (lacks && std::none_of(lanes_.begin(), lanes_.end(), [](const Lanes& l) { return l.stream != nullptr; }))
    stream_ = false;
  if (!resident_) return {};
  std::vector<Places> all;
  std::vector<CUdeviceptr> list;
  for (const Lanes& of_worker : lanes_) {
    if (of_worker.resident == nullptr) continue;
    all.push_back(of_worker.resident->places());
    list.push_back(all.back().address);
  }
  if (!memory_.upload(lane_list_.address(), list.data(), list.size() * sizeof list[0]).ok()) return failed(errors);
  for (const auto& kernel : kernels_)
    if (kernel != nullptr) kernel->serve(all, lane_list_.address(), options_of_lanes_.jobs);
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
  text += fmt::format("program: {}\n", compiled_);
  size_t lanes = 0, pinned = 0;
  for (size_t w = 0; w < lanes_.size(); ++w) {
    lanes += lanes_[w].resident || lanes_[w].stream;
    for (const PinnedMemory& places : lane_memory_[w].places) pinned += places.size();
  }
  text += fmt::format("run: {}{}\n", !stream_ ? "resident" : resident_ ? "resident or stream" : "stream", note_);
  text += fmt::format("lanes: {}, {:.1f} MiB of pinned memory\n", lanes, static_cast<double>(pinned) / kMiB);
  uint32_t starts = 0;
  for (size_t c = 0; c < of_class_.size(); ++c) {
    if (!of_class_[c].used) continue;
    text += fmt::format("kernel for {}: {} registers, {} bytes of stack, {} bytes of shared memory",
                        c == kHeaderPlans ? "headers" : "payloads", of_class_[c].registers, of_class_[c].local_bytes,
                        of_class_[c].shared_bytes);
    if (const ResidentKernel* const kernel = kernels_[c].get()) {
      text += fmt::format(", {} blocks of {} threads in {} teams for {} job places", kernel->blocks(), kJobThreads,
                          kernel->teams(), kernel->places());
      starts += kernel->starts();
    }
    text += '\n';
  }
  if (resident_) text += fmt::format("starts: {}\n", starts);
  if (stream_ && lanes > 0)
    text += fmt::format("done words: {}\n", program_.write_values ? "written by the stream" : "copied");
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
