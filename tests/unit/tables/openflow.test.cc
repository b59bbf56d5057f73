/// \file
/// Parts of an OpenFlow switch that both processors, or several workers, use.

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "backend/cuda/driver.hh"
#include "device_compile.hh"
#include "headrace/rcu.hh"
#include "host_mirror.hh"
#include "tables/openflow/entry_counters.hh"
#include "tables/openflow/meter.hh"
#include "tables/openflow/openflow_view.hh"
#include "tables/openflow/port_counters.hh"
#include "tables/openflow/word_store.hh"

namespace headrace::openflow {
namespace {

constexpr int64_t kMeterSecond = 1'000'000'000;

TEST(WordStore, KeepsRunsUntilNobodyKnowsThem) {
  WordStore store(4096);
  std::mt19937 random(1);
  std::map<uint32_t, std::vector<uint32_t>> runs;
  const auto check = [&] {
    uint32_t end = 4;
    for (const auto& [index, words] : runs) {
      ASSERT_GE(index, end);
      ASSERT_EQ(index % 4, 0u);
      end = index + static_cast<uint32_t>(words.size());
      ASSERT_TRUE(std::equal(words.begin(), words.end(), store.data() + index));
    }
  };
  bool full = false;
  for (int step = 0; step < 3000; ++step) {
    if (random() % 2 == 0 || runs.empty()) {
      std::vector<uint32_t> words(1 + random() % 200);
      for (uint32_t& word : words) word = static_cast<uint32_t>(random());
      if (const auto index = store.add(words)) {
        ASSERT_TRUE(runs.emplace(*index, words).second);
      } else {
        full = true;
      }
    } else {
      const auto at = std::next(runs.begin(), static_cast<long>(random() % runs.size()));
      store.give_up(at->first, static_cast<uint32_t>(at->second.size()));
      runs.erase(at);
      store.begin_grace();
    }
    ASSERT_NO_FATAL_FAILURE(check());
  }
  EXPECT_TRUE(full);
  HostMirror mirror;
  const uint32_t* const copy = store.mirror(mirror);
  for (const auto& [index, words] : runs) EXPECT_TRUE(std::equal(words.begin(), words.end(), copy + index));
}

TEST(WordStore, WaitsForReaders) {
  WordStore store(64);
  const std::vector<uint32_t> words(8, 7), other(8, 9);
  const uint32_t index = *store.add(words);
  rcu::Reader reader;
  store.give_up(index, 8);
  store.begin_grace();
  EXPECT_NE(*store.add(other), index);
  EXPECT_EQ(store.data()[index], 7u);
  reader.quiescent();
  EXPECT_EQ(*store.add(other), index);
}

TEST(PortCounters, PacketsThatLeaveTogetherAddUp) {
  PortCounters counters;
  std::mt19937 random(3);
  std::map<uint32_t, std::pair<uint64_t, uint64_t>> naive;
  for (int burst = 0; burst < 300; ++burst) {
    PortCounters::Leaving leaving(counters);
    const uint32_t places = burst % 3 == 0 ? PortCounters::kPlaces : 4;
    for (int i = static_cast<int>(random() % 300); i > 0; --i) {
      const uint64_t bytes = random() % 50 == 0 ? (1u << 18) - 1 : 60 + random() % 1400;
      const uint32_t to = random() % (places + 1);  // 0: nowhere
      leaving.add(to, bytes);
      if (to == 0) continue;
      ++naive[to - 1].first;
      naive[to - 1].second += bytes;
    }
    leaving.count(counters.mine());
  }
  for (uint32_t place = 0; place < PortCounters::kPlaces; ++place) {
    const PortCounters::Count sum = counters.sum(place);
    EXPECT_EQ(std::pair(sum.tx_packets, sum.tx_bytes), naive[place]) << place;
  }
}

/// Times cost a worker a cache line, so they are kept from when somebody asks; counts do not change by that.
TEST(OpenFlowEntryCounters, KeepTimesOnceTheyAreWanted) {
  EntryCounters counters;
  counters.reserve(10);
  counters.add(3, 1, 60, 100);
  EXPECT_EQ(counters.last(3), 0);
  counters.keep_times();
  counters.add(3, 2, 120, 200);
  counters.reserve(10000);  // more parts, with times
  counters.add(9999, 1, 60, 300);
  EXPECT_EQ(counters.last(3), 200);
  EXPECT_EQ(counters.last(4), 0);
  EXPECT_EQ(counters.last(9999), 300);
  EXPECT_EQ(counters.sum(3), (Count{3, 180}));
  counters.clear(3);
  EXPECT_EQ(counters.last(3), 0);
  EXPECT_EQ(counters.sum(3), Count());
}

/// Every number is asked for once and before its visit; `none` has no count.
TEST(OpenFlowEntryCounters, VisitsEachPacketInOrder) {
  EntryCounters counters;
  counters.reserve(5000);
  std::mt19937 random(4);
  std::map<uint32_t, Count> naive;
  for (const int n : {0, 1, 15, 16, 17, 300}) {
    std::vector<uint32_t> numbers;
    for (int i = 0; i < n; ++i)
      numbers.push_back(random() % 4 == 0 ? 0xffffffffu : random() % 2 == 0 ? random() % 3 : random() % 5000);
    int next = 0;
    counters.visit_ahead(
        n, 0xffffffffu, [&](int i) { return numbers[static_cast<size_t>(i)]; },
        [&](int i, Count* count) {
          EXPECT_EQ(i, next++);
          const uint32_t number = numbers[static_cast<size_t>(i)];
          ASSERT_EQ(count == nullptr, number == 0xffffffffu);
          if (count == nullptr) return;
          EntryCounters::add(*count, 1, 64);
          naive[number] += {1, 64};
        });
    EXPECT_EQ(next, n);
  }
  for (uint32_t number = 0; number < 5000; ++number) EXPECT_EQ(counters.sum(number), naive[number]) << number;
}

/// Packets, or bits, that pass a band of a meter in ten seconds; the rest of them meets it.
uint64_t passed(Meter& meter, uint64_t packets_a_second, uint32_t bytes) {
  uint64_t count = 0;
  for (uint64_t i = 0; i < 10 * packets_a_second; ++i) {
    const auto now = static_cast<int64_t>(kMeterSecond * 1000 + i * kMeterSecond / packets_a_second);
    if (meter.measure(now, bytes) == Meter::kNoBand) ++count;
  }
  return count;
}

TEST(Meter, LetsItsRatePass) {
  const MeterRate packets[] = {{1000, 10, 0}};
  Meter by_packets(packets, true);
  EXPECT_NEAR(passed(by_packets, 5000, 64), 10000, 20);
  const MeterRate bits[] = {{8'000'000, 80'000, 0}};  // 1 MB/s
  Meter by_bits(bits, false);
  EXPECT_NEAR(passed(by_bits, 5000, 1000) * 1000., 10e6, 30e3);
  const MeterRate more[] = {{10000, 0, 0}};
  Meter idle(more, true);
  EXPECT_EQ(passed(idle, 5000, 64), 50000u);
}

TEST(Meter, AppliesTheBandOfTheHighestRateThatIsExceeded) {
  const MeterRate rates[] = {{3000, 1, 0}, {1000, 1, 2}};
  Meter meter(rates, true);
  EXPECT_EQ(meter.levels(0), 0u);
  EXPECT_EQ(meter.levels(1), 2u);
  const auto bands = [&](uint64_t rate, int64_t from) {
    std::map<int, uint64_t> count;
    for (uint64_t i = 0; i < 10 * rate; ++i)
      ++count[meter.measure(from + static_cast<int64_t>(i * kMeterSecond / rate), 64)];
    return count;
  };
  auto count = bands(500, kMeterSecond);
  EXPECT_EQ(count[Meter::kNoBand], 5000u);
  count = bands(2000, 100 * kMeterSecond);
  EXPECT_NEAR(count[Meter::kNoBand], 10000, 20);
  EXPECT_NEAR(count[1], 10000, 20);
  EXPECT_EQ(count[0], 0u);
  count = bands(6000, 200 * kMeterSecond);
  EXPECT_NEAR(count[0], 30000, 60);
}

TEST(Meter, IsSharedByWorkers) {
  const MeterRate rates[] = {{100000, 100, 0}};
  Meter meter(rates, true);
  constexpr int kWorkers = 4;
  std::atomic<uint64_t> passed{0};
  std::atomic<int64_t> now{kMeterSecond};
  std::vector<std::thread> workers;
  for (int worker = 0; worker < kWorkers; ++worker)
    workers.emplace_back([&] {
      uint64_t mine = 0;
      // A million packets of all in one second.
      for (int i = 0; i < 250000; ++i)
        if (meter.measure(now.fetch_add(1000), 64) == Meter::kNoBand) ++mine;
      passed += mine;
    });
  for (std::thread& worker : workers) worker.join();
  EXPECT_NEAR(static_cast<double>(passed.load()), 100000, 1000);
}

TEST(Meter, RemarksAssuredForwardingOnly) {
  EXPECT_EQ(dscp_remarked(10, 1), 12u);  // AF11 to AF12
  EXPECT_EQ(dscp_remarked(34, 2), 38u);  // AF41 to AF43
  EXPECT_EQ(dscp_remarked(36, 3), 38u);
  for (const uint32_t other : {0u, 8u, 46u, 48u, 11u, 58u}) EXPECT_EQ(dscp_remarked(other, 1), other);
}

/// A walk through the tables with all that a device does of programs and groups.
const char kWalk[] = R"(#include "tables/openflow/openflow_view.hh"
using namespace headrace;
using namespace headrace::openflow;
extern "C" __global__ void walk(const OpenFlowView view, uint32_t* keys, uint32_t* ports) {
  uint32_t* const key = keys + threadIdx.x * 32;
  uint32_t port = 0;
  for (uint32_t table = 0;;) {
    const AclMatch match = view.find(table, key);
    if (match.number == AclMatch::kNone) break;
    const ProgramView program = view.program(match.data);
    if (program.has(program_flag::kNeedsHost)) break;
    program.apply_actions().each([&](const uint32_t* op) {
      const Op kind = op_of(op_word(op));
      if (kind == Op::kSetField) SetField(op).apply(key);
      if (kind == Op::kOutput) port = op_port(op);
      if (kind == Op::kGroup) {
        const GroupView group = view.group(op_slot(op_word(op)));
        if (group.exists() && !group.needs_host()) port = group.program(group.choose(key[0]));
      }
    });
    program.write_metadata(key + 10);
    if (!program.has(program_flag::kGoto)) break;
    table = program.goto_table();
  }
  ports[threadIdx.x] = port;
}
)";

TEST(OpenFlowView, CompilesForADevice) {
  std::string why_not;
  const cuda::Nvrtc* nvrtc = cuda::Nvrtc::get(&why_not);
  if (nvrtc == nullptr) GTEST_SKIP() << why_not;
  EXPECT_EQ(device_complaint(*nvrtc, kWalk, "--gpu-architecture=sm_90"), "");
}

}  // namespace
}  // namespace headrace::openflow
