#include "offload_fixture.hh"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <mutex>

#include "backend/cuda/cuda_backend.hh"
#include "backend/cuda/device.hh"
#include "backend/devices.hh"
#include "backend/reference/reference_backend.hh"
#include "headrace/real_clock.hh"
#include "headrace/shader.hh"

namespace headrace::testing {

namespace {

/// Jobs that are held back come to the device only when they no longer are.
class ControlledLane final : public offload::Lane {
 public:
  /// \param faults those that the device does not play itself
  ControlledLane(offload::Lane& lane, DeviceControls& controls, const ReferenceOptions& faults, offload::Run run)
      : lane_(lane), controls_(controls), faults_(faults), run_(run), jobs_(64) {}

  uint8_t* rows_in(int job) override {
    if (at(job).number >= 0 && !at(job).done) ++controls_.reused;
    return lane_.rows_in(job);
  }
  const uint8_t* whole_rows(int job) override { return lane_.whole_rows(job); }
  const uint8_t* rows_out(int job) override {
    if (!at(job).done) ++controls_.unhealthy_reads;
    return lane_.rows_out(job);
  }
  void counts(int job, uint64_t* counts, int n) override {
    if (!at(job).done) ++controls_.unhealthy_reads;
    lane_.counts(job, counts, n);
  }
  bool submit(int job, int plan, int slots, uint64_t parameters) override {
    if (at(job).number >= 0 && !at(job).done) ++controls_.reused;
    if (failed(controls_.submitted.load())) return false;
    at(job) = {controls_.submitted.fetch_add(1), false, false, plan, slots, parameters, now_ns()};
    controls_.streamed += run_ == offload::Run::kStream;
    controls_.slots += slots;
    controls_.last_size = slots;
    return held(at(job)) || hand_over(job);
  }
  State poll(int job) override {
    if (at(job).done) return State::kDone;
    if (failed(at(job).number)) return State::kFailed;
    if (held(at(job))) return State::kPending;
    if (controls_.pending.load() > 0) {
      controls_.pending.fetch_sub(1);
      return State::kPending;
    }
    if (!at(job).with_device && !hand_over(job)) return State::kFailed;
    const State state = lane_.poll(job);
    at(job).done = state == State::kDone;
    return state;
  }

 private:
  struct Job {
    int number = -1;
    bool done = false;
    bool with_device = false;
    int plan = 0, slots = 0;
    uint64_t parameters = 0;
    int64_t since = 0;
  };
  bool held(const Job& job) const {
    return controls_.hold || (job.number == controls_.lose && !controls_.found) || late(job) || hangs(job);
  }
  bool late(const Job& job) const {
    return faults_.late_every > 0 && (static_cast<uint64_t>(job.number) + 1) % faults_.late_every == 0 &&
           now_ns() - job.since < int64_t{faults_.late_ms} * 1'000'000;
  }
  bool hangs(const Job& job) const {
    if (faults_.hang_at == 0 || static_cast<uint64_t>(job.number) + 1 < faults_.hang_at) return false;
    int64_t never = 0;
    controls_.hung_since.compare_exchange_strong(never, now_ns());
    return faults_.hang_ms == 0 || now_ns() - controls_.hung_since < int64_t{faults_.hang_ms} * 1'000'000;
  }
  bool hand_over(int job) {
    Job& j = at(job);
    j.with_device = true;
    return lane_.submit(job, j.plan, j.slots, j.parameters);
  }
  Job& at(int job) { return jobs_.at(static_cast<size_t>(job)); }
  bool failed(int number) const {
    const int from = controls_.fail_from.load();
    return (from >= 0 && number >= from) ||
           (faults_.fail_at > 0 && static_cast<uint64_t>(number) + 1 >= faults_.fail_at);
  }

  offload::Lane& lane_;
  DeviceControls& controls_;
  const ReferenceOptions faults_;
  const offload::Run run_;
  std::vector<Job> jobs_;
};

/// Copies bytes from a device; empty: it cannot be read.
using ReadDevice = std::function<std::string(uint64_t from, size_t bytes)>;

class ControlledMemory final : public offload::DeviceMemory {
 public:
  ControlledMemory(offload::DeviceMemory& memory, DeviceControls& controls, ReadDevice read)
      : memory_(memory), controls_(controls), read_(std::move(read)) {
    controls_.memory = [this] {
      const std::lock_guard hold(lock_);
      std::string all;
      for (const auto& [address, bytes] : allocated_) all += read_(address, bytes);
      return all;
    };
  }
  ~ControlledMemory() override { controls_.memory = {}; }
  ControlledMemory(const ControlledMemory&) = delete;
  ControlledMemory& operator=(const ControlledMemory&) = delete;

  uint64_t allocate(size_t bytes) override {
    if (controls_.refuse) return 0;
    ++controls_.allocations;
    const uint64_t address = memory_.allocate(bytes);
    const std::lock_guard hold(lock_);
    if (address != 0) allocated_[address] = bytes;
    return address;
  }
  void release(uint64_t address) override {
    {
      const std::lock_guard hold(lock_);
      if (controls_.keep_freed) controls_.freed += read_(address, allocated_[address]);
      allocated_.erase(address);
    }
    memory_.release(address);
  }
  Status send(uint64_t to, const void* from, size_t bytes) override {
    if (controls_.refuse) return Status::failed();
    controls_.sent_bytes += bytes;
    return memory_.send(to, from, bytes);
  }
  Status finish() override { return memory_.finish(); }
  size_t free_bytes() const override { return memory_.free_bytes(); }
  size_t total_bytes() const override { return memory_.total_bytes(); }

 private:
  offload::DeviceMemory& memory_;
  DeviceControls& controls_;
  const ReadDevice read_;
  std::mutex lock_;
  std::map<uint64_t, size_t> allocated_;
};

/// Reads while kernels stay.
std::string read_cuda(int ordinal, uint64_t from, size_t bytes) {
  Errors errors;
  const std::shared_ptr<cuda::Device> device = cuda::Device::open(ordinal, errors);
  cuda::Stream stream;
  std::string to(bytes, '\0');
  if (!device || (device->use(), !stream.create(device)) ||
      !device->check(device->driver().cuMemcpyDtoHAsync(to.data(), from, bytes, stream.get()), "reading tables") ||
      !stream.synchronize())
    return {};
  return to;
}
std::string read_here(uint64_t from, size_t bytes) { return {reinterpret_cast<const char*>(from), bytes}; }

class ControlledBackend final : public offload::Backend {
 public:
  /// \param reference `inner`, if generated programs are to be run by it
  /// \param faults those that `inner` does not play itself
  ControlledBackend(std::unique_ptr<offload::Backend> inner, offload::ReferenceBackend* reference,
                    std::shared_ptr<DeviceControls> controls, const ReferenceOptions& faults, ReadDevice read)
      : inner_(std::move(inner)),
        reference_(reference),
        controls_(std::move(controls)),
        faults_(faults),
        memory_(inner_->memory(), *controls_, std::move(read)) {}

  offload::DeviceMemory& memory() override { return memory_; }
  Status open(const offload::Program& program, const offload::LaneOptions& options, Errors& errors) override {
    if (reference_) {
      std::string messages;
      const auto runner = compile_program(program.source, messages);
      if (!runner) return errors.error("the program does not compile:\n{}\n{}", messages, program.source);
      reference_->set_runner(runner);
    }
    lanes_.resize(static_cast<size_t>(options.workers));
    return inner_->open(program, options, errors);
  }
  Status open_lanes(const std::vector<LaneFor>& lanes, Errors& errors) override {
    if (controls_->no_lanes) return errors.error("no memory for lanes");
    const Status status = inner_->open_lanes(lanes, errors);
    for (const LaneFor& lane : lanes)
      for (const offload::Run run : {offload::Run::kResident, offload::Run::kStream})
        if (offload::Lane* const inner = inner_->lane(lane.worker, run))
          made(lane.worker, run) = std::make_unique<ControlledLane>(*inner, *controls_, faults_, run);
    controls_->lanes += static_cast<int>(lanes.size());
    return status;
  }
  bool offers(offload::Run run) const override { return inner_->offers(run); }
  int resident_idle_us() const override { return inner_->resident_idle_us(); }
  offload::Lane* lane(int worker, offload::Run run) override { return made(worker, run).get(); }
  int numa_node() const override { return inner_->numa_node(); }
  bool stop() override { return inner_->stop(); }
  std::string describe() const override { return inner_->describe(); }

 private:
  std::unique_ptr<offload::Backend> inner_;
  offload::ReferenceBackend* reference_;
  std::shared_ptr<DeviceControls> controls_;
  const ReferenceOptions faults_;
  ControlledMemory memory_;
  std::unique_ptr<ControlledLane>& made(int worker, offload::Run run) {
    return lanes_[static_cast<size_t>(worker)][static_cast<size_t>(run)];
  }
  std::vector<std::array<std::unique_ptr<ControlledLane>, offload::kRuns>> lanes_;
};

const std::string& why_no_cuda() {
  static const std::string why = [] {
    OffloadOptions options;
    options.backend = "cuda";
    std::string why_not;
    return offload::find_devices(options, why_not).empty() ? why_not : std::string();
  }();
  return why;
}

/// ICMP errors are numbered as they are made, which is no flow's order.
std::string without_id(std::string bytes) {
  const bool framed = bytes.size() >= 34 && bytes[12] == 8 && bytes[13] == 0 && bytes[14] >> 4 == 4;
  const size_t at = framed ? 14 : 0;
  if (bytes.size() >= at + 20 && bytes[at] >> 4 == 4 && bytes[at + 9] == 1)
    for (const size_t i : {4, 5, 10, 11}) bytes[at + i] = 0;
  return bytes;
}

}  // namespace

// --- Devices

TestDevices::TestDevices(int count, Carrier carrier, size_t memory_limit) {
  for (int i = 0; i < count; ++i) controls_.push_back(std::make_shared<DeviceControls>());
  offload::replace_devices(
      [controls = controls_, carrier, memory_limit](const OffloadOptions& options, std::string& why_not) {
        std::vector<std::unique_ptr<offload::Backend>> found;
        for (size_t i = 0; i < controls.size(); ++i) {
          if (carrier == Carrier::kCuda) {
            // A machine with one device plays several with it.
            Errors errors;
            const int there = std::max(cuda::cuda_device_count(&why_not), 1);
            const int ordinal = static_cast<int>(i) % there;
            if (auto device = cuda::make_cuda_backend(ordinal, errors))
              found.push_back(std::make_unique<ControlledBackend>(
                  std::move(device), nullptr, controls[i], options.reference,
                  [ordinal](uint64_t from, size_t bytes) { return read_cuda(ordinal, from, bytes); }));
            continue;
          }
          OffloadOptions without_threads = options;
          if (!controls[i]->threads) without_threads.reference.threads = 0;
          auto device = std::make_unique<offload::ReferenceBackend>(without_threads, memory_limit);
          offload::ReferenceBackend* const runs_programs = carrier == Carrier::kProgram ? device.get() : nullptr;
          found.push_back(std::make_unique<ControlledBackend>(std::move(device), runs_programs, controls[i],
                                                              ReferenceOptions(), read_here));
        }
        return found;
      });
}

TestDevices::~TestDevices() { offload::replace_devices({}); }

// --- Tests on every carrier

void OffloadTest::SetUp() {
  if (GetParam() == Carrier::kCuda && !why_no_cuda().empty()) GTEST_SKIP() << why_no_cuda();
  if ((GetParam() == Carrier::kProgram || GetParam() == Carrier::kCompiled) && !why_no_compiler().empty())
    GTEST_SKIP() << why_no_compiler();
  in_use_before_ = PacketPool::instance().in_use();
  if (has_controls()) devices(1);
}

void OffloadTest::TearDown() {
  devices_.reset();
  if (!IsSkipped()) {
    EXPECT_EQ(PacketPool::instance().in_use(), in_use_before_) << "packets were lost or freed twice";
  }
}

TestDevices& OffloadTest::devices(int count) {
  devices_.reset();
  devices_ = std::make_unique<TestDevices>(count, GetParam());
  return *devices_;
}

OffloadOptions OffloadTest::options(OffloadOptions::Mode mode) const {
  OffloadOptions o;
  o.mode = on_cpu() ? OffloadOptions::Mode::kCpu : mode;
  o.backend = GetParam() == Carrier::kCuda ? "cuda" : "reference";
  o.devices = 1;
  // A test machine may be slow: only those who ask for it see deadlines.
  o.deadline_ms = 20000;
  return o;
}

CompileOptions OffloadTest::compile(CompileOptions::Mode mode) const {
  if (GetParam() != Carrier::kCompiled) return {};
  return {.mode = mode, .file = {}, .shortest = 1, .smallest_batch = 1};
}

std::unique_ptr<TestRouter> OffloadTest::make(const std::string& text, const OffloadOptions& options,
                                              int threads) const {
  auto r = std::make_unique<TestRouter>(
      text, RouterOptions{.offload = options, .compile = compile(CompileOptions::Mode::kWait)}, threads);
  EXPECT_TRUE(r->ok()) << r->errors();
  if (r->ok()) {
    EXPECT_EQ(r->router().engine() != nullptr, !on_cpu()) << r->errors();
  }
  return r;
}

void inject(TestRouter& r, const std::string& element, const std::vector<Packet*>& packets) {
  Element* e = r.router().find(element);
  ASSERT_NE(e, nullptr) << element;
  for (const Router::Connection& c : r.router().connections()) {
    if (c.to != e || c.to_port != 0) continue;
    for (size_t i = 0; i < packets.size();) {
      Batch batch;
      while (i < packets.size() && !batch.full()) batch.push_back(packets[i++]);
      c.from->output(c.from_port).push(batch);
    }
    return;
  }
  FAIL() << "nothing stands before " << element;
}

bool poll(TestRouter& r) { return r.router().engine() && r.router().engine()->queue(0).poll(); }

uint64_t event(TestRouter& r, offload::Event e) { return r.router().engine() ? r.router().engine()->event(e) : 0; }

// --- Outcomes

Outcome outcome_of(TestRouter& r) {
  Outcome all;
  for (const auto& e : r.router().elements()) {
    if (const auto* capture = dynamic_cast<const Capture*>(e.get())) {
      for (size_t i = 0; i < capture->seen().size(); ++i) {
        const Packet& p = *capture->seen()[i].packet;
        Arrival a;
        a.where = fmt::format("{}[{}]", e->name(), capture->seen()[i].port);
        a.flow = p.anno_u32(kFlowAnno);
        const std::string annotations(reinterpret_cast<const char*>(p.anno()), Packet::kAnnoSize);
        const auto position = [](bool has, int offset) { return has ? std::to_string(offset) : std::string("-"); };
        a.what = fmt::format("{} annotations {} type {} headers {} {} {}",
                             to_hex(a.flow ? capture->bytes(i) : without_id(capture->bytes(i))), to_hex(annotations),
                             static_cast<int>(p.packet_type()), position(p.has_mac_header(), p.mac_header_offset()),
                             position(p.has_network_header(), p.network_header_offset()),
                             position(p.has_transport_header(), p.transport_header_offset()));
        all.arrivals.push_back(std::move(a));
      }
    }
    if (const auto* shader = dynamic_cast<const ShaderElementBase*>(e.get()))
      for (int i = 0; i < shader->counter_count(); ++i)
        all.counts.push_back(fmt::format("{} counter {}: {}", e->declaration(), i, shader->counter(i)));
  }
  for (const Router::Drop& d : r.router().drops())
    all.counts.push_back(fmt::format("{} dropped {}: {}", d.element, d.packets, d.reason));
  // Only flows have an order; what belongs to none is compared as a set.
  std::stable_sort(all.arrivals.begin(), all.arrivals.end(), [](const Arrival& a, const Arrival& b) {
    if (a.where != b.where) return a.where < b.where;
    if (a.flow != b.flow) return a.flow < b.flow;
    return a.flow == 0 && a.what < b.what;
  });
  return all;
}

void expect_same(const Outcome& is, const Outcome& should) {
  EXPECT_EQ(is.counts, should.counts);
  for (size_t i = 0; i < std::min(is.arrivals.size(), should.arrivals.size()); ++i) {
    const Arrival &a = is.arrivals[i], &b = should.arrivals[i];
    ASSERT_EQ(a.where, b.where) << "arrival " << i << ", flow " << a.flow << " and " << b.flow << "\n" << a.what;
    ASSERT_EQ(a.flow, b.flow) << "arrival " << i << " at " << a.where;
    ASSERT_EQ(a.what, b.what) << "arrival " << i << " at " << a.where << ", flow " << a.flow;
  }
  EXPECT_EQ(is.arrivals.size(), should.arrivals.size());
}

// --- Real time

LiveRouter::LiveRouter(const std::string& text, const OffloadOptions& options, int threads,
                       const CompileOptions& compile)
    : options_{.offload = options, .compile = compile},
      runtime_(Runtime::Options{.threads = threads, .cpus = {}, .control_thread = true}) {
  lang::Configuration configuration;
  if (!lang::parse(text, "config", {}, configuration, errors_)) return;
  router_ = Router::create(configuration, runtime_, errors_, options_);
}

void LiveRouter::run(const std::function<bool()>& control) { runtime_.run(router_, control, 1); }

bool LiveRouter::swap(const std::string& text) {
  // A handler may have told of a device that hangs before.
  const int before = errors_.error_count();
  lang::Configuration configuration;
  if (!lang::parse(text, "config", {}, configuration, errors_)) return false;
  std::unique_ptr<Router> next = Router::create(configuration, runtime_, errors_, options_, router_.get());
  if (next) (void)runtime_.replace(std::move(next));
  return next == nullptr && errors_.error_count() == before;
}

bool LiveRouter::write(const std::string& handler, const std::string& value) {
  Element* element = nullptr;
  const Handler* h = router_->find_handler(handler, nullptr, element, errors_);
  return h && router_->call_write(*h, value, errors_).ok();
}

std::string LiveRouter::read(const std::string& handler) {
  Element* element = nullptr;
  std::string value;
  const Handler* h = router_->find_handler(handler, nullptr, element, errors_);
  if (h) (void)router_->call_read(*h, "", value, errors_);
  return value;
}

}  // namespace headrace::testing
