#include "elements/ip6/IP6Reassembler.hh"

#include <algorithm>

#include "support/element_test.hh"

namespace headrace::testing {
namespace {

// Made with Scapy: a UDP packet with a header of destination options in front of the fragment header, and its fragments.
const std::string kEnds6 = "20010db800000000000000000000000120010db8000000000000000000000002";
const std::string kWhole6 =
    "60000000004c3c40" + kEnds6 +
    "1100010400000000 0001000200443a67 000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"
    "202122232425262728292a2b2c2d2e2f303132333435363738393a3b";
const std::string kFirst6 =
    "6000000000383c40" + kEnds6 +
    "2c00010400000000 1100000111223344 0001000200443a67 000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f";
const std::string kLast6 = "60000000002c3c40" + kEnds6 +
                           "2c00010400000000 1100002811223344 202122232425262728292a2b2c2d2e2f303132333435363738393a3b";

constexpr std::string_view kGraph6 =
    "Idle -> m :: MarkIP6Header -> r :: IP6Reassembler -> c :: Capture; r[1] -> late :: Capture;";

/// A fragment of a packet for protocol 59 or `next`.
std::string fragment6(int offset, bool more, const std::string& data, uint32_t id = 7, uint8_t next = 253) {
  return plain_hex(fmt::format("60000000{:04x}2c40{}{:02x}00{:04x}{:08x}", 8 + data.size(), kEnds6, next,
                               offset | (more ? 1 : 0), id)) +
         plain_hex(to_hex(data));
}
std::string whole6(const std::string& data, uint8_t next = 253) {
  return plain_hex(fmt::format("60000000{:04x}{:02x}40{}", data.size(), next, kEnds6)) + plain_hex(to_hex(data));
}

class IP6ReassemblerElement : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(r_.ok()) << r_.errors(); }
  void push(const std::string& hex) { r_.push("m", from_hex(hex)); }
  std::vector<std::string> came() { return captured(r_, "c"); }
  std::string drops() { return r_.read("r.drop_reasons"); }

  TestRouter r_{std::string(kGraph6)};
};

TEST_F(IP6ReassemblerElement, ScapysFragmentsInAnyOrder) {
  push(kFirst6);
  EXPECT_TRUE(came().empty());
  push(kLast6);
  push(kLast6);
  push(kFirst6);
  EXPECT_EQ(came(), plain_hex({kWhole6, kWhole6}));
  EXPECT_EQ(capture(r_, "c").seen()[0].packet->network_header_length(), 48);
}

TEST_F(IP6ReassemblerElement, WholePacketsPass) {
  push(kWhole6);
  push(whole6("not a fragment"));
  EXPECT_EQ(came(), plain_hex({kWhole6, whole6("not a fragment")}));
}

TEST_F(IP6ReassemblerElement, PacketsAreKeptApart) {
  const std::string data(16, 'd');
  push(fragment6(0, true, data, 1));
  push(fragment6(16, false, data, 2));
  std::string other = fragment6(16, false, data, 1);
  other[47] = '9';  // the source
  push(other);
  EXPECT_TRUE(came().empty());
  push(fragment6(16, false, data, 1, 17));  // the next header of later fragments does not count
  EXPECT_EQ(came(), std::vector{whole6(data + data)});
}

TEST_F(IP6ReassemblerElement, AtomicFragmentsAreTakenByThemselves) {
  const std::string part(16, 'p');
  push(fragment6(0, true, part));
  push(fragment6(0, false, "a whole packet"));
  push(fragment6(0, false, ""));
  EXPECT_EQ(came(), (std::vector{whole6("a whole packet"), whole6("")}));
  // They change nothing for the fragments with their identification (RFC 6946, 4).
  push(fragment6(16, false, "end"));
  EXPECT_EQ(came().back(), whole6(part + "end"));
}

TEST_F(IP6ReassemblerElement, FragmentsThatOverlapDropThePacket) {
  push(fragment6(0, true, std::string(24, 'a')));
  push(fragment6(0, true, std::string(24, 'a')));  // the same again is no overlap
  push(fragment6(16, true, std::string(16, 'b')));
  push(fragment6(24, false, std::string(8, 'c')));
  push(fragment6(0, false, "another packet, in one piece"));
  EXPECT_EQ(came(), std::vector{whole6("another packet, in one piece")});
  EXPECT_EQ(drops(), "3\toverlapping fragments\n1\tduplicate fragment\n");
}

TEST_F(IP6ReassemblerElement, MalformedFragmentsAreDropped) {
  push(fragment6(0, true, std::string(17, 'a')));        // not a multiple of 8
  push(fragment6(0xfff8, false, std::string(16, 'a')));  // beyond 65,535 bytes
  push(fragment6(8, false, ""));
  std::string cut = fragment6(0, true, std::string(16, 'a'));
  push(cut.substr(0, cut.size() - 8));
  EXPECT_EQ(drops(), "4\tbad fragment\n");
  // Not all headers (RFC 7112): half a TCP header; options without what follows them.
  push(fragment6(0, true, std::string(16, 'a'), 7, 6));
  push(fragment6(0, true, std::string("\x11\1\0\0\0\0\0\0", 8) + std::string(8, '\0'), 7, 60));
  EXPECT_EQ(drops(), "4\tbad fragment\n2\ttiny fragment\n");
  EXPECT_TRUE(came().empty());
}

TEST_F(IP6ReassemblerElement, WhatDoesNotBecomeCompleteLeavesAsAFragment) {
  const auto push_at = [this](const std::string& hex, int64_t seconds) {
    const std::string bytes = from_hex(hex);
    Packet* p = Packet::make(bytes.data(), static_cast<uint32_t>(bytes.size()));
    p->set_timestamp(Timestamp::from_sec(seconds));
    r_.push("m", p);
  };
  push_at(fragment6(0, true, std::string(16, 'a')), 1);
  push_at(fragment6(24, true, std::string(8, 'b')), 1);
  push_at(fragment6(0, true, std::string(16, 'x'), 99), 100);
  EXPECT_EQ(captured(r_, "late"),
            std::vector{fragment6(0, true, std::string(16, 'a') + std::string(8, '\0') + std::string(8, 'b'))});
  EXPECT_NE(r_.read("r.dump").find("(2001:db8::1, 30840, 2001:db8::2, 30840) 99 (0,16)"), std::string::npos)
      << r_.read("r.dump");
}

TEST_F(IP6ReassemblerElement, MemoryIsBounded) {
  TestRouter small("Idle -> m :: MarkIP6Header -> r :: IP6Reassembler(HIMEM 4096) -> c :: Capture;");
  ASSERT_TRUE(small.ok()) << small.errors();
  for (uint32_t id = 0; id < 100; ++id) small.push("m", from_hex(fragment6(0, true, std::string(160, 'a'), id)));
  // 20 of 200 bytes each fit, and one more finds the room full.
  const std::string dump = small.read("r.dump");
  EXPECT_LE(std::count(dump.begin(), dump.end(), '('), 2 * 21);
  EXPECT_NE(small.read("r.drop_reasons").find("no room for more fragments"), std::string::npos);
}

}  // namespace
}  // namespace headrace::testing
