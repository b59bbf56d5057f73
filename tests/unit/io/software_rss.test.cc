#include "headrace/software_rss.hh"

#include <gtest/gtest.h>

#include <map>
#include <mutex>
#include <numeric>

#include "headrace/flow_hash.hh"
#include "headrace/packet_pool.hh"
#include "headrace/real_clock.hh"
#include "headrace/router.hh"
#include "headrace/single_writer.hh"
#include "lang/lang.hh"
#include "runtime/runtime.hh"

namespace headrace {
namespace {

constexpr int kFlows = 32;

/// Frame number `number` of a flow: UDP between two ports, the numbers behind the headers.
Packet* make_frame(uint16_t flow, uint32_t number) {
  uint8_t frame[60] = {2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 1, 1, 8, 0, 0x45, 0, 0, 46, 0, 0, 0, 0, 64, 17, 0, 0};
  const uint8_t addresses[8] = {10, 0, 0, 9, 20, 0, 0, 1};
  std::memcpy(frame + 26, addresses, 8);
  frame[34] = static_cast<uint8_t>(4 + flow / 256);
  frame[35] = static_cast<uint8_t>(flow);
  std::memcpy(frame + 42, &flow, sizeof flow);
  std::memcpy(frame + 44, &number, sizeof number);
  return Packet::make(frame, sizeof frame);
}

/// Receives `total` frames of all flows in turn and spreads them; notes who got what.
class SpreadingSource final : public Element {
 public:
  static constexpr Ports kPorts{"0/0"};

  struct Seen {
    int worker;
    uint32_t number;
    uint32_t hash;
  };

  Status configure(Args& args) override {
    count_reasons({"ring full"});
    return args.read_m("TOTAL", total_)
        .read("CAPACITY", capacity_)
        .read("RECEIVER", receiver_)
        .read("SPREAD", spread_)
        .complete();
  }
  Status initialize(Errors&) override {
    task_.initialize(true, receiver_);
    rss_.initialize({receiver_}, 0, capacity_, spread_);
    return {};
  }
  bool run_task(Task& task) override {
    Batch batch;
    for (; sent_ < total_ && batch.size() < 64; ++sent_)
      batch.push_back(make_frame(static_cast<uint16_t>(sent_ % kFlows), sent_ / kFlows));
    if (batch.empty()) {
      if (rss_.held() == 0 && delivered() == total_ - dropped()) {
        router().request_stop();
        return false;
      }
      task.fast_reschedule();
      return false;
    }
    rss_.spread(batch);
    task.fast_reschedule();
    return true;
  }
  uint64_t delivered() const { return delivered_.sum(0); }
  uint64_t dropped() const { return drop_counts().empty() ? 0 : drop_counts()[0].packets; }
  const std::map<int, std::vector<Seen>>& seen() const { return seen_; }
  SoftwareRss& rss() { return rss_; }

 private:
  void deliver(Batch& batch) {
    delivered_.add(0, static_cast<uint64_t>(batch.size()));
    std::lock_guard guard(lock_);
    for (Packet* p : batch) {
      uint16_t flow;
      uint32_t number;
      std::memcpy(&flow, p->data() + 42, sizeof flow);
      std::memcpy(&number, p->data() + 44, sizeof number);
      seen_[flow].push_back({thread_id(), number, p->rx_hash()});
      p->kill();
    }
  }

  uint32_t total_ = 0, sent_ = 0, capacity_ = SoftwareRss::kDefaultCapacity;
  int receiver_ = 0;
  bool spread_ = true;
  std::mutex lock_;
  std::map<int, std::vector<Seen>> seen_;
  ThreadCounters delivered_{1};
  Task task_{this};
  SoftwareRss rss_{*this, [this](Batch& batch) { deliver(batch); }};
};
HEADRACE_ELEMENT(SpreadingSource)

class Rss : public ::testing::TestWithParam<int> {
 protected:
  /// Runs the configuration in real time on real threads.
  void run(const std::string& arguments, int threads) {
    runtime_ = std::make_unique<Runtime>(Runtime::Options{.threads = threads, .cpus = {}, .control_thread = false});
    Errors errors;
    lang::Configuration configuration;
    ASSERT_TRUE(lang::parse("s :: SpreadingSource(" + arguments + ")", "config", {}, configuration, errors));
    router_ = Router::create(configuration, *runtime_, errors, {});
    ASSERT_TRUE(router_) << errors.str();
    runtime_->run(router_);
  }
  SpreadingSource& source() { return dynamic_cast<SpreadingSource&>(*router_->find("s")); }
  ~Rss() override { router_.reset(); }

  std::unique_ptr<Runtime> runtime_;
  std::unique_ptr<Router> router_;
};

TEST_P(Rss, EveryFlowStaysWithTheWorkerOfItsHashInOrder) {
  constexpr uint32_t kTotal = 100 * kFlows;
  const int workers = GetParam();
  run("TOTAL 3200, CAPACITY 4096, RECEIVER " + std::to_string(workers - 1), workers);
  ASSERT_EQ(source().delivered(), kTotal);
  ASSERT_EQ(source().seen().size(), size_t{kFlows});
  std::map<int, int> flows_of;
  for (const auto& [flow, seen] : source().seen()) {
    Packet* p = make_frame(static_cast<uint16_t>(flow), 0);
    const uint32_t hash = toeplitz_frame(p->data(), p->length());
    p->kill();
    ASSERT_NE(hash, 0u);
    ++flows_of[seen[0].worker];
    for (uint32_t i = 0; i < seen.size(); ++i) {
      ASSERT_EQ(seen[i].number, i);
      ASSERT_EQ(seen[i].hash, hash);
      ASSERT_EQ(seen[i].worker, rss_worker(hash, workers));
    }
  }
  EXPECT_EQ(flows_of.size(), static_cast<size_t>(workers));
}
INSTANTIATE_TEST_SUITE_P(Workers, Rss, ::testing::Values(1, 2, 3));

TEST_F(Rss, AFullRingDropsAndCounts) {
  run("TOTAL 32000, CAPACITY 4", 3);
  EXPECT_EQ(source().delivered() + source().dropped(), 32000u);
  EXPECT_GT(source().dropped(), 0u);
  EXPECT_EQ(source().drop_counts()[0].reason, "ring full");
  for (const auto& [flow, seen] : source().seen())
    for (size_t i = 1; i < seen.size(); ++i) ASSERT_GT(seen[i].number, seen[i - 1].number);
}

TEST_F(Rss, WithoutSpreadingAllStaysWithTheReceiver) {
  run("TOTAL 3200, SPREAD false, RECEIVER 1", 2);
  EXPECT_FALSE(source().rss().active());
  for (const auto& [flow, seen] : source().seen())
    for (const auto& s : seen) ASSERT_EQ(s.worker, 1);
}

TEST_F(Rss, ANewConfigurationTakesWhatIsInTheRings) {
  const uint32_t before = PacketPool::instance().in_use();
  run("TOTAL 0", 3);
  SoftwareRss& old = source().rss();
  Batch batch;
  for (uint16_t flow = 0; flow < kFlows; ++flow) batch.push_back(make_frame(flow, 0));
  old.spread(batch);  // as worker 0; nobody runs
  const uint64_t held = old.held();
  EXPECT_EQ(held + source().delivered(), uint64_t{kFlows});
  EXPECT_GT(held, 0u);
  for (const char* receiver : {"0", "2"}) {  // a row that is there, and one that is not
    Errors errors;
    lang::Configuration configuration;
    ASSERT_TRUE(lang::parse(std::string("s :: SpreadingSource(TOTAL 0, RECEIVER ") + receiver + ")", "config", {},
                            configuration, errors));
    std::unique_ptr<Router> next = Router::create(configuration, *runtime_, errors, {});
    auto& successor = dynamic_cast<SpreadingSource&>(*next->find("s"));
    successor.rss().take_state(old);
    EXPECT_EQ(old.held(), 0u);
    EXPECT_EQ(successor.rss().held(), held);
    old.take_state(successor.rss());  // and back, for the next round
    EXPECT_EQ(old.held(), held);
  }
  EXPECT_EQ(old.clear(), held);
  EXPECT_EQ(PacketPool::instance().in_use(), before);
}

// --- Back-pressure: sources, elements that hand over and wait, and a sink that is slow

/// Sends TOTAL packets of its flows, which start at FIRST, on worker WORKER.
class FeedingSource final : public Element {
 public:
  static constexpr Ports kPorts{"0/1"};
  static constexpr Processing kProcessing{"h/h"};

  Status configure(Args& args) override {
    return args.read_m("TOTAL", total_).read_m("WORKER", worker_).read_m("FIRST", first_).complete();
  }
  Status initialize(Errors&) override {
    task_.initialize(true, worker_);
    return {};
  }
  bool run_task(Task& task) override {
    Batch batch;
    for (; sent_ < total_ && batch.size() < 64; sent_ += 1) {
      const auto flow = static_cast<uint16_t>(first_ + sent_ % kFlows);
      batch.push_back(make_frame(flow, sent_ / kFlows));
      batch[batch.size() - 1]->set_rx_hash(toeplitz_frame(batch[batch.size() - 1]->data(), 60));
    }
    if (batch.empty()) return false;
    output(0).push(batch);
    task.fast_reschedule();
    return true;
  }
  uint32_t sent() const { return sent_; }

 private:
  uint32_t total_ = 0, worker_ = 0, first_ = 0;
  SingleWriter<uint32_t> sent_;
  Task task_{this};
};
HEADRACE_ELEMENT(FeedingSource)

class Spreader final : public Element {
 public:
  static constexpr Ports kPorts{"1/1"};
  static constexpr Processing kProcessing{"h/h"};

  Status configure(Args& args) override {
    count_reasons({"ring full"});
    return args.read_m("CAPACITY", capacity_).complete();
  }
  Status initialize(Errors&) override {
    std::vector<int> all(static_cast<size_t>(router().threads()));
    std::iota(all.begin(), all.end(), 0);
    rss_.initialize(all, 0, capacity_, true, SoftwareRss::WhenFull::kWait);
    return {};
  }
  void push(int, Batch& batch) override { rss_.spread(batch, SoftwareRss::Begin::kHashed); }
  uint64_t dropped() const { return drop_counts().empty() ? 0 : drop_counts()[0].packets; }

 private:
  uint32_t capacity_ = 0;
  SoftwareRss rss_{*this, [this](Batch& batch) { output(0).push(batch); }};
};
HEADRACE_ELEMENT(Spreader)

/// Gives each packet to the next worker TURNS times, by output 1, before it leaves by output 0.
class TurnBack final : public Element {
 public:
  static constexpr Ports kPorts{"1/2"};
  static constexpr Processing kProcessing{"h/h"};

  Status configure(Args& args) override { return args.read_m("TURNS", turns_).complete(); }
  void push(int, Batch& batch) override {
    Batch back, on;
    for (Packet* p : batch) {
      uint32_t turned = p->anno_u32(anno_offset::kDstIp);
      if (turned == turns_) {
        on.push_back(p);
        continue;
      }
      p->set_anno_u32(anno_offset::kDstIp, turned + 1);
      const int next = (thread_id() + 1) % router().threads();
      while (rss_worker(p->rx_hash(), router().threads()) != next) p->set_rx_hash(p->rx_hash() * 2654435761u + 12345);
      back.push_back(p);
    }
    batch.clear();
    if (!back.empty()) output(1).push(back);
    if (!on.empty()) output(0).push(on);
  }

 private:
  uint32_t turns_ = 0;
};
HEADRACE_ELEMENT(TurnBack)

/// Takes TOTAL packets, then stops the router; on worker SLOW it takes its time. Notes how far sources were ahead.
class SlowSink final : public Element {
 public:
  static constexpr Ports kPorts{"-/0"};
  static constexpr Processing kProcessing{"h/h"};

  Status configure(Args& args) override { return args.read_m("TOTAL", total_).read("SLOW", slow_).complete(); }
  Status initialize(Errors&) override {
    for (const auto& e : router().elements())
      if (auto* source = dynamic_cast<FeedingSource*>(e.get())) sources_.push_back(source);
    give_up_.initialize();
    give_up_.schedule_after(Timestamp::from_ms(60000));
    return {};
  }
  void run_timer(Timer&) override { router().request_stop(); }
  void push(int, Batch& batch) override {
    if (thread_id() == slow_)
      for (const int64_t until = now_ns() + 1000 * batch.size(); now_ns() < until;) {
      }
    std::lock_guard guard(lock_);
    uint64_t sent = 0;
    for (const FeedingSource* source : sources_) sent += source->sent();
    ahead_ = std::max(ahead_, sent - taken_);
    for (Packet* p : batch) {
      uint16_t flow;
      uint32_t number;
      std::memcpy(&flow, p->data() + 42, sizeof flow);
      std::memcpy(&number, p->data() + 44, sizeof number);
      late_ += number != next_[flow];
      next_[flow] = number + 1;
    }
    taken_ += static_cast<uint64_t>(batch.size());
    batch.kill();
    if (taken_ == total_) router().request_stop();
  }
  uint64_t taken() const { return taken_; }
  uint64_t late() const { return late_; }
  uint64_t ahead() const { return ahead_; }

 private:
  uint64_t total_ = 0, taken_ = 0, late_ = 0, ahead_ = 0;
  int slow_ = -1;
  std::mutex lock_;
  std::map<uint16_t, uint32_t> next_;
  std::vector<const FeedingSource*> sources_;
  Timer give_up_{this};
};
HEADRACE_ELEMENT(SlowSink)

class RssWaits : public ::testing::Test {
 protected:
  void run(const std::string& text, int threads) {
    runtime_ = std::make_unique<Runtime>(Runtime::Options{.threads = threads, .cpus = {}, .control_thread = false});
    Errors errors;
    lang::Configuration configuration;
    ASSERT_TRUE(lang::parse(text, "config", {}, configuration, errors)) << errors.str();
    router_ = Router::create(configuration, *runtime_, errors, {});
    ASSERT_TRUE(router_) << errors.str();
    runtime_->run(router_);
  }
  const SlowSink& sink() const { return *router_->first<SlowSink>(); }
  uint64_t dropped() const {
    uint64_t n = 0;
    for (const Router::Drop& drop : router_->drops()) n += drop.packets;
    return n;
  }
  ~RssWaits() override { router_.reset(); }

  std::unique_ptr<Runtime> runtime_;
  std::unique_ptr<Router> router_;
};

TEST_F(RssWaits, SourcesRestWhileAnOwnerIsSlow) {
  run("FeedingSource(TOTAL 20000, WORKER 0, FIRST 0) -> Spreader(CAPACITY 32) -> SlowSink(TOTAL 20000, SLOW 1)", 3);
  EXPECT_EQ(sink().taken(), 20000u);
  EXPECT_EQ(dropped(), 0u);
  EXPECT_EQ(sink().late(), 0u);
  EXPECT_LT(sink().ahead(), 1000u);
}

TEST_F(RssWaits, TwoWorkersWaitForEachOther) {
  run("s :: Spreader(CAPACITY 4) -> SlowSink(TOTAL 40000, SLOW 0);"
      "FeedingSource(TOTAL 20000, WORKER 0, FIRST 0) -> s; FeedingSource(TOTAL 20000, WORKER 1, FIRST 100) -> s",
      2);
  EXPECT_EQ(sink().taken(), 40000u);
  EXPECT_EQ(dropped(), 0u);
  EXPECT_EQ(sink().late(), 0u);
  EXPECT_LT(sink().ahead(), 2000u);
}

TEST_F(RssWaits, OneHandOverBehindAnotherRests) {
  run("FeedingSource(TOTAL 5000, WORKER 0, FIRST 0) -> Spreader(CAPACITY 4) -> t :: TurnBack(TURNS 1);"
      "t[1] -> second :: Spreader(CAPACITY 4) -> sink :: SlowSink(TOTAL 5000, SLOW 1); t -> sink",
      3);
  EXPECT_EQ(sink().taken(), 5000u);
  EXPECT_EQ(dropped(), 0u);
  EXPECT_EQ(sink().late(), 0u);
  EXPECT_LT(sink().ahead(), 2000u);
}

TEST_F(RssWaits, WhatComesBackDoesNotWait) {
  run("s :: Spreader(CAPACITY 4) -> u :: Spreader(CAPACITY 4) -> t :: TurnBack(TURNS 5) -> SlowSink(TOTAL 4000);"
      "t[1] -> s; FeedingSource(TOTAL 2000, WORKER 0, FIRST 0) -> s;"
      "FeedingSource(TOTAL 2000, WORKER 1, FIRST 100) -> s",
      2);
  EXPECT_EQ(sink().taken(), 4000u);
  EXPECT_EQ(dropped(), 0u);
}

TEST(ToeplitzIp, FragmentsHashByAddressesOnly) {
  uint8_t ip[24] = {0x45, 0, 0, 24, 0, 0, 0x20, 0, 64, 17, 0, 0, 66, 9, 149, 187, 161, 142, 100, 80, 10, 234, 6, 230};
  EXPECT_EQ(toeplitz_ip(ip, sizeof ip), 0x323e8fc2u);
  ip[6] = 0;
  EXPECT_EQ(toeplitz_ip(ip, sizeof ip), 0x51ccc178u);
  ip[7] = 185;  // a later fragment
  EXPECT_EQ(toeplitz_ip(ip, sizeof ip), 0x323e8fc2u);
  EXPECT_EQ(toeplitz_ip(ip, 19), 0u);
  ip[0] = 0x55;
  EXPECT_EQ(toeplitz_ip(ip, sizeof ip), 0u);
}

}  // namespace
}  // namespace headrace
