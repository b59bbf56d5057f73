#include "support/element_test.hh"

namespace headrace::testing {
namespace {

// Simulated time is 1000000000 s: 6400000 ms (0x61a800) after midnight UT.
constexpr std::string_view kOptionsGraph =
    "Idle -> m :: MarkIPHeader -> o :: IPGWOptions(18.26.7.1, 18.26.9.1 18.26.10.1) -> good :: Capture;"
    "o[1] -> bad :: Capture;";

/// What comes out for a packet: by which output, and as what.
std::string outcome(std::string_view hex) {
  TestRouter r(kOptionsGraph);
  EXPECT_TRUE(r.ok()) << r.errors();
  r.push("m", from_hex(hex));
  const auto good = captured(r, "good"), bad = captured(r, "bad");
  EXPECT_EQ(good.size() + bad.size(), 1u);
  if (!good.empty()) return good[0];
  EXPECT_EQ(bad[0], plain_hex(hex)) << "a bad packet must not change";
  return "problem at " + std::to_string(capture(r, "bad").seen()[0].packet->anno_u8(anno_offset::kIcmpParamProb));
}

TEST(IPGWOptions, NothingToDo) {
  for (const char* packet :
       {"45000014 00010000 091184a5 121a04ff 121a0401", "46000018 00010000 09110000 121a042c 121a0709 01010101",
        "46000018 00010000 09110000 121a042c 121a0709 00ff0000",
        "47000018 00010000 09110000 121a042c 121a0709 8303040000000000"})
    EXPECT_EQ(outcome(packet), plain_hex(packet));
}

TEST(IPGWOptions, RecordRoute) {
  EXPECT_EQ(outcome("49000024 00010000 09116d4e 121a042c 121a0709 070f0801010101000000000000000001"),
            plain_hex("49000024 00010000 09114e35 121a042c 121a0709 070f0c01010101121a07010000000001"));
  // Full: passes.
  const char* full = "47000018 00010000 09110000 121a042c 121a0709 0707080101010100";
  EXPECT_EQ(outcome(full).substr(40), "0707080101010100");
  // A pointer beyond the option is a full option (RFC 791).
  const char* beyond = "47000018 00010000 09110000 121a042c 121a0709 0707090101010100";
  EXPECT_EQ(outcome(beyond).substr(40), "0707090101010100");
  EXPECT_EQ(outcome("47000018 00010000 09110000 121a042c 121a0709 0707ff0101010100").substr(40), "0707ff0101010100");
  // The pointer lies before the list, or leaves room for part of an address.
  EXPECT_EQ(outcome("47000018 00010000 09110000 121a042c 121a0709 0707030101010100"), "problem at 22");
  EXPECT_EQ(outcome("47000018 00010000 09110000 121a042c 121a0709 0707060101010100"), "problem at 22");
}

TEST(IPGWOptions, Timestamps) {
  EXPECT_EQ(outcome("48000020 00010000 09113658 121a042c 121a0709 440c05000000000000000000"),
            plain_hex("48000020 00010000 091189f6 121a042c 121a0709 440c09000061a80000000000"));
  EXPECT_EQ(outcome("48000020 00010000 09113657 121a042c 121a0709 440c05010000000000000000"),
            plain_hex("48000020 00010000 09116cda 121a042c 121a0709 440c0d01121a07010061a800"));
}

TEST(IPGWOptions, TimestampsOfNamedHosts) {
  EXPECT_EQ(outcome("48000020 00010000 09111b3a 121a042c 121a0709 440c0503121a090100000000"),
            plain_hex("48000020 00010000 09116ad8 121a042c 121a0709 440c0d03121a09010061a800"));
  const char* other = "48000020 00010000 09111b39 121a042c 121a0709 440c0503121a090200000000";
  EXPECT_EQ(outcome(other), plain_hex(other));
}

TEST(IPGWOptions, FullTimestampsCountOverflows) {
  EXPECT_EQ(outcome("4700001c 00010000 09113330 121a042c 121a0709 4408093000000000"),
            plain_hex("4700001c 00010000 09113320 121a042c 121a0709 4408094000000000"));
  EXPECT_EQ(outcome("48000020 00010000 09112e55 121a042c 121a0709 440c0d030000000000000000"),
            plain_hex("48000020 00010000 09112e45 121a042c 121a0709 440c0d130000000000000000"));
  EXPECT_EQ(outcome("4700001c 00010000 09113270 121a042c 121a0709 440809f000000000"), "problem at 23");
  EXPECT_EQ(outcome("48000020 00010000 09112e55 121a042c 121a0709 440c09030000000000000000"), "problem at 22");
}

TEST(IPGWOptions, TimestampsWithRoomForPartOfAnEntryAreBad) {
  // RFC 791: "if there is some room but not enough room for a full timestamp to be inserted, ... in error".
  EXPECT_EQ(outcome("4700001c 00010000 09110000 121a042c 121a0709 4408070000000000"), "problem at 22");
  // 4 bytes left, and an address and a time need 8.
  EXPECT_EQ(outcome("48000020 00010000 09110000 121a042c 121a0709 440c090100000000 00000000"), "problem at 22");
  // A pointer beyond the option: full.
  EXPECT_EQ(outcome("4700001c 00010000 09110000 121a042c 121a0709 4408ff0000000000").substr(40), "4408ff1000000000");
}

TEST(IPGWOptions, BadOptions) {
  EXPECT_EQ(outcome("46000018 00010000 09110000 121a042c 121a0709 44000000"), "problem at 21");  // length 0
  EXPECT_EQ(outcome("46000018 00010000 09110000 121a042c 121a0709 83050000"), "problem at 21");  // beyond the header
  EXPECT_EQ(outcome("46000018 00010000 09110000 121a042c 121a0709 01010107"), "problem at 23");  // length is missing
  EXPECT_EQ(outcome("46000018 00010000 09110000 121a042c 121a0709 07020000"), "problem at 21");  // no pointer
  EXPECT_EQ(outcome("46000018 00010000 09110000 121a042c 121a0709 44030500"), "problem at 21");
  EXPECT_EQ(outcome("46000018 00010000 09110000 121a042c 121a0709 44040400"), "problem at 22");          // pointer
  EXPECT_EQ(outcome("47000018 00010000 09110000 121a042c 121a0709 4408050200000000"), "problem at 23");  // flag 2
  // A good option before the bad one stays as it was, too.
  EXPECT_EQ(outcome("48000020 00010000 09110000 121a042c 121a0709 07070400000000 01 83ff0000"), "problem at 29");
}

TEST(IPGWOptions, HeaderLongerThanThePacketIsDropped) {
  TestRouter r(kOptionsGraph);
  ASSERT_TRUE(r.ok()) << r.errors();
  r.push("m", from_hex("46000014 00010000 09110000 121a042c 121a0709"));
  r.push("m", from_hex("46000018 00010000 09110000 121a042c 121a0709 44000000"));
  EXPECT_EQ(r.read("o.drops"), "1");
  EXPECT_EQ(captured(r, "good").size(), 0u);
  EXPECT_EQ(captured(r, "bad").size(), 1u);
}

}  // namespace
}  // namespace headrace::testing
