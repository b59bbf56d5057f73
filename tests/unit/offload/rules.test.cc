// Rules come and go while packets of many flows are counted by them: on the CPU and on devices that are late, hang, fail,
// and are replaced together with the configuration.

#include <fmt/format.h>

#include <iterator>
#include <map>
#include <random>
#include <set>
#include <sstream>

#include "changes_fixture.hh"
#include "headrace/real_clock.hh"
#include "queue_fixture.hh"

namespace headrace::testing {
namespace {

using Mode = OffloadOptions::Mode;

constexpr const char* kRules =
    "Idle -> first :: Strip(14) -> CheckIPHeader -> f :: FlowClassifier(FIELDS ip) -> cap :: Capture; f[1] -> [1] cap;";

/// How many numbers rules have had, and how many of them rest.
std::string numbers_of(TestRouter& r) {
  const std::string table = r.read("f.table");
  const size_t begin = table.find('\n') + 1;
  return table.substr(begin, table.find(" of removed", begin) - begin);
}

TEST_F(OffloadQueue, ANumberOfARuleRestsWhileAJobCanBringItBack) {
  make(kRules, options(Mode::kDevice));
  ASSERT_TRUE(r().write("f.add", "priority=9,udp,nw_src=10.0.0.1 actions=0\npriority=0 actions=1")) << r().errors();
  device().hold = true;
  send(1, 4);
  ASSERT_TRUE(r().write("f.remove", "priority=9,udp,nw_src=10.0.0.1")) << r().errors();
  // The device has the table without the rule by now, but not for this job.
  std::string others;
  for (int i = 2; i < 5; ++i) others += fmt::format("priority=9,udp,nw_src=10.0.0.{} actions=1\n", i);
  ASSERT_TRUE(r().write("f.add", others)) << r().errors();
  send(1, 4);
  EXPECT_EQ(numbers_of(r()), "5 numbers, 1 of them");
  device().hold = false;
  r().router().drain();
  expect_all_in_order();
  EXPECT_EQ(r().read("f.removed_counts"), "4\t200");
  for (int i = 2; i < 5; ++i)
    EXPECT_NE(r().read("f.counts").find(fmt::format("0\t0\tpriority=9,udp,nw_src=10.0.0.{} ", i)), std::string::npos);
  EXPECT_NE(r().read("f.counts").find("4\t200\tpriority=0 "), std::string::npos) << r().read("f.counts");
  // Now it serves again, from zero.
  ASSERT_TRUE(r().write("f.add", "priority=9,udp,nw_src=10.0.0.9 actions=1")) << r().errors();
  EXPECT_EQ(numbers_of(r()), "5 numbers, 0 of them");
  EXPECT_NE(r().read("f.counts").find("0\t0\tpriority=9,udp,nw_src=10.0.0.9 "), std::string::npos);
  EXPECT_EQ(r().read("f.removed_counts"), "4\t200");
}

/// What it brings is ignored, so it may be late for ever.
TEST_F(OffloadQueue, ANumberOfARuleDoesNotWaitForALateJob) {
  OffloadOptions o = options(Mode::kDevice);
  o.deadline_ms = 5;
  make(kRules, o);
  ASSERT_TRUE(r().write("f.add", "priority=9,udp,nw_src=10.0.0.1 actions=0\npriority=0 actions=1")) << r().errors();
  device().lose = 0;
  send(1, 4);
  ASSERT_TRUE(r().write("f.remove", "priority=9,udp,nw_src=10.0.0.1")) << r().errors();
  r().router().drain();
  EXPECT_EQ(count(offload::kLateJobs), 1u);
  ASSERT_TRUE(r().write("f.add", "priority=8,udp,nw_src=10.0.0.1 actions=1")) << r().errors();
  EXPECT_EQ(numbers_of(r()), "2 numbers, 0 of them");
  device().found = true;
  poll(r());
  send(1, 4);
  r().router().drain();
  expect_all_in_order();
  EXPECT_EQ(r().read("f.counts"),
            "4\t200\tpriority=8,udp,nw_src=10.0.0.1 actions=output:1\n4\t200\tpriority=0 actions=output:1\n");
  EXPECT_EQ(r().read("f.removed_counts"), "0\t0");
}

/// A rule that goes while the device hangs, and a device that gets no tables meanwhile.
TEST_F(OffloadQueue, ANumberOfARuleDoesNotWaitForADeviceThatHangs) {
  OffloadOptions o = options(Mode::kDevice, 4, 1);
  o.deadline_ms = 5;
  make(kRules, o);
  ASSERT_TRUE(r().write("f.add", "priority=9,udp,nw_src=10.0.0.1 actions=0\npriority=0 actions=1")) << r().errors();
  device().hold = true;
  send(1, 4);
  for (const int64_t end = now_ns() + 20'000'000'000; !hung(0) && now_ns() < end;) poll(r());
  ASSERT_TRUE(hung(0));
  ASSERT_TRUE(r().write("f.remove", "priority=9,udp,nw_src=10.0.0.1")) << r().errors();
  ASSERT_TRUE(r().write("f.add", "priority=8,udp,nw_src=10.0.0.1 actions=1")) << r().errors();
  EXPECT_EQ(numbers_of(r()), "2 numbers, 0 of them");
  device().hold = false;
  for (const int64_t end = now_ns() + 20'000'000'000; hung(0) && now_ns() < end;) {
    poll(r());
    Errors errors;
    EXPECT_TRUE(r().router().update_devices(errors).ok()) << errors.str();
  }
  send(1, 4);
  r().router().drain();
  expect_all_in_order();
  EXPECT_EQ(r().read("f.counts"),
            "4\t200\tpriority=8,udp,nw_src=10.0.0.1 actions=output:1\n0\t0\tpriority=0 actions=output:1\n");
  EXPECT_EQ(r().read("f.removed_counts"), "4\t200");
}

class OffloadRules : public OffloadChanges {
 protected:
  static std::string address(int flow) { return fmt::format("10.0.{}.{}", flow / 256, flow % 256); }

  /// Flows before this one meet a rule that is modified.
  static constexpr uint32_t kNotModified = 8;
  /// Rules that come and go send to output 1, those that stay to output 0, and those that are modified to 2 and 3. The flow
  /// with number 7 is dropped. The other rules are for half of the flows, so that rules are better than others and not.
  static std::string first_rules() {
    return "priority=0 actions=0\npriority=100,udp,nw_src=10.0.0.0/29 actions=2\npriority=101,udp,nw_dst=1.0.0.24/29 "
           "actions=3\npriority=200000,udp,nw_src=" +
           address(7) + " actions=drop";
  }
  std::string text(const std::string& more) const override {
    return "src :: FlowSource(FLOWS " + std::to_string(kFlows) + ") -> " + more +
           "Strip(14) -> check :: CheckIPHeader -> flows :: FlowClassifier(FIELDS ip);"
           "sink :: FlowSink; flows[0] -> [0] sink; flows[1] -> Paint(4) -> [1] sink; flows[2] -> [2] sink;"
           "flows[3] -> DecIPTTL -> [3] sink;";
  }

  /// A call's changes: some rules come, some go, some are modified.
  std::string changes(std::mt19937& random) {
    std::string call;
    for (int i = 0; i < 12; ++i) {
      const int what = static_cast<int>(random() % 10);
      if (what == 0) {
        call += fmt::format("modify priority=100,udp,nw_src=10.0.0.0/29 actions={}\n", 2 + random() % 2);
      } else if (known_.size() < 10 || (what < 6 && known_.size() < 60)) {
        const auto flow = static_cast<int>(random() % (kWorkers * kFlows));
        std::string match = fmt::format("priority={},udp,nw_src=", 1 + random() % 1000);
        match += random() % 3 ? address(flow) : address(flow & ~7) + "/29";
        if (!known_.insert(match).second) continue;
        call += "add " + match + " actions=1\n";
      } else {
        const auto at = std::next(known_.begin(), static_cast<int>(random() % known_.size()));
        call += "remove " + *at + "\n";
        known_.erase(at);
      }
    }
    return call;
  }

  void begin(LiveRouter& r) override {
    known_.clear();
    ASSERT_TRUE(r.write("flows.add", first_rules())) << r.errors();
    // An output changes between two packets of a batch on the CPU, which may then leave by the new one and by the old one.
    r.router().first<FlowSink>()->look_at_order_from(kNotModified);
  }
  void change(LiveRouter& r, std::mt19937& random) override {
    EXPECT_TRUE(r.write("flows.ctrl", changes(random))) << r.errors();
  }

  static uint64_t removed_packets(LiveRouter& r) {
    const std::string removed = r.read("flows.removed_counts");
    return std::stoull(removed.substr(0, removed.find('\t')));
  }
  bool enough(LiveRouter& r) override { return removed_packets(r) > 0; }
  void compare(LiveRouter& r, int swaps) override {
    const auto& source = *r.router().first<FlowSource>();
    const auto& sink = *r.router().first<FlowSink>();
    // By output: what rules counted, and what came.
    std::map<std::string, uint64_t> counted;
    std::istringstream counts(r.read("flows.counts"));
    for (std::string line; std::getline(counts, line);) {
      const size_t end = line.find('\t');
      counted[line.substr(line.rfind('=') + 1)] += std::stoull(line.substr(0, end));
    }
    const uint64_t gone = removed_packets(r);
    EXPECT_GT(gone, 0u);
    uint64_t all = gone;
    for (const auto& [action, n] : counted) all += n;
    EXPECT_EQ(all, source.sent());
    EXPECT_EQ(counted["output:0"], sink.received_at(0));
    EXPECT_EQ(counted["output:1"] + gone, sink.received_at(1));
    EXPECT_EQ(counted["output:2"] + counted["output:3"], sink.received_at(2) + sink.received_at(3));
    EXPECT_EQ(counted["drop"], source.sent() - sink.received());
    EXPECT_GT(counted["drop"], 0u);
    if (swaps == 0) {
      EXPECT_EQ(r.read("flows.drop_reasons"), fmt::format("{}\tdropped by a rule\n", counted["drop"]));
    }
    EXPECT_EQ(r.read("flows.count"), std::to_string(known_.size() + 4));
  }

  std::set<std::string> known_;
};
HEADRACE_OFFLOAD_CARRIERS(OffloadRules);

TEST_P(OffloadRules, CountWhatCameWhileTheyChange) { count_while_it_changes(); }
TEST_P(OffloadRules, CountWhatCameFromLateJobs) { count_from_late_jobs(); }
TEST_P(OffloadRules, CountWhatCameFromADeviceThatHangsAndOneThatFails) {
  count_from_a_device_that_hangs_and_one_that_fails();
}
TEST_P(OffloadRules, CountWhatCameBeforeAndAfterSwaps) { count_before_and_after_swaps(); }

}  // namespace
}  // namespace headrace::testing
