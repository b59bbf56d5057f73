// A worker's jobs, step by step: which tables they see, and what updates send.

#include <fmt/format.h>

#include <thread>

#include "flow_elements.hh"
#include "packets.hh"
#include "queue_fixture.hh"
#include "test_shaders.hh"

namespace headrace::testing {
namespace {

// --- Tables

TEST_F(OffloadQueue, AJobSeesTheTablesOfTheTimeItWasSubmitted) {
  make("Idle -> first :: Strip(14) -> t :: OffloadTwins -> cap :: Capture; t[1] -> [1] cap;",
       options(Mode::kDevice, 4, 4));
  int value = 1;
  ASSERT_TRUE(r().write("t.set", "1"));
  for (int round = 0; round < 8; ++round, value += 2) {
    const size_t before = seen().size();
    device().hold = true;
    send(1, 4);
    ASSERT_TRUE(r().write("t.set", std::to_string(value + 1)));
    send(1, 4);
    // The next update needs the memory that the first job reads from.
    device().pending = 100;
    device().hold = false;
    ASSERT_TRUE(r().write("t.set", std::to_string(value + 2))) << r().errors();
    EXPECT_EQ(device().pending, 0);
    r().router().drain();
    ASSERT_EQ(seen().size(), before + 8);
    for (size_t i = 0; i < 8; ++i) {
      const Capture::Seen& s = seen()[before + i];
      EXPECT_EQ(s.port, 0) << "the tables do not agree";
      EXPECT_EQ(s.packet->anno_u8(anno_offset::kPaint), value + static_cast<int>(i / 4));
    }
  }
  expect_all_in_order();
}

TEST_F(OffloadQueue, NoPacketSeesHalfOfAnUpdate) {
  // A route is an entry of one table and a next hop of another. Two updates pass while jobs of older states are held.
  make(
      "Idle -> first :: Strip(14) -> CheckIPHeader -> rt :: RadixIPLookup(0.0.0.0/0 1.1.1.1 0)"
      " -> Paint(0) -> cap :: Capture; rt[1] -> Paint(1) -> cap;",
      options(Mode::kDevice, 1, 8));
  device().hold = true;
  const auto expect_held = [&](int n) {
    poll(r());
    EXPECT_EQ(seen().size(), 0u);
    EXPECT_EQ(device().submitted, n);
  };
  send(1, 1);
  ASSERT_TRUE(r().write("rt.set", "0.0.0.0/0 2.2.2.2 1")) << r().errors();
  expect_held(1);
  send(1, 1);
  ASSERT_TRUE(r().write("rt.set", "0.0.0.0/0 3.3.3.3 0")) << r().errors();
  expect_held(2);
  send(1, 1);
  device().hold = false;
  r().router().drain();
  expect_all_in_order();
  ASSERT_EQ(seen().size(), 3u);
  for (uint32_t i = 0; i < 3; ++i) {
    EXPECT_EQ(seen()[i].packet->anno_u32(anno_offset::kDstIp), (i + 1) * 0x01010101u);
    EXPECT_EQ(seen()[i].packet->anno_u8(anno_offset::kPaint), i == 1);
  }
  EXPECT_FALSE(failed(0));
}

TEST_F(OffloadQueue, AnUpdateSendsLittleMoreThanWhatChanged) {
  make(
      "Idle -> first :: Strip(14) -> CheckIPHeader -> rt :: RadixIPLookup(0.0.0.0/0 1.1.1.1 0)"
      " -> q :: Queue -> Discard; rt[1] -> c :: Counter -> cap :: Capture;",
      options(Mode::kDevice));
  ASSERT_TRUE(r().write("rt.add", "10.0.0.0/8 1.1.1.1 1")) << r().errors();
  ASSERT_TRUE(r().write("rt.add", "10.0.0.0/9 1.1.1.1 0")) << r().errors();
  const int allocations = device().allocations;
  size_t sent = device().sent_bytes;
  ASSERT_TRUE(r().write("q.capacity", "50")) << r().errors();
  ASSERT_TRUE(r().write("c.reset", "")) << r().errors();
  EXPECT_EQ(device().sent_bytes, sent) << "nothing that devices have has changed";
  ASSERT_TRUE(r().write("rt.add", "10.1.2.0/24 1.1.1.1 1")) << r().errors();
  EXPECT_GT(device().sent_bytes, sent);
  // That update also brought its generation the /9, half of the table. This one lacks two /24.
  sent = device().sent_bytes;
  ASSERT_TRUE(r().write("rt.add", "10.1.3.0/24 1.1.1.1 1")) << r().errors();
  EXPECT_LT(device().sent_bytes - sent, 4000u);
  EXPECT_EQ(device().allocations, allocations);
  // Each of these routes has a new next hop.
  for (int i = 0; i < 200; ++i)
    ASSERT_TRUE(r().write("rt.add", fmt::format("10.1.{}.0/24 1.1.2.{} 1", i + 4, i))) << r().errors();
  EXPECT_LT(device().allocations - allocations, 40) << "arrays grow by half";
}

TEST_F(OffloadQueue, ADeviceThatWaitsForJobsKeepsNoOtherWaiting) {
  // An update gives up on the held jobs after half a second, which may pass on a busy machine before we look.
  bool side_by_side = false;
  for (int attempt = 0; attempt < 5 && !side_by_side; ++attempt) {
    router_.reset();
    next_.clear();
    make("Idle -> first :: Strip(14) -> t :: OffloadTwins -> cap :: Capture; t[1] -> [1] cap;",
         options(Mode::kDevice, 4, 4), 2);
    device(0).hold = true;
    for (const char* value : {"1", "2", "3"}) {
      // Each job keeps a state of the tables.
      ASSERT_TRUE(r().write("t.set", value)) << r().errors();
      send(1, 4);
    }
    Element* t = nullptr;
    Errors errors;
    const Handler* const set = r().router().find_handler("t.set", nullptr, t, errors);
    ASSERT_NE(set, nullptr);
    ASSERT_TRUE(set->write("4", errors)) << errors.str();
    const size_t before = device(1).sent_bytes;
    std::thread updating([&] { (void)r().router().engine()->update(true, errors); });
    while (device(1).sent_bytes == before) std::this_thread::yield();
    side_by_side = !hung(0) && !failed(0);
    device(0).hold = false;
    updating.join();
    r().router().drain();
    expect_all_in_order();
  }
  EXPECT_TRUE(side_by_side);
}

TEST_F(OffloadQueue, AnOpenJobDoesNotGoToADeviceWithOldTables) {
  make("Idle -> first :: Strip(14) -> t :: OffloadTwins -> cap :: Capture; t[1] -> [1] cap;",
       options(Mode::kDevice, 8, 4), 2);
  ASSERT_TRUE(r().write("t.set", "1"));
  send(1, 3);
  device(0).refuse = true;
  EXPECT_FALSE(r().write("t.set", "2"));
  EXPECT_TRUE(failed(0));
  send(1, 3);
  r().router().drain();
  expect_all_in_order();
  for (const Capture::Seen& s : seen()) EXPECT_EQ(s.packet->anno_u8(anno_offset::kPaint), 2);
  EXPECT_EQ(device(0).submitted, 0);
  send(1, 3);
  r().router().drain();
  expect_all_in_order();
  EXPECT_EQ(device(1).slots, 3);
}

}  // namespace
}  // namespace headrace::testing
