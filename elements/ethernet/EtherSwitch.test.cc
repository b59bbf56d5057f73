#include "elements/ethernet/EtherSwitch.hh"

#include "headrace/packet_pool.hh"
#include "support/element_test.hh"

namespace headrace::testing {
namespace {

std::string graph(const std::string& arguments) {
  return "s :: EtherSwitch(" + arguments +
         "); c0 :: Capture; c1 :: Capture; c2 :: Capture;"
         "Idle -> [0] s [0] -> c0; Idle -> [1] s [1] -> c1; Idle -> [2] s [2] -> c2;";
}

/// From A..., to B...: addresses that differ in their last byte.
std::string frame(int to, int from, int number = 0) {
  char text[64];
  std::snprintf(text, sizeof text, "0200000000%02x 0200000000%02x 9000 %04x", to, from, number);
  return from_hex(text);
}
constexpr int kNobody = 0xee;

struct Counts {
  size_t a, b, c;
  bool operator==(const Counts&) const = default;
};
Counts counts(TestRouter& r) {
  return {capture(r, "c0").seen().size(), capture(r, "c1").seen().size(), capture(r, "c2").seen().size()};
}
void PrintTo(const Counts& c, std::ostream* out) { *out << c.a << ' ' << c.b << ' ' << c.c; }

TEST(EtherSwitch, FloodsUnknownAndGroupAddressesToAllOthers) {
  TestRouter r(graph(""));
  ASSERT_TRUE(r.ok()) << r.errors();
  r.push("s", frame(kNobody, 1, 0x1234), 1);
  EXPECT_EQ(counts(r), (Counts{1, 0, 1}));
  EXPECT_EQ(capture(r, "c0").bytes(0), frame(kNobody, 1, 0x1234));
  EXPECT_EQ(capture(r, "c2").bytes(0), frame(kNobody, 1, 0x1234));
  r.push("s", from_hex("ffffffffffff 020000000002 9000"), 2);
  EXPECT_EQ(counts(r), (Counts{2, 1, 1}));
  r.push("s", from_hex("01005e000005 020000000003 9000"), 0);
  EXPECT_EQ(counts(r), (Counts{2, 2, 2}));
}

TEST(EtherSwitch, SendsToWhereAnAddressWasSeenLast) {
  TestRouter r(graph(""));
  r.push("s", frame(kNobody, 1), 0);
  r.push("s", frame(kNobody, 2), 1);
  EXPECT_EQ(counts(r), (Counts{1, 1, 2}));
  r.push("s", frame(1, 2), 1);
  r.push("s", frame(2, 1), 0);
  EXPECT_EQ(counts(r), (Counts{2, 2, 2}));
  EXPECT_EQ(r.read("s.table"), "02-00-00-00-00-01 0\n02-00-00-00-00-02 1\n");
  r.push("s", frame(2, 1), 2);  // moved
  r.push("s", frame(1, 2), 1);
  EXPECT_EQ(counts(r), (Counts{2, 3, 3}));
  EXPECT_EQ(r.read("s.table"), "02-00-00-00-00-01 2\n02-00-00-00-00-02 1\n");
}

TEST(EtherSwitch, DropsWhatWouldGoBack) {
  TestRouter r(graph(""));
  r.push("s", frame(kNobody, 1), 0);
  r.push("s", frame(1, 2), 0);
  EXPECT_EQ(counts(r), (Counts{0, 1, 1}));
  EXPECT_EQ(r.read("s.drop_reasons"), "1\tback to where it came from\n");
  r.push("s", "short", 0);
  EXPECT_EQ(counts(r), (Counts{0, 1, 1}));
}

TEST(EtherSwitch, ForgetsAfterTheTimeout) {
  TestRouter r(graph("TIMEOUT 10"));
  r.push("s", frame(kNobody, 1), 0);
  clock::jump_steady(clock::steady() + Timestamp::from_sec(8));
  r.push("s", frame(1, 2), 1);
  EXPECT_EQ(counts(r), (Counts{1, 1, 1}));  // known, and not flooded
  clock::jump_steady(clock::steady() + Timestamp::from_sec(4));
  EXPECT_EQ(r.read("s.count"), "1");
  r.push("s", frame(1, 2), 1);
  EXPECT_EQ(counts(r), (Counts{2, 1, 2}));
  EXPECT_EQ(r.read("s.timeout"), "10");
  EXPECT_FALSE(r.write("s.timeout", "soon"));
  EXPECT_TRUE(r.write("s.timeout", "1"));
  clock::jump_steady(clock::steady() + Timestamp::from_sec(2));
  EXPECT_EQ(r.read("s.table"), "");
}

TEST(EtherSwitch, IsAHubWithoutTimeout) {
  TestRouter r(graph("TIMEOUT 0"));
  r.push("s", frame(2, 1), 0);
  r.push("s", frame(1, 2), 1);
  EXPECT_EQ(counts(r), (Counts{1, 1, 2}));
  EXPECT_EQ(r.read("s.count"), "0");
}

TEST(EtherSwitch, GroupAddressesAreNotLearned) {
  TestRouter r(graph(""));
  r.push("s", from_hex("020000000001 ffffffffffff 9000"), 0);
  r.push("s", from_hex("020000000001 000000000000 9000"), 0);
  EXPECT_EQ(r.read("s.table"), "");
}

TEST(EtherSwitch, AFloodOfAddressesStaysWithinTheCapacity) {
  const uint32_t before = PacketPool::instance().in_use();
  {
    TestRouter r(graph("CAPACITY 64"));
    for (int i = 0; i < 5000; ++i) {
      char text[64];
      std::snprintf(text, sizeof text, "0200000000ee 06000000%04x 9000", i);
      r.push("s", from_hex(text), 0);
    }
    EXPECT_EQ(r.read("s.count"), "64");
    // The newest is known.
    r.push("s", from_hex("060000001387 020000000001 9000"), 1);
    EXPECT_EQ(counts(r), (Counts{1, 5000, 5000}));
    EXPECT_TRUE(r.write("s.flush"));
    EXPECT_EQ(r.read("s.count"), "0");
  }
  EXPECT_EQ(PacketPool::instance().in_use(), before);
}

TEST(EtherSwitch, TellsItsArguments) {
  EXPECT_NE(TestRouter(graph("CAPACITY 0")).errors().find("CAPACITY: out of range"), std::string::npos);
  EXPECT_NE(TestRouter(graph("TIMEOUT -1")).errors().find("TIMEOUT"), std::string::npos);
}

}  // namespace
}  // namespace headrace::testing
