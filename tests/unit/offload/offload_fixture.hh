#pragma once
/// \file
/// What the offload tests share: the carriers that every test of the list runs on, devices whose jobs a test holds back
/// and fails, and comparisons with what the CPU does.

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "headrace/offload_options.hh"
#include "headrace/packet_pool.hh"
#include "headrace/router.hh"
#include "offload/backend.hh"
#include "offload/engine.hh"
#include "runtime/runtime.hh"
#include "support/carrier.hh"
#include "support/test_router.hh"

namespace headrace::testing {

/// How a test's devices behave. Shared between the test and all lanes of a device.
struct DeviceControls {
  bool threads = false;                 ///< the device has its own; else it works when it is polled, at no given time
  std::atomic<bool> hold{false};        ///< no job is done
  std::atomic<int> pending{0};          ///< so many polls find their job pending
  std::atomic<bool> refuse{false};      ///< the device takes no tables
  std::atomic<bool> no_lanes{false};    ///< there is no memory for lanes
  std::atomic<int> lanes{0};            ///< that were opened
  std::atomic<int> fail_from{-1};       ///< this job and later ones: the device has failed
  std::atomic<int> lose{-1};            ///< this job is not done before `found` is set
  std::atomic<bool> found{false};       ///< the lost job is done, late
  std::atomic<int64_t> hung_since{0};   ///< when the first job hung, ReferenceOptions::hang_at
  std::atomic<int> submitted{0};        ///< jobs handed over
  std::atomic<int> streamed{0};         ///< of these, by lanes of the kind kStream
  std::atomic<int> slots{0};            ///< packets in them
  std::atomic<int> reused{0};           ///< jobs handed over at a place whose job was not done
  std::atomic<int> unhealthy_reads{0};  ///< results that were asked for though they are not there
  std::atomic<int> last_size{0};        ///< slots of the job handed over last
  std::atomic<int> allocations{0};      ///< of memory for tables
  std::atomic<size_t> sent_bytes{0};    ///< of tables
  std::function<std::string()> memory;  ///< reads all that the device has of tables
  std::atomic<bool> keep_freed{false};  ///< `freed` gets what the memory of tables held when it was freed
  std::string freed;                    ///< read it while no worker runs
};

/// Puts devices that obey DeviceControls in the place of the machine's, as long as it lives.
class TestDevices {
 public:
  /// \param carrier what runs their jobs: the reference, the generated program, or CUDA
  explicit TestDevices(int count = 1, Carrier carrier = Carrier::kReference, size_t memory_limit = 0);
  ~TestDevices();
  TestDevices(const TestDevices&) = delete;
  TestDevices& operator=(const TestDevices&) = delete;

  int count() const { return static_cast<int>(controls_.size()); }
  DeviceControls& operator[](int device) { return *controls_[static_cast<size_t>(device)]; }

 private:
  std::vector<std::shared_ptr<DeviceControls>> controls_;
};

/// One packet of an outcome.
struct Arrival {
  std::string where;  // element and port
  uint32_t flow = 0;
  std::string what;  // bytes, annotations, header positions
};

/// All that came of packets: comparable.
struct Outcome {
  std::vector<Arrival> arrivals;    // by element, then by flow; those of a flow in their order
  std::vector<std::string> counts;  // counters and drops of every element
};
/// Fails the test at the first difference.
void expect_same(const Outcome& is, const Outcome& should);

/// Annotations by which arrivals are compared: the flow, and the packet's number in it. Elements leave them alone.
inline constexpr int kFlowAnno = 24, kNumberAnno = 28;

/// A test that runs on every carrier.
class OffloadTest : public ::testing::TestWithParam<Carrier> {
 protected:
  void SetUp() override;
  void TearDown() override;

  bool on_cpu() const { return GetParam() == Carrier::kCpu || GetParam() == Carrier::kCompiled; }
  /// True if faults can be played.
  bool has_controls() const { return !on_cpu(); }
  /// True if the CPU plays the device, and looks whether shaders keep the rules.
  bool emulated() const { return GetParam() == Carrier::kReference || GetParam() == Carrier::kProgram; }
  OffloadOptions options(OffloadOptions::Mode mode = OffloadOptions::Mode::kDevice) const;
  /// \param mode that of the carrier that compiles chains
  CompileOptions compile(CompileOptions::Mode mode) const;
  std::unique_ptr<TestRouter> make(const std::string& text) const { return make(text, options()); }
  std::unique_ptr<TestRouter> make(const std::string& text, const OffloadOptions& options, int threads = 1) const;
  /// Makes as many devices as a test wants; call before make().
  TestDevices& devices(int count);

  uint32_t in_use_before_ = 0;
  std::unique_ptr<TestDevices> devices_;
};

#define HEADRACE_OFFLOAD_CARRIERS(Suite)                                                                   \
  INSTANTIATE_TEST_SUITE_P(Cpu, Suite, ::testing::Values(::headrace::testing::Carrier::kCpu));             \
  INSTANTIATE_TEST_SUITE_P(Compiled, Suite, ::testing::Values(::headrace::testing::Carrier::kCompiled));   \
  INSTANTIATE_TEST_SUITE_P(Reference, Suite, ::testing::Values(::headrace::testing::Carrier::kReference)); \
  INSTANTIATE_TEST_SUITE_P(Program, Suite, ::testing::Values(::headrace::testing::Carrier::kProgram));     \
  INSTANTIATE_TEST_SUITE_P(Cuda, Suite, ::testing::Values(::headrace::testing::Carrier::kCuda))

/// Pushes packets to input 0 of `element` as its predecessor would, all in one batch; they may be under way on return.
void inject(TestRouter& r, const std::string& element, const std::vector<Packet*>& packets);
/// One round of the first worker's job queue. True if it did something.
bool poll(TestRouter& r);
uint64_t event(TestRouter& r, offload::Event e);
/// What all Captures hold and all elements counted.
Outcome outcome_of(TestRouter& r);

/// A router that runs in real time on threads of its own; the test is its control thread.
class LiveRouter {
 public:
  LiveRouter(const std::string& text, const OffloadOptions& options, int threads, const CompileOptions& compile = {});

  bool ok() const { return router_ != nullptr; }
  std::string errors() const { return errors_.str(); }
  Router& router() { return *router_; }
  offload::Engine* engine() { return router_->engine(); }
  /// Runs until something stops the router, or `control`, which is called every millisecond, returns false.
  void run(const std::function<bool()>& control);
  /// From `control`: a router made of `text` takes over. False, with errors(), when it cannot be made.
  bool swap(const std::string& text);
  bool write(const std::string& handler, const std::string& value);
  std::string read(const std::string& handler);

 private:
  const RouterOptions options_;
  Errors errors_;
  Runtime runtime_;
  std::unique_ptr<Router> router_;
};

}  // namespace headrace::testing
