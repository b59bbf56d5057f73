#include "elements/standard/Queue.hh"

#include <atomic>
#include <map>
#include <thread>

#include "support/test_router.hh"

namespace headrace::testing {
namespace {

/// Pulls one packet from the queue and returns its bytes, or "none".
std::string pull(TestRouter& r, const char* queue) {
  Batch batch;
  if (r.router().find(queue)->pull(0, batch, 1) == 0) return "none";
  const std::string bytes(reinterpret_cast<const char*>(batch[0]->data()), batch[0]->length());
  batch.kill();
  return bytes;
}

TEST(Queue, FirstInFirstOut) {
  TestRouter r("Idle -> q :: Queue -> Idle;");
  ASSERT_TRUE(r.ok()) << r.errors();
  for (const char* s : {"a", "b", "c"}) r.push("q", std::string_view(s));
  EXPECT_EQ(r.read("q.length"), "3");
  EXPECT_EQ(pull(r, "q"), "a");
  EXPECT_EQ(pull(r, "q"), "b");
  EXPECT_EQ(pull(r, "q"), "c");
  EXPECT_EQ(pull(r, "q"), "none");
  EXPECT_EQ(r.read("q.highwater_length"), "3");
}

TEST(Queue, DropsWhatDoesNotFitAndCountsIt) {
  ::testing::internal::CaptureStderr();
  TestRouter r("Idle -> q :: Queue(2) -> Idle;");
  for (const char* s : {"a", "b", "c", "d"}) r.push("q", std::string_view(s));
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "q :: Queue: overflow\n");
  EXPECT_EQ(r.read("q.length"), "2");
  EXPECT_EQ(r.read("q.drops"), "2");
  EXPECT_EQ(r.read("q.drop_reasons"), "2\tqueue full\n");
  EXPECT_TRUE(r.write("q.reset_counts"));
  EXPECT_EQ(r.read("q.drops"), "0");
  EXPECT_EQ(r.read("q.highwater_length"), "2");
}

TEST(Queue, OverflowLeavesByOutputOne) {
  ::testing::internal::CaptureStderr();
  TestRouter r("InfiniteSource(DATA x, LIMIT 5, BURST 5, STOP true) -> q :: Queue(2) -> Idle; q[1] -> c :: Capture;");
  ASSERT_TRUE(r.ok()) << r.errors();
  r.run();
  ::testing::internal::GetCapturedStderr();
  EXPECT_EQ(dynamic_cast<Capture*>(r.router().find("c"))->seen().size(), 3u);
  EXPECT_EQ(r.read("q.drops"), "3");
}

TEST(Queue, CapacityNeedNotBeAPowerOfTwo) {
  ::testing::internal::CaptureStderr();
  TestRouter r("Idle -> q :: Queue(5) -> Idle;");
  for (int round = 0; round < 20; ++round) {
    for (int i = 0; i < 7; ++i) r.push("q", std::string(1, static_cast<char>('a' + i)));
    for (int i = 0; i < 5; ++i) ASSERT_EQ(pull(r, "q"), std::string(1, static_cast<char>('a' + i)));
    ASSERT_EQ(pull(r, "q"), "none");
  }
  ::testing::internal::GetCapturedStderr();
  EXPECT_EQ(r.read("q.drops"), "40");
  EXPECT_EQ(r.read("q.highwater_length"), "5");
}

TEST(Queue, CapacityZeroStoresNothing) {
  TestRouter r("Idle -> q :: Queue(0) -> Idle;");
  ASSERT_TRUE(r.ok()) << r.errors();
  r.push("q", std::string_view("a"));
  EXPECT_EQ(r.read("q.drops"), "1");
  EXPECT_EQ(pull(r, "q"), "none");
}

TEST(Queue, CapacityChangesWhilePacketsAreStored) {
  TestRouter r("Idle -> q :: Queue(4) -> Idle;");
  for (const char* s : {"a", "b", "c", "d"}) r.push("q", std::string_view(s));
  EXPECT_EQ(pull(r, "q"), "a");
  EXPECT_TRUE(r.write("q.capacity", "2"));
  EXPECT_EQ(r.read("q.config"), "2");
  EXPECT_EQ(r.read("q.capacity"), "2");
  EXPECT_EQ(r.read("q.length"), "2");
  EXPECT_TRUE(r.write("q.capacity", "100"));
  r.push("q", std::string_view("e"));
  EXPECT_EQ(pull(r, "q"), "b");
  EXPECT_EQ(pull(r, "q"), "c");
  EXPECT_EQ(pull(r, "q"), "e");
  EXPECT_FALSE(r.write("q.capacity", "-1"));
  EXPECT_FALSE(r.write("q.capacity", "2000000000"));
  EXPECT_FALSE(r.write("q.capacity", "4194305"));
  EXPECT_EQ(r.read("q.capacity"), "100");
}

TEST(Queue, ResetDropsWhatIsStored) {
  TestRouter r("Idle -> q :: Queue -> Idle;");
  r.push("q", std::string_view("a"));
  EXPECT_TRUE(r.write("q.reset"));
  EXPECT_EQ(r.read("q.length"), "0");
  EXPECT_EQ(r.read("q.drop_reasons"), "1\tqueue reset\n");
}

TEST(Queue, ResetSendsWhatIsStoredByOutputOne) {
  TestRouter r("Idle -> q :: Queue -> Idle; q[1] -> c :: Capture;");
  r.push("q", std::string_view("a"));
  EXPECT_TRUE(r.write("q.reset"));
  EXPECT_EQ(dynamic_cast<Capture*>(r.router().find("c"))->seen().size(), 1u);
  EXPECT_EQ(r.read("q.drop_reasons"), "");
}

TEST(MixedQueue, ResetCountsWhatIsStored) {
  TestRouter r("Idle -> q :: MixedQueue(5) -> Idle; Idle -> [1]q;");
  r.push("q", std::string_view("a"), 0);
  r.push("q", std::string_view("b"), 1);
  EXPECT_EQ(r.router().find("q")->held_packets(), 2u);
  EXPECT_TRUE(r.write("q.reset"));
  EXPECT_EQ(r.read("q.drop_reasons"), "2\tqueue reset\n");
  EXPECT_EQ(r.router().find("q")->held_packets(), 0u);
}

TEST(Queue, NonemptySleepsAfterSomeFruitlessPulls) {
  TestRouter r("Idle -> q :: Queue -> u :: Unqueue -> Discard;");
  const Signal signal = Signal::upstream_nonempty(r.router().find("u"), 0, nullptr);
  EXPECT_TRUE(signal.active());
  for (int i = 0; i < 9; ++i) pull(r, "q");
  EXPECT_TRUE(signal.active());
  pull(r, "q");
  EXPECT_FALSE(signal.active());
  r.push("q", std::string_view("a"));
  EXPECT_TRUE(signal.active());
}

TEST(Queue, NonfullSleepsWhileFull) {
  TestRouter r("s :: InfiniteSource(ACTIVE false) -> q :: Queue(2) -> Idle;");
  const Signal signal = Signal::downstream_nonfull(r.router().find("s"), 0, nullptr);
  r.push("q", std::string_view("a"));
  EXPECT_TRUE(signal.active());
  r.push("q", std::string_view("b"));
  EXPECT_FALSE(signal.active());
  pull(r, "q");
  EXPECT_TRUE(signal.active());
}

TEST(Queue, VariantsDifferInWhomTheyNotify) {
  TestRouter r(
      "a :: InfiniteSource -> qa :: SimpleQueue -> ua :: Unqueue -> Discard;"
      "b :: InfiniteSource -> qb :: NotifierQueue -> ub :: Unqueue -> Discard;"
      "c :: InfiniteSource -> qc :: ThreadSafeQueue -> uc :: Unqueue -> Discard;");
  ASSERT_TRUE(r.ok()) << r.errors();
  const auto nonempty = [&](const char* e) {
    return !Signal::upstream_nonempty(r.router().find(e), 0, nullptr).always_active();
  };
  const auto nonfull = [&](const char* e) {
    return !Signal::downstream_nonfull(r.router().find(e), 0, nullptr).always_active();
  };
  EXPECT_FALSE(nonempty("ua"));
  EXPECT_FALSE(nonfull("a"));
  EXPECT_TRUE(nonempty("ub"));
  EXPECT_FALSE(nonfull("b"));
  EXPECT_TRUE(nonempty("uc"));
  EXPECT_TRUE(nonfull("c"));
}

TEST(Queue, QuickNoteQueueSleepsAtTheFirstFruitlessPull) {
  TestRouter r("Idle -> q :: QuickNoteQueue -> u :: Unqueue -> Discard;");
  const Signal signal = Signal::upstream_nonempty(r.router().find("u"), 0, nullptr);
  pull(r, "q");
  EXPECT_FALSE(signal.active());
}

// Each producer numbers its packets. Every packet must come out once or be counted as dropped, and those of one producer
// come in order for each consumer.
TEST(Queue, ManyPushAndPullAtTheSameTime) {
  constexpr int kProducers = 2, kConsumers = 2;
  constexpr uint32_t kEach = 20000;
  Runtime runtime(Runtime::Options{.threads = kProducers + kConsumers, .cpus = {}, .control_thread = true});
  Errors errors;
  lang::Configuration configuration;
  ASSERT_TRUE(lang::parse("Idle -> q :: Queue(37) -> Idle;", "test", {}, configuration, errors).ok());
  const auto router = Router::create(configuration, runtime, errors);
  ASSERT_TRUE(router) << errors.str();
  Element* queue = router->find("q");
  std::atomic<uint64_t> received{0}, in_order{0};
  std::atomic<int> producing{kProducers};
  std::vector<std::thread> threads;
  for (uint32_t id = 0; id < kProducers; ++id)
    threads.emplace_back([&, id] {
      detail::t_thread_id = static_cast<int>(id);
      for (uint32_t n = 0; n < kEach;) {
        // So a push overflows only while a consumer that lost its CPU in the middle holds up a place (see Ring).
        if (dynamic_cast<Queue*>(queue)->length() > 18) {
          std::this_thread::yield();
          continue;
        }
        const uint32_t numbers[2] = {id, n};
        Packet* p = Packet::make(numbers, sizeof numbers);
        if (!p) continue;
        Batch batch(p);
        queue->push(0, batch);
        ++n;
      }
      --producing;
    });
  for (int id = 0; id < kConsumers; ++id)
    threads.emplace_back([&, id] {
      detail::t_thread_id = kProducers + id;
      std::map<uint32_t, int64_t> last;
      for (;;) {
        Batch batch;
        const bool all_there = producing.load() == 0;
        if (queue->pull(0, batch, 5) == 0) {
          if (all_there && dynamic_cast<Queue*>(queue)->length() == 0) break;
          std::this_thread::yield();
          continue;
        }
        for (Packet* p : batch) {
          uint32_t numbers[2];
          std::memcpy(numbers, p->data(), sizeof numbers);
          if (!last.contains(numbers[0])) last[numbers[0]] = -1;
          if (numbers[1] > last[numbers[0]]) ++in_order;
          last[numbers[0]] = numbers[1];
        }
        received += static_cast<uint64_t>(batch.size());
        batch.kill();
      }
    });
  for (std::thread& t : threads) t.join();
  uint64_t dropped = 0;
  for (const Element::DropCount& d : queue->drop_counts()) dropped += d.packets;
  EXPECT_EQ(received.load() + dropped, uint64_t{kProducers} * kEach);
  EXPECT_LT(dropped, kEach);
  EXPECT_EQ(in_order.load(), received.load());
}

TEST(FrontDropQueue, DropsTheOldest) {
  ::testing::internal::CaptureStderr();
  TestRouter r("Idle -> q :: FrontDropQueue(2) -> Idle; q[1] -> c :: Capture;");
  ASSERT_TRUE(r.ok()) << r.errors();
  for (const char* s : {"a", "b", "c"}) r.push("q", std::string_view(s));
  ::testing::internal::GetCapturedStderr();
  EXPECT_EQ(dynamic_cast<Capture*>(r.router().find("c"))->bytes(0), "a");
  EXPECT_EQ(r.read("q.drops"), "1");
  EXPECT_EQ(pull(r, "q"), "b");
  EXPECT_EQ(pull(r, "q"), "c");
}

TEST(MixedQueue, SecondInputGoesToTheFront) {
  TestRouter r("Idle -> q :: MixedQueue(5) -> u :: Unqueue -> Discard; Idle -> [1]q;");
  ASSERT_TRUE(r.ok()) << r.errors();
  r.push("q", std::string_view("A"), 0);
  r.push("q", std::string_view("B"), 0);
  r.push("q", std::string_view("C"), 1);
  r.push("q", std::string_view("D"), 0);
  r.push("q", std::string_view("E"), 1);
  for (const char* s : {"E", "C", "A", "B", "D", "none"}) EXPECT_EQ(pull(r, "q"), s);
}

TEST(MixedQueue, WhenFullTheFirstInputLosesItsPacketAndTheSecondThatAtTheEnd) {
  TestRouter r("Idle -> q :: MixedQueue(2) -> Idle; Idle -> [1]q; q[1] -> c :: Capture;");
  ASSERT_TRUE(r.ok()) << r.errors();
  r.push("q", std::string_view("a"), 0);
  r.push("q", std::string_view("b"), 0);
  r.push("q", std::string_view("c"), 0);
  r.push("q", std::string_view("d"), 1);
  const Capture& c = *dynamic_cast<Capture*>(r.router().find("c"));
  ASSERT_EQ(c.seen().size(), 2u);
  EXPECT_EQ(c.bytes(0), "c");
  EXPECT_EQ(c.bytes(1), "b");
  EXPECT_EQ(r.read("q.drops"), "2");
  EXPECT_EQ(pull(r, "q"), "d");
  EXPECT_EQ(pull(r, "q"), "a");
}

TEST(MixedQueue, SleepsAndWakes) {
  TestRouter r("Idle -> q :: MixedQueue -> u :: Unqueue -> Discard; Idle -> [1]q;");
  const Signal signal = Signal::upstream_nonempty(r.router().find("u"), 0, nullptr);
  for (int i = 0; i < 10; ++i) pull(r, "q");
  EXPECT_FALSE(signal.active());
  r.push("q", std::string_view("a"), 1);
  EXPECT_TRUE(signal.active());
}

}  // namespace
}  // namespace headrace::testing
