#include "backend/cuda/cuda_backend.hh"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <random>
#include <thread>
#include <vector>

#include "backend/cuda/compile.hh"
#include "backend/cuda/driver.hh"

namespace headrace::cuda {
namespace {

using offload::Backend;
using offload::Lane;
using offload::LaneOptions;
using offload::Program;
using offload::Run;

/// Each plan adds a parameter to the length in the header, changes every other byte of the row by another one, and counts
/// rows and lengths. Plan 0 has rows of 96 bytes, of which 80 go and the first 64 come back, or all if the length is odd.
/// Plan 1 has rows of 48 bytes that go and come back, counts odd lengths besides, and counts as one that reads payloads.
constexpr const char* kSource = R"(#include "headrace/device/jobs.hh"
#include "headrace/device/lane_view.hh"
template <headrace::PlanClass kClass>
inline __device__ void headrace_run_plan(int plan, headrace::Slot& slot, const unsigned char* parameters) {
  // A thread without a row.
  if (slot.header.at == headrace::kExit) return;
  const int stride = plan == 0 ? 96 : 48, header = plan == 0 ? 16 : 0;
  const uint32_t length = slot.header.length;
  headrace::detail::add_shared(slot.counts, 1);
  headrace::detail::add_shared(slot.counts + 1, length);
  if (plan == 1 && length % 2 != 0) headrace::detail::add_shared(slot.counts + 2, 1);
  slot.header.length = length + parameters[0];
  slot.header.at = headrace::kExit + (slot.window_at == slot.header.data);
  slot.whole = plan == 0 && length % 2 != 0;
  for (int i = 0; i < stride; ++i)
    if (i < header || i >= header + 16) slot.row[i] = static_cast<uint8_t>(slot.row[i] ^ (parameters[1] + i));
}
template <headrace::PlanClass kClass>
inline __device__ constexpr unsigned headrace_block_bytes() { return 0; }
template <headrace::PlanClass kClass>
inline __device__ void headrace_prepare_block() {}
#include "headrace/device/kernels.hh"
)";
constexpr int kCounters[] = {2, 3};

RowLayout row_of(int plan) {
  RowLayout row;
  row.stride = plan == 0 ? 96 : 48;
  row.header = plan == 0 ? 16 : 0;
  row.there = plan == 0 ? 80 : 48;
  row.back = plan == 0 ? 64 : 48;
  row.address_size = plan == 1 ? 8 : 0;
  return row;
}

struct Parameters {
  uint8_t add = 0, flip = 0;
  uint8_t unused[30] = {};
};

std::string why_no_cuda() {
  std::string why_not;
  if (cuda_device_count(&why_not) == 0) return why_not;
  if (Nvrtc::get(&why_not) == nullptr) return why_not;
  return {};
}

/// A job as it went, to compare with how it comes back.
struct Expected {
  int plan = 0, slots = 0;
  std::vector<uint8_t> rows;  // whole
  std::vector<bool> whole;    // those that come back so
  std::vector<uint64_t> counts;

  void fill(std::mt19937& random, uint8_t* to, int plan_number, int n, const Parameters& parameters) {
    plan = plan_number;
    slots = n;
    const RowLayout layout = row_of(plan);
    const auto stride = static_cast<size_t>(layout.stride), there = static_cast<size_t>(layout.there),
               at = static_cast<size_t>(layout.header);
    rows.assign(static_cast<size_t>(n) * stride, 0);
    whole.assign(static_cast<size_t>(n), false);
    counts.assign(static_cast<size_t>(kCounters[plan]), 0);
    for (int i = 0; i < n; ++i) {
      uint8_t* const row = rows.data() + static_cast<size_t>(i) * stride;
      for (size_t k = 0; k < there; ++k) row[at + k] = static_cast<uint8_t>(random());
      RowHeader header{};
      std::memcpy(&header, row + at, sizeof header);
      header.length = random() % 9000;
      header.at = 0;
      header.flags = 0;
      std::memcpy(row + at, &header, sizeof header);
      std::memcpy(to + static_cast<size_t>(i) * there, row + at, there);
      counts[0] += 1;
      counts[1] += header.length;
      if (plan == 1) counts[2] += header.length % 2;
      whole[static_cast<size_t>(i)] = plan == 0 && header.length % 2 != 0;
      if (whole[static_cast<size_t>(i)]) header.flags = RowHeader::kWhole;
      header.length += parameters.add;
      header.at = kExit + 1;
      std::memcpy(row + at, &header, sizeof header);
      for (size_t k = 0; k < stride; ++k)
        if (k < at || k >= at + sizeof header) row[k] = static_cast<uint8_t>(row[k] ^ (parameters.flip + k));
    }
  }
  std::string difference(Lane& lane, int job) const {
    const RowLayout layout = row_of(plan);
    const auto stride = static_cast<size_t>(layout.stride), back = static_cast<size_t>(layout.back);
    for (size_t i = 0; i < static_cast<size_t>(slots); ++i) {
      const uint8_t* const should = rows.data() + i * stride;
      const auto compare = [&](const uint8_t* got, size_t bytes, const char* which) {
        const auto at = static_cast<size_t>(std::mismatch(should, should + bytes, got).first - should);
        return at == bytes ? std::string()
                           : fmt::format("plan {}, {} slots: {} {} byte {} is {}, not {}", plan, slots, which, i, at,
                                         got[at], should[at]);
      };
      std::string wrong = compare(lane.rows_out(job) + i * back, back, "row");
      if (wrong.empty() && whole[i]) wrong = compare(lane.whole_rows(job) + i * stride, stride, "whole row");
      if (!wrong.empty()) return wrong;
    }
    std::vector<uint64_t> counted(counts.size());
    lane.counts(job, counted.data(), static_cast<int>(counted.size()));
    for (size_t i = 0; i < counts.size(); ++i)
      if (counted[i] != counts[i])
        return fmt::format("plan {}, {} slots: counter {} is {}, not {}", plan, slots, i, counted[i], counts[i]);
    return {};
  }
};

Lane::State wait_for(Lane& lane, int job, std::chrono::milliseconds limit = std::chrono::seconds(5)) {
  const auto end = std::chrono::steady_clock::now() + limit;
  for (;;) {
    const Lane::State state = lane.poll(job);
    if (state != Lane::State::kPending || std::chrono::steady_clock::now() > end) return state;
  }
}

/// The lanes that a test uses, and whether the device has those of the other kind, too.
struct Lanes {
  Run run;
  bool both;
};

class CudaBackendTest : public ::testing::TestWithParam<Lanes> {
 protected:
  void SetUp() override {
    if (const std::string why_not = why_no_cuda(); !why_not.empty()) GTEST_SKIP() << why_not;
  }

  void open(int workers, int jobs, int job_size, int idle_us = 10000) {
    backend_ = make_cuda_backend(0, errors_, {.resident_idle_us = idle_us});
    ASSERT_NE(backend_, nullptr) << errors_.str();
    Program program;
    for (int i = 0; i < 2; ++i) {
      Program::Plan plan;
      plan.row = row_of(i);
      plan.counters = kCounters[i];
      program.plans.push_back(plan);
    }
    program.source = kSource;
    program.parameter_bytes = sizeof(Parameters);
    LaneOptions options;
    options.workers = workers;
    options.jobs = jobs;
    options.job_size = job_size;
    options.resident = GetParam().both || GetParam().run == Run::kResident;
    options.stream = GetParam().both || GetParam().run == Run::kStream;
    ASSERT_TRUE(backend_->open(program, options, errors_).ok()) << errors_.str();
    std::vector<Backend::LaneFor> lanes;
    for (int w = 0; w < workers; ++w) lanes.push_back({w, -1});
    // One by one: a lane that is opened must not disturb the others.
    for (const Backend::LaneFor& lane : lanes) ASSERT_TRUE(backend_->open_lanes({lane}, errors_).ok()) << errors_.str();
    block_ = backend_->memory().allocate(sizeof(Parameters));
    ASSERT_NE(block_, 0u);
    set_parameters(3, 0x5a);
  }
  void set_parameters(uint8_t add, uint8_t flip) {
    parameters_.add = add;
    parameters_.flip = flip;
    ASSERT_TRUE(backend_->memory().upload(block_, &parameters_, sizeof parameters_).ok());
  }

  Lane* lane_of(int worker) { return backend_->lane(worker, GetParam().run); }

  Errors errors_;
  std::unique_ptr<Backend> backend_;
  uint64_t block_ = 0;
  Parameters parameters_;
};

TEST_P(CudaBackendTest, RowsAndCountsComeBackWhateverTheSize) {
  open(2, 4, 1024);
  if (HasFatalFailure()) return;
  fmt::print("{}", backend_->describe());
  std::mt19937 random(1);
  for (const int slots : {1, 2, 31, 32, 33, 255, 256, 257, 511, 1000, 1024})
    for (int plan = 0; plan < 2; ++plan)
      for (int worker = 0; worker < 2; ++worker)
        for (int job = 0; job < 4; ++job) {
          Lane& lane = *lane_of(worker);
          Expected expected;
          expected.fill(random, lane.rows_in(job), plan, slots, parameters_);
          ASSERT_TRUE(lane.submit(job, plan, slots, block_));
          ASSERT_EQ(wait_for(lane, job), Lane::State::kDone) << slots << " slots of plan " << plan;
          ASSERT_EQ(expected.difference(lane, job), "");
        }
}

TEST_P(CudaBackendTest, ManyJobsOfManyWorkersUnderWay) {
  constexpr int kWorkers = 4, kJobs = 6, kRounds = 3000;
  open(kWorkers, kJobs, 700);
  if (HasFatalFailure()) return;
  std::vector<std::string> problems(kWorkers);
  std::vector<std::thread> threads;
  for (int worker = 0; worker < kWorkers; ++worker)
    threads.emplace_back([&, worker] {
      std::mt19937 random(static_cast<unsigned>(worker));
      Lane& lane = *lane_of(worker);
      std::vector<Expected> expected(kJobs);
      std::string& problem = problems[static_cast<size_t>(worker)];
      for (int round = 0; round < kRounds && problem.empty(); ++round) {
        const int job = round % kJobs;
        Expected& e = expected[static_cast<size_t>(job)];
        if (round >= kJobs) {
          if (wait_for(lane, job) != Lane::State::kDone) {
            problem = "a job is not done";
            break;
          }
          problem = e.difference(lane, job);
        }
        e.fill(random, lane.rows_in(job), static_cast<int>(random() % 2), static_cast<int>(random() % 700 + 1),
               parameters_);
        if (!lane.submit(job, e.plan, e.slots, block_)) problem = "the device has failed";
      }
      for (int job = 0; job < kJobs; ++job) wait_for(lane, job);
    });
  for (std::thread& t : threads) t.join();
  for (const std::string& problem : problems) EXPECT_EQ(problem, "");
}

TEST_P(CudaBackendTest, JobsSeeWhatWasUploadedBeforeThem) {
  open(1, 2, 300);
  if (HasFatalFailure()) return;
  std::mt19937 random(7);
  Lane& lane = *lane_of(0);
  for (int round = 0; round < 500; ++round) {
    set_parameters(static_cast<uint8_t>(round), static_cast<uint8_t>(3 * round));
    Expected expected;
    expected.fill(random, lane.rows_in(round % 2), round % 2, 300, parameters_);
    ASSERT_TRUE(lane.submit(round % 2, round % 2, 300, block_));
    ASSERT_EQ(wait_for(lane, round % 2), Lane::State::kDone);
    ASSERT_EQ(expected.difference(lane, round % 2), "") << "round " << round;
  }
}

TEST_P(CudaBackendTest, MemoryComesAndGoesWhileJobsRun) {
  open(1, 4, 256);
  if (HasFatalFailure()) return;
  std::atomic<bool> stop{false};
  std::string problem;
  std::thread worker([&] {
    std::mt19937 random(9);
    Lane& lane = *lane_of(0);
    while (!stop && problem.empty()) {
      Expected expected;
      expected.fill(random, lane.rows_in(1), 0, 256, parameters_);
      if (!lane.submit(1, 0, 256, block_) || wait_for(lane, 1) != Lane::State::kDone)
        problem = "a job is not done";
      else
        problem = expected.difference(lane, 1);
    }
  });
  std::vector<uint8_t> bytes(5 << 20, 0x77);
  for (int i = 0; i < 20; ++i) {
    const uint64_t table = backend_->memory().allocate(bytes.size());
    ASSERT_NE(table, 0u);
    EXPECT_TRUE(backend_->memory().upload(table, bytes.data(), bytes.size()).ok());
    backend_->memory().release(table);
  }
  stop = true;
  worker.join();
  EXPECT_EQ(problem, "");
  EXPECT_EQ(backend_->memory().allocate(size_t{1} << 45), 0u);
  EXPECT_GT(backend_->memory().total_bytes(), backend_->memory().free_bytes());
}

TEST_P(CudaBackendTest, WorksAgainAfterIdleness) {
  open(1, 2, 64, 1000);
  if (HasFatalFailure()) return;
  std::mt19937 random(11);
  Lane& lane = *lane_of(0);
  for (int round = 0; round < 20; ++round) {
    std::this_thread::sleep_for(std::chrono::milliseconds(round % 4));
    Expected expected;
    expected.fill(random, lane.rows_in(0), 1, 64, parameters_);
    ASSERT_TRUE(lane.submit(0, 1, 64, block_));
    ASSERT_EQ(wait_for(lane, 0), Lane::State::kDone) << "round " << round;
    ASSERT_EQ(expected.difference(lane, 0), "");
  }
  if (GetParam().run == Run::kResident) {
    EXPECT_EQ(backend_->describe().find("starts: 2\n"), std::string::npos);
  }
}

TEST_P(CudaBackendTest, LeavesWhenLanesAreEmpty) {
  open(2, 2, 256, 0);
  if (HasFatalFailure()) return;
  std::mt19937 random(13);
  for (int round = 0; round < 200; ++round) {
    Lane& lane = *lane_of(round % 2);
    Expected expected;
    expected.fill(random, lane.rows_in(1), 0, 200, parameters_);
    ASSERT_TRUE(lane.submit(1, 0, 200, block_));
    ASSERT_EQ(wait_for(lane, 1), Lane::State::kDone) << "round " << round;
    ASSERT_EQ(expected.difference(lane, 1), "");
  }
}

TEST_P(CudaBackendTest, TwoGenerationsSideBySide) {
  open(2, 2, 128);
  if (HasFatalFailure()) return;
  std::unique_ptr<Backend> old = std::move(backend_);
  const uint64_t old_block = block_;
  open(2, 2, 128);
  if (HasFatalFailure()) return;
  std::mt19937 random(17);
  for (int round = 0; round < 100; ++round) {
    Backend& backend = round % 2 ? *old : *backend_;
    Lane& lane = *backend.lane(1, GetParam().run);
    Expected expected;
    expected.fill(random, lane.rows_in(0), 0, 128, parameters_);
    ASSERT_TRUE(lane.submit(0, 0, 128, round % 2 ? old_block : block_));
    ASSERT_EQ(wait_for(lane, 0), Lane::State::kDone);
    ASSERT_EQ(expected.difference(lane, 0), "");
  }
}

TEST_P(CudaBackendTest, TimeOfAJob) {
  open(1, 1, 1024);
  if (HasFatalFailure()) return;
  std::mt19937 random(19);
  Lane& lane = *lane_of(0);
  for (const int slots : {1, 64, 256, 1024}) {
    Expected expected;
    expected.fill(random, lane.rows_in(0), 0, slots, parameters_);
    std::vector<double> us;
    for (int i = 0; i < 3000; ++i) {
      const auto begin = std::chrono::steady_clock::now();
      ASSERT_TRUE(lane.submit(0, 0, slots, block_));
      ASSERT_EQ(wait_for(lane, 0), Lane::State::kDone);
      us.push_back(std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin).count());
    }
    std::sort(us.begin(), us.end());
    fmt::print("{} rows of 80 bytes, 64 back: p50 {:.1f} us, p99 {:.1f} us\n", slots, us[us.size() / 2],
               us[us.size() * 99 / 100]);
    // Nothing here takes a thousand times the link's latency.
    EXPECT_LT(us[us.size() / 2], 3000);
  }
}

TEST_P(CudaBackendTest, OffersWhatItHas) {
  open(1, 2, 64);
  if (HasFatalFailure()) return;
  for (const auto run : {Run::kResident, Run::kStream}) {
    const bool there = GetParam().both || run == GetParam().run;
    EXPECT_EQ(backend_->offers(run), there);
    EXPECT_EQ(backend_->lane(0, run) != nullptr, there);
  }
}

INSTANTIATE_TEST_SUITE_P(Cuda, CudaBackendTest,
                         ::testing::Values(Lanes{Run::kResident, false}, Lanes{Run::kStream, false},
                                           Lanes{Run::kResident, true}, Lanes{Run::kStream, true}),
                         [](const auto& info) {
                           return std::string(info.param.run == Run::kResident ? "resident" : "stream") +
                                  (info.param.both ? "_of_both" : "");
                         });

/// On a device with lanes of both kinds.
class CudaBothLanes : public CudaBackendTest {};

// The resident kernels are never idle, so jobs of stream lanes must not have to wait for them to leave.
TEST_P(CudaBothLanes, JobsOfOneKindPassThoseOfTheOther) {
  constexpr int kWorkers = 4, kJobs = 6, kRounds = 3000;
  open(kWorkers, kJobs, 700, 1'000'000);
  if (HasFatalFailure()) return;
  std::atomic<int> working{kWorkers - 1};
  std::vector<std::string> problems(kWorkers);
  std::vector<std::thread> threads;
  for (int worker = 0; worker < kWorkers; ++worker)
    threads.emplace_back([&, worker] {
      std::mt19937 random(static_cast<unsigned>(worker));
      std::vector<Expected> expected(kJobs);
      std::vector<Lane*> lanes(kJobs, nullptr);
      std::string& problem = problems[static_cast<size_t>(worker)];
      // The first one keeps both resident kernels busy until the others, which change from job to job, are done.
      for (int round = 0; problem.empty() && (worker == 0 ? working > 0 : round < kRounds); ++round) {
        const int job = round % kJobs;
        Expected& e = expected[static_cast<size_t>(job)];
        Lane*& lane = lanes[static_cast<size_t>(job)];
        if (lane != nullptr) {
          if (wait_for(*lane, job) != Lane::State::kDone) {
            problem = "a job is not done";
            break;
          }
          problem = e.difference(*lane, job);
        }
        lane = backend_->lane(worker, worker > 0 && random() % 2 ? Run::kStream : Run::kResident);
        e.fill(random, lane->rows_in(job), round % 2, static_cast<int>(random() % 700 + 1), parameters_);
        if (!lane->submit(job, e.plan, e.slots, block_)) problem = "the device has failed";
      }
      for (int job = 0; job < kJobs; ++job)
        if (Lane* const lane = lanes[static_cast<size_t>(job)]) wait_for(*lane, job);
      if (worker > 0) --working;
    });
  for (std::thread& t : threads) t.join();
  for (const std::string& problem : problems) EXPECT_EQ(problem, "");
  // Nobody made the kernels leave: one for headers and one for payloads, which each lane that was opened started anew.
  EXPECT_NE(backend_->describe().find(fmt::format("starts: {}\n", 2 * kWorkers)), std::string::npos)
      << backend_->describe();
}

INSTANTIATE_TEST_SUITE_P(Cuda, CudaBothLanes, ::testing::Values(Lanes{Run::kResident, true}));

}  // namespace
}  // namespace headrace::cuda
