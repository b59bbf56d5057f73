#include "headrace/software_rss.hh"

#include <gtest/gtest.h>

#include <map>
#include <mutex>

#include "headrace/flow_hash.hh"
#include "headrace/packet_pool.hh"
#include "headrace/router.hh"
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
