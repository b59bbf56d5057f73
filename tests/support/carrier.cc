#include "support/carrier.hh"

#include <dlfcn.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>
#include <ostream>
#include <set>

#include "backend/cuda/cuda_backend.hh"
#include "headrace/device/embedded.hh"
#include "headrace/router.hh"
#include "headrace/shader.hh"
#include "offload/cpu_chains.hh"
#include "offload/plan.hh"

namespace headrace::testing {

namespace {

/// All embedded headers as files, for as long as the process runs.
class Workshop {
 public:
  static Workshop& get() {
    static Workshop workshop;
    return workshop;
  }
  ~Workshop() {
    std::error_code error;
    std::filesystem::remove_all(folder_, error);
  }

  const std::string& why_not() const { return why_not_; }
  /// Runs the compiler on `source`; its messages, empty when all is well.
  std::string compile(const std::string& source, const std::string& options, std::string& output) {
    const std::string base = (folder_ / fmt::format("source{}", ++number_)).string();
    output = base + ".so";
    std::ofstream(base + ".cc") << source;
    std::string messages;
    const int status =
        run(fmt::format("g++ -std=c++20 -I{} {} {}.cc -o {} 2>&1", folder_.string(), options, base, output), messages);
    if (status != 0 && messages.empty()) messages = "the compiler failed";
    return messages;
  }
  offload::ReferenceBackend::Runner runner(const std::string& source, std::string& messages) {
    const auto known = runners_.find(source);
    if (known != runners_.end()) return known->second;
    std::string library;
    messages = compile(source + R"(
extern "C" void headrace_test_slot(int plan, headrace::Slot* slot, const unsigned char* parameters) {
  headrace_run_plan<headrace::kHeaderPlans>(plan, *slot, parameters);
  headrace_run_plan<headrace::kPayloadPlans>(plan, *slot, parameters);
}
)",
                       "-O1 -Wall -fPIC -shared " + std::string(kAsProgram), library);
    if (!messages.empty()) return nullptr;
    void* handle = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
    void* symbol = handle ? dlsym(handle, "headrace_test_slot") : nullptr;
    if (!symbol) messages = dlerror();
    const auto function = reinterpret_cast<offload::ReferenceBackend::Runner>(symbol);
    if (function) runners_.emplace(source, function);
    return function;
  }
  /// What a device's compiler defines, but for its own functions.
  static constexpr const char* kAsProgram = "-D__CUDACC_RTC__ -D__host__= -D__device__= -D__noinline__=inline";

 private:
  Workshop() {
    std::string text = (std::filesystem::temp_directory_path() / "headrace-offload-XXXXXX").string();
    if (!mkdtemp(text.data())) {
      why_not_ = "no temporary folder";
      return;
    }
    folder_ = text;
    if (run("g++ --version 2>&1", text) != 0) why_not_ = "no g++ here";
    if (find_embedded_header("headrace/shader.hh").text.empty()) why_not_ = "no embedded headers";
    for (const EmbeddedText& header : embedded_headers()) {
      const std::filesystem::path path = folder_ / header.path;
      std::filesystem::create_directories(path.parent_path());
      std::ofstream(path) << header.text;
    }
  }
  static int run(const std::string& command, std::string& output) {
    FILE* pipe = popen(command.c_str(), "r");
    if (!pipe) return -1;
    output.clear();
    std::array<char, 4096> piece;
    while (const size_t n = fread(piece.data(), 1, piece.size(), pipe)) output.append(piece.data(), n);
    return pclose(pipe);
  }

  std::filesystem::path folder_;
  std::string why_not_;
  int number_ = 0;
  std::map<std::string, offload::ReferenceBackend::Runner> runners_;
};

/// The classes of shaders in tests' routers, those that could be carried, and those that were: by the name of their header.
struct Carried {
  std::mutex lock;
  std::set<std::string> seen, expected;
  std::map<std::string, uint64_t> packets;

  static Carried& get() {
    static Carried carried;
    return carried;
  }
  void add(const ShaderElementBase& element) {
    const std::lock_guard guard(lock);
    ++packets[element.info().documented_as];
  }
};

/// Sees what becomes of each row.
class CarrierLane final : public offload::Lane {
 public:
  CarrierLane(offload::Lane& lane, const std::vector<offload::Plan>& plans, size_t jobs)
      : lane_(lane), plans_(plans), jobs_(jobs) {}

  uint8_t* rows_in(int job) override { return lane_.rows_in(job); }
  const uint8_t* rows_out(int job) override { return lane_.rows_out(job); }
  const uint8_t* whole_rows(int job) override { return lane_.whole_rows(job); }
  void counts(int job, uint64_t* counts, int n) override { lane_.counts(job, counts, n); }
  bool submit(int job, int plan, int slots, uint64_t parameters) override {
    Job& j = jobs_.at(static_cast<size_t>(job));
    j.plan = &plans_.at(static_cast<size_t>(plan));
    j.entered.clear();
    for (int i = 0; i < slots; ++i) j.entered.push_back(at(lane_.rows_in(job), j.plan->row().there, i));
    return lane_.submit(job, plan, slots, parameters);
  }
  State poll(int job) override {
    const State state = lane_.poll(job);
    if (state == State::kDone) record(jobs_.at(static_cast<size_t>(job)), lane_.rows_out(job));
    return state;
  }

 private:
  struct Job {
    const offload::Plan* plan = nullptr;
    std::vector<uint16_t> entered;  // the first step of each row
  };
  static uint16_t at(const uint8_t* rows, int size, int row) {
    RowHeader header;
    std::memcpy(&header, rows + static_cast<size_t>(row) * static_cast<size_t>(size), sizeof header);
    return header.at;
  }
  /// A row that left by an exit of a shader, other than for the host to do that shader's work, was carried by it and by
  /// the shader where it entered. Of those between, nothing is known.
  static void record(Job& job, const uint8_t* rows) {
    const offload::Plan& plan = *job.plan;
    for (size_t i = 0; i < job.entered.size(); ++i) {
      const uint16_t first = job.entered[i];
      const size_t code = size_t{at(rows + plan.row().header, plan.row().back, static_cast<int>(i))} - kExit;
      if (first >= plan.steps().size() || code >= plan.exits().size()) continue;
      const offload::Exit& exit = plan.exits()[code];
      const bool resumed = exit.kind == offload::Exit::Kind::kResume;
      if (!resumed) Carried::get().add(*plan.steps()[exit.step].element);
      if (exit.step != first) Carried::get().add(*plan.steps()[first].element);
    }
    job.entered.clear();
  }

  offload::Lane& lane_;
  const std::vector<offload::Plan>& plans_;
  std::vector<Job> jobs_;
};

/// A device that records which classes it carried.
class CarrierBackend final : public offload::Backend {
 public:
  /// \param reference `inner`, if generated programs are to be run by it
  CarrierBackend(std::unique_ptr<offload::Backend> inner, offload::ReferenceBackend* reference)
      : inner_(std::move(inner)), reference_(reference) {}

  offload::DeviceMemory& memory() override { return inner_->memory(); }
  Status open(const offload::Program& program, const offload::LaneOptions& options, Errors& errors) override {
    if (reference_) {
      std::string messages;
      const auto runner = compile_program(program.source, messages);
      if (!runner) return errors.error("the program does not compile:\n{}\n{}", messages, program.source);
      reference_->set_runner(runner);
    }
    lanes_.resize(static_cast<size_t>(options.workers));
    plans_ = program.objects;
    jobs_ = static_cast<size_t>(options.jobs);
    return inner_->open(program, options, errors);
  }
  Status open_lanes(const std::vector<LaneFor>& lanes, Errors& errors) override {
    const Status status = inner_->open_lanes(lanes, errors);
    for (const LaneFor& lane : lanes)
      for (const offload::Run run : {offload::Run::kResident, offload::Run::kStream})
        if (offload::Lane* const inner = status.ok() ? inner_->lane(lane.worker, run) : nullptr)
          made(lane.worker, run) = std::make_unique<CarrierLane>(*inner, *plans_, jobs_);
    return status;
  }
  bool offers(offload::Run run) const override { return inner_->offers(run); }
  int resident_idle_us() const override { return inner_->resident_idle_us(); }
  offload::Lane* lane(int worker, offload::Run run) override { return made(worker, run).get(); }
  int numa_node() const override { return inner_->numa_node(); }
  bool stop() override { return inner_->stop(); }
  int deadline_ms() const override { return inner_->deadline_ms(); }
  std::string describe() const override { return inner_->describe(); }

 private:
  std::unique_ptr<offload::Backend> inner_;
  offload::ReferenceBackend* reference_;
  const std::vector<offload::Plan>* plans_ = nullptr;
  size_t jobs_ = 0;
  std::unique_ptr<CarrierLane>& made(int worker, offload::Run run) {
    return lanes_[static_cast<size_t>(worker)][static_cast<size_t>(run)];
  }
  std::vector<std::array<std::unique_ptr<CarrierLane>, offload::kRuns>> lanes_;
};

/// True for classes of the product whose elements packets are pushed to by one input.
bool may_join_chain(const ElementInfo& info) {
  return info.shader && info.ports[0] == '1' && info.processing[0] != 'l' &&
         find_embedded_element(info.documented_as).path.starts_with("elements/");
}

/// At the end of a run of all tests of elements.
class EveryShaderWasCarried : public ::testing::Environment {
 public:
  void TearDown() override {
    Carried& carried = Carried::get();
    const std::lock_guard guard(carried.lock);
    // Whether one can be part of a chain, only an element that has been configured can tell.
    for (const ElementInfo* info : all_element_infos())
      if (may_join_chain(*info) && !carried.seen.contains(info->documented_as))
        carried.expected.insert(info->documented_as);
    std::string missing;
    for (const std::string& name : carried.expected)
      if (!carried.packets.contains(name)) missing += " " + name;
    if (!missing.empty())
      ADD_FAILURE()
          << "no test's packet went through these shaders on a device:" << missing
          << "\n(In a test, something must be connected to the shader's input: a chain begins at a connection.)";
    fmt::print("{} classes of shaders carried\n", carried.packets.size());
  }
};

/// The names of all tests in the folders of elements, as a filter.
std::string tests_of_elements() {
  std::string filter;
  const ::testing::UnitTest& all = *::testing::UnitTest::GetInstance();
  for (int s = 0; s < all.total_test_suite_count(); ++s) {
    const ::testing::TestSuite& suite = *all.GetTestSuite(s);
    for (int t = 0; t < suite.total_test_count(); ++t) {
      const ::testing::TestInfo& test = *suite.GetTestInfo(t);
      if (std::string_view(test.file()).find("elements/") == std::string_view::npos) continue;
      filter += fmt::format("{}{}.{}", filter.empty() ? "" : ":", suite.name(), test.name());
    }
  }
  return filter;
}

}  // namespace

std::string carrier_name(Carrier carrier) {
  switch (carrier) {
    case Carrier::kCpu:
      return "cpu";
    case Carrier::kCompiled:
      return "compiled";
    case Carrier::kReference:
      return "reference";
    case Carrier::kProgram:
      return "program";
    case Carrier::kCuda:
      return "cuda";
  }
  return {};
}

void PrintTo(Carrier carrier, std::ostream* out) { *out << carrier_name(carrier); }

const std::string& why_no_compiler() { return Workshop::get().why_not(); }

std::string compile_text(const std::string& source, bool as_program) {
  std::string output;
  return Workshop::get().compile(
      source, as_program ? fmt::format("-fsyntax-only {}", Workshop::kAsProgram) : std::string("-fsyntax-only"),
      output);
}

Carrier test_carrier() {
  static const Carrier carrier = [] {
    const char* name = std::getenv("HEADRACE_TEST_CARRIER");
    if (!name || !*name) return Carrier::kCpu;
    for (const Carrier c : {Carrier::kCpu, Carrier::kCompiled, Carrier::kReference, Carrier::kProgram, Carrier::kCuda})
      if (carrier_name(c) == name) return c;
    fmt::print(stderr, "HEADRACE_TEST_CARRIER={}: expected cpu, compiled, reference, program or cuda\n", name);
    std::exit(2);
  }();
  return carrier;
}

int run_tests(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  if (test_carrier() != Carrier::kCpu) {
    std::string& filter = ::testing::GTEST_FLAG(filter);
    if (filter == "*") ::testing::AddGlobalTestEnvironment(new EveryShaderWasCarried);
    // "*-LEFT.OUT:..." says what not to run.
    if (filter.starts_with("*") && (filter.size() == 1 || filter[1] == '-'))
      filter = tests_of_elements() + filter.substr(1);
  }
  return RUN_ALL_TESTS();
}

CarrierDevices::CarrierDevices(Carrier carrier) {
  offload::replace_devices([carrier](const OffloadOptions& options, std::string& why_not) {
    std::vector<std::unique_ptr<offload::Backend>> found;
    if (carrier == Carrier::kCuda) {
      Errors errors;
      auto device = cuda::make_cuda_backend(0, errors);
      why_not = errors.str();
      if (device) found.push_back(std::make_unique<CarrierBackend>(std::move(device), nullptr));
    } else {
      // Tests' clocks do not go on while a device works beside them.
      OffloadOptions without_threads = options;
      without_threads.reference.threads = 0;
      auto device = std::make_unique<offload::ReferenceBackend>(without_threads);
      offload::ReferenceBackend* runs_programs = carrier == Carrier::kProgram ? device.get() : nullptr;
      found.push_back(std::make_unique<CarrierBackend>(std::move(device), runs_programs));
    }
    return found;
  });
}

CarrierDevices::~CarrierDevices() { offload::replace_devices({}); }

void expect_compiled(const Router& router) {
  const offload::CpuChains* const chains = router.cpu_chains();
  if (!chains) return;
  EXPECT_TRUE(chains->ready()) << chains->describe();
  for (const offload::Plan& plan : chains->plans())
    for (const offload::Step& step : plan.steps()) expect_carried(*step.element);
}

void note_compiled(const Router& router) {
  const offload::CpuChains* const chains = router.cpu_chains();
  if (!chains) return;
  for (size_t p = 0; p < chains->plans().size(); ++p)
    if (chains->runs(static_cast<int>(p)) > 0)
      for (const offload::Step& step : chains->plans()[p].steps()) Carried::get().add(*step.element);
}

void expect_carried(const Element& element) {
  if (!may_join_chain(element.info())) return;
  Carried& carried = Carried::get();
  const std::lock_guard guard(carried.lock);
  carried.seen.insert(element.info().documented_as);
  if (!offload::obstacle_to_offload(element)) carried.expected.insert(element.info().documented_as);
}

offload::ReferenceBackend::Runner compile_program(const std::string& source, std::string& messages) {
  return Workshop::get().runner(source, messages);
}

}  // namespace headrace::testing
