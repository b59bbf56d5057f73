// Flow entries, groups, meters and ports of an OpenFlow switch come and go while packets are counted by them: on the CPU and
// on devices that are late, hang, fail, and are replaced together with the configuration.

#include <fmt/format.h>

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <set>
#include <string>

#include "changes_fixture.hh"
#include "control/openflow/switch/switch_datapath.hh"
#include "headrace/worker.hh"
#include "unit/control/openflow/pipeline_messages.hh"

namespace headrace::testing {
namespace {

using namespace openflow::samples;
using openflow::ErrorCode;
using openflow::FlowCommand;
using openflow::FlowMod;
using openflow::GroupCommand;
using openflow::GroupType;
using openflow::SwitchDatapath;
using openflow::Version;

/// What an entry's cookie says: how its packets are counted besides.
enum Kind : uint64_t { kStays = 1, kComesAndGoes, kModified, kDrops, kMetered, kSelects, kFailsOver, kCopies, kGoesOn };

class OffloadOpenFlow : public OffloadChanges {
 protected:
  /// Flows before this one may leave late, twice or not at all.
  static constexpr uint32_t kInOrder = 28;
  static constexpr uint32_t kPorts = 13;
  static constexpr uint64_t kBytes = 64;  // of a frame
  /// Between two steps, in the switch's time: however long they take, the same entries expire after each of them.
  static constexpr int64_t kStepNs = 100'000'000;

  static std::string flows(int first, int bits) { return fmt::format("udp,nw_src=10.0.0.{}/{}", first, bits); }
  std::string text(const std::string& more) const override {
    std::string text = fmt::format(
        "src :: FlowSource(FLOWS {}) -> {}Paint(0) -> t :: OpenFlowTables(counted); sink :: FlowSink;", kFlows, more);
    for (uint32_t i = 0; i < kPorts; ++i) text += fmt::format("t[{}] -> [{}] sink;", i, i);
    return text;
  }

  openflow::OpenFlowPipeline& pipeline() { return datapath_->pipeline(); }
  void obey(const FlowMod& mod) {
    ASSERT_EQ(pipeline().flow_mod(mod, Version::k1_3, datapath_->now()), ErrorCode::kNone);
  }
  void add(Kind kind, const std::string& match, uint16_t priority, std::vector<openflow::Instruction> instructions,
           uint8_t table = 0, uint16_t hard_timeout = 0) {
    FlowMod mod = flow(FlowCommand::kAdd, match, priority, std::move(instructions));
    mod.cookie = kind;
    mod.table = table;
    mod.hard_timeout = hard_timeout;
    mod.flags = openflow::flow_flag::kSendFlowRemoved;
    obey(mod);
  }
  void group(uint32_t number, GroupType type, uint32_t port, uint32_t other) {
    openflow::GroupMod mod = change_group(GroupCommand::kAdd, number, type, {{output(port)}, {output(other)}});
    if (type == GroupType::kFastFailover) {
      mod.buckets[0].watch_port = port;
      mod.buckets[1].watch_port = other;
    }
    ASSERT_EQ(pipeline().group_mod(mod, datapath_->now()), ErrorCode::kNone);
  }

  /// A switch with what stays.
  void prepare() override {
    counted_.clear();
    expired_ = 0;
    time_ = kStepNs;
    // Counters have a part for each thread of the runtime, which comes after the switch here.
    detail::g_thread_count = kWorkers + 1;
    datapath_ = std::make_shared<SwitchDatapath>(
        0x16, [this] { return time_.load(); }, openflow::PacketInQueue::Options{});
    ASSERT_TRUE(openflow::publish_datapath("counted", datapath_));
    const std::lock_guard guard(datapath_->lock());
    std::vector<uint32_t> ports;
    for (uint32_t port = 1; port <= kPorts; ++port) ports.push_back(port);
    pipeline().set_ports(ports);
    for (const uint32_t port : ports) pipeline().set_port_alive(port, true);
    openflow::MeterMod meter = change_meter(openflow::MeterCommand::kAdd, 1, openflow::meter_flag::kPktps);
    meter.bands.push_back({openflow::MeterBandType::kDrop, 5, 1, 0, 0, {}});
    ASSERT_EQ(pipeline().meter_mod(meter, datapath_->now()), ErrorCode::kNone);
    group(1, GroupType::kSelect, 7, 8);
    group(2, GroupType::kFastFailover, 9, 10);
    group(3, GroupType::kAll, 11, 12);
    add(kStays, "", 0, {apply({output(2)})});
    add(kModified, flows(0, 29), 3000, {apply({output(4)})});
    add(kDrops, flows(8, 32), 4000, {});
    add(kMetered, flows(9, 32), 4000, {through_meter(1), apply({output(6)})});
    add(kSelects, flows(12, 30), 4000, {apply({to_group(1)})});
    add(kFailsOver, flows(16, 30), 4000, {write({to_group(2)})});
    add(kCopies, flows(20, 30), 4000, {apply({to_group(3)})});
    add(kGoesOn, flows(24, 30), 4000, {go_to(1)});
    add(kGoesOn, flows(24, 31), 1, {apply({action(openflow::ActionType::kDecNwTtl), output(13)})}, 1);
    add(kGoesOn, flows(26, 32), 1, {write({output(13)})}, 1);  // 27 finds nothing there
    pipeline().commit();
  }

  /// Some messages: entries come and go, at once or in time, and others are modified; a port dies and lives.
  void change_tables(std::mt19937& random) {
    for (int i = 0; i < 12; ++i) {
      const uint32_t what = random() % 10;
      if (what == 0) {
        FlowMod mod = flow(FlowCommand::kModifyStrict, flows(0, 29), 3000, {apply({output(4 + random() % 2)})});
        obey(mod);
      } else if (what == 1) {
        pipeline().set_port_alive(9, random() % 2 == 0);
      } else if (pipeline().size() < 20 || (what < 6 && pipeline().size() < 70)) {
        const auto source = static_cast<int>(random() % (kWorkers * kFlows));
        const auto priority = static_cast<uint16_t>(1 + random() % 1000);
        const bool one = random() % 3 != 0;
        // Those of the last sources are not deleted, so that some expire in any case.
        const auto timeout = static_cast<uint16_t>(source < 56 ? random() % 4 : 1 + random() % 3);
        add(kComesAndGoes, flows(one ? source : source & ~7, one ? 32 : 29), priority, {apply({output(3)})}, 0,
            timeout);
      } else {
        FlowMod mod = flow(FlowCommand::kDelete, flows(static_cast<int>(random() % 7) * 8, 29), 0);
        mod.cookie = kComesAndGoes;
        mod.cookie_mask = ~uint64_t{0};
        obey(mod);
      }
    }
  }
  void begin(LiveRouter& r) override { r.router().first<FlowSink>()->look_at_order_from(kInOrder); }
  /// What the control thread of a switch does.
  void change(LiveRouter& r, std::mt19937& random) override {
    {
      const std::lock_guard guard(datapath_->lock());
      time_ += kStepNs;
      change_tables(random);
      pipeline().expire(datapath_->now());
      pipeline().commit();
    }
    Errors errors;
    EXPECT_TRUE(r.router().update_devices(errors).ok()) << errors.str();
    take_removed();
  }
  void take_removed() {
    const std::lock_guard guard(datapath_->lock());
    for (const openflow::FlowRemoved& one : pipeline().settle()) {
      expired_ += one.reason == openflow::FlowRemovedReason::kHardTimeout ? 1 : 0;
      count_entry(one.cookie, one.table, one.packets, one.bytes);
    }
  }
  void count_entry(uint64_t kind, uint8_t table, uint64_t packets, uint64_t bytes) {
    EXPECT_EQ(bytes, packets * kBytes);
    counted_[{kind, table}] += packets;
  }

  bool enough(LiveRouter&) override { return counted_[{kComesAndGoes, 0}] > 0; }
  void compare(LiveRouter& r, int) override {
    const FlowSource& source = *r.router().first<FlowSource>();
    const FlowSink& sink = *r.router().first<FlowSink>();
    EXPECT_GT(expired_, 0u);
    take_removed();
    EXPECT_EQ(pipeline().unsettled(), 0u);
    EXPECT_GT((counted_[{kComesAndGoes, 0}]), 0u) << "no entry that went had counted anything";
    const std::lock_guard guard(datapath_->lock());
    for (const openflow::FlowStats& one : all_flows(pipeline(), datapath_->now()))
      count_entry(one.cookie, one.table, one.packets, one.bytes);
    uint64_t all = 0;
    for (const auto& [what, packets] : counted_) all += what.second == 0 ? packets : 0;
    EXPECT_EQ(all, source.sent());
    const auto entries = [this](Kind kind, uint8_t table = 0) {
      EXPECT_GT((counted_[{kind, table}]), 0u) << kind;
      return counted_[{kind, table}];
    };
    const auto at = [&sink](uint32_t port) { return sink.received_at(static_cast<int>(port) - 1); };
    EXPECT_EQ(entries(kStays), at(2));
    EXPECT_EQ(entries(kComesAndGoes), at(3));
    EXPECT_EQ(entries(kModified), at(4) + at(5));
    EXPECT_GT(entries(kDrops), 0u);

    std::vector<openflow::MeterStats> meters;
    ASSERT_EQ(pipeline().meter_stats(1, datapath_->now(), meters), ErrorCode::kNone);
    EXPECT_EQ(meters[0].packets, entries(kMetered));
    EXPECT_EQ(meters[0].bytes, meters[0].packets * kBytes);
    EXPECT_EQ(meters[0].packets - meters[0].bands[0].packets, at(6));
    EXPECT_GT(meters[0].bands[0].packets, 0u);
    EXPECT_GT(at(6), 0u);

    const auto group = [&](uint32_t number, Kind kind, uint32_t port, uint32_t other) {
      const auto stats = pipeline().group_stats(number, datapath_->now());
      ASSERT_EQ(stats.size(), 1u);
      EXPECT_EQ(stats[0].packets, entries(kind));
      EXPECT_EQ(stats[0].bytes, stats[0].packets * kBytes);
      ASSERT_EQ(stats[0].buckets.size(), 2u);
      EXPECT_EQ(stats[0].buckets[0].packets, at(port));
      EXPECT_EQ(stats[0].buckets[1].packets, at(other));
      EXPECT_EQ(stats[0].buckets[0].bytes, at(port) * kBytes);
      EXPECT_GT(at(port), 0u);
      EXPECT_GT(at(other), 0u);
    };
    group(1, kSelects, 7, 8);
    EXPECT_EQ(entries(kSelects), at(7) + at(8));
    group(2, kFailsOver, 9, 10);
    EXPECT_EQ(entries(kFailsOver), at(9) + at(10));
    group(3, kCopies, 11, 12);
    EXPECT_EQ(entries(kCopies), at(11));

    const std::vector<openflow::TableStats> tables = all_tables(pipeline());
    EXPECT_EQ(tables[0].matches, source.sent());
    EXPECT_EQ(tables[0].lookups, source.sent());
    EXPECT_EQ(tables[1].lookups, entries(kGoesOn));
    EXPECT_EQ(tables[1].matches, entries(kGoesOn, 1));
    EXPECT_GT(tables[1].lookups, tables[1].matches);
    EXPECT_EQ(entries(kGoesOn, 1), at(13));

    const auto came = datapath_->port_counters().sum(1);
    EXPECT_EQ(came.rx_packets, source.sent());
    EXPECT_EQ(came.rx_bytes, source.sent() * kBytes);
    for (uint32_t port = 1; port <= kPorts; ++port) {
      const auto left = datapath_->port_counters().sum(port);
      EXPECT_EQ(left.tx_packets, at(port)) << port;
      EXPECT_EQ(left.tx_bytes, at(port) * kBytes) << port;
    }
  }

  std::shared_ptr<SwitchDatapath> datapath_;
  std::map<std::pair<uint64_t, uint8_t>, uint64_t> counted_;  // packets by kind and table
  uint64_t expired_ = 0;
  std::atomic<int64_t> time_{0};
};
HEADRACE_OFFLOAD_CARRIERS(OffloadOpenFlow);

TEST_P(OffloadOpenFlow, CountWhatCameWhileTablesChange) { count_while_it_changes(); }
TEST_P(OffloadOpenFlow, CountWhatCameFromLateJobs) { count_from_late_jobs(); }
TEST_P(OffloadOpenFlow, CountWhatCameFromADeviceThatHangsAndOneThatFails) {
  count_from_a_device_that_hangs_and_one_that_fails();
}
TEST_P(OffloadOpenFlow, CountWhatCameBeforeAndAfterSwaps) { count_before_and_after_swaps(); }

}  // namespace
}  // namespace headrace::testing
