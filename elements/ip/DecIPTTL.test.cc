#include "support/element_test.hh"

namespace headrace::testing {
namespace {

constexpr std::string_view kGraph =
    "Idle -> m :: MarkIPHeader -> t :: DecIPTTL -> live :: Capture; t[1] -> dead :: Capture;";

TEST(DecIPTTL, DecrementsAndRepairsTheChecksum) {
  TestRouter r(kGraph);
  ASSERT_TRUE(r.ok()) << r.errors();
  r.push("m", from_hex("45000014 00000000 40117af5 01000001 02000002"));
  ASSERT_EQ(capture(r, "live").seen().size(), 1u);
  EXPECT_EQ(to_hex(capture(r, "live").bytes(0)), to_hex(from_hex("45000014 00000000 3f117bf5 01000001 02000002")));
}

TEST(DecIPTTL, ChecksumWrapsEndAround) {
  TestRouter r(kGraph);
  ASSERT_TRUE(r.ok()) << r.errors();
  r.push("m", from_hex("45000014 00000000 4011ff10 01000001 02000002"));
  EXPECT_EQ(to_hex(capture(r, "live").bytes(0)).substr(16, 8), "3f110011");
  // Where the carry begins, as the sum lies in memory.
  const std::pair<std::string, std::string> sums[] = {{"fdff", "feff"}, {"feff", "0000"}, {"ffff", "0100"}};
  for (const auto& [before, after] : sums) {
    r.push("m", from_hex("45000014 00000000 40ff" + before + "01000001 02000002"));
    const size_t last = capture(r, "live").seen().size() - 1;
    EXPECT_EQ(to_hex(capture(r, "live").bytes(last)).substr(16, 8), "3fff" + after);
  }
}

TEST(DecIPTTL, ExpiredPacketsLeaveUnchanged) {
  TestRouter r(kGraph);
  ASSERT_TRUE(r.ok()) << r.errors();
  for (const char* ttl : {"00", "01"})
    r.push("m", from_hex("45000014 00000000" + std::string(ttl) + "110000 01000001 02000002"));
  ASSERT_EQ(capture(r, "dead").seen().size(), 2u);
  EXPECT_EQ(to_hex(capture(r, "dead").bytes(1)),
            "45000014000000000111000001000001"
            "02000002");
  EXPECT_EQ(r.read("t.drops"), "2");
}

TEST(DecIPTTL, WithoutSecondOutputDropsAreCountedByReason) {
  TestRouter r("Idle -> m :: MarkIPHeader -> t :: DecIPTTL -> Discard;");
  ASSERT_TRUE(r.ok()) << r.errors();
  r.push("m", from_hex("45000014 00000000 01110000 01000001 02000002"));
  EXPECT_EQ(r.read("t.drop_reasons"), "1\tttl expired\n");
}

TEST(DecIPTTL, MulticastFalseLetsMulticastPass) {
  TestRouter r("Idle -> m :: MarkIPHeader -> t :: DecIPTTL(MULTICAST false) -> live :: Capture;");
  ASSERT_TRUE(r.ok()) << r.errors();
  r.push("m", from_hex("45000014 00000000 01110000 01000001 e0000005"));
  ASSERT_EQ(capture(r, "live").seen().size(), 1u);
  EXPECT_EQ(to_hex(capture(r, "live").bytes(0)).substr(16, 2), "01");
}

TEST(DecIPTTL, PacketWithoutNetworkHeaderIsDropped) {
  TestRouter r("Idle -> t :: DecIPTTL -> live :: Capture;");
  ASSERT_TRUE(r.ok()) << r.errors();
  r.push("t", from_hex("45000014"));
  EXPECT_EQ(capture(r, "live").seen().size(), 0u);
  EXPECT_EQ(r.read("t.drop_reasons"), "1\tdropped\n");
}

}  // namespace
}  // namespace headrace::testing
