#include "elements/ip/IPReassembler.hh"

#include <algorithm>
#include <numeric>
#include <random>
#include <thread>

#include "headrace/checksum.hh"
#include "headrace/packet_pool.hh"
#include "support/element_test.hh"

namespace headrace::testing {
namespace {

// Made with Scapy: a UDP packet and its fragments.
const std::string kWhole =
    "45000058 00770000 4011771c 01000001 02000002 00010002004492d9 000102030405060708090a0b0c0d0e0f"
    "101112131415161718191a1b1c1d1e1f2021222324252627 28292a2b2c2d2e2f303132333435363738393a3b";
const std::string kFragments[] = {
    "4500002c 00772000 40115748 01000001 02000002 00010002004492d9 000102030405060708090a0b0c0d0e0f",
    "4500002c 00772003 40115745 01000001 02000002 101112131415161718191a1b1c1d1e1f2021222324252627",
    "45000028 00770006 40117746 01000001 02000002 28292a2b2c2d2e2f303132333435363738393a3b"};

constexpr std::string_view kReassemblyGraph =
    "Idle -> m :: MarkIPHeader -> r :: IPReassembler -> c :: Capture; r[1] -> late :: Capture;";

/// A fragment with `data` at byte `offset`.
std::string fragment(uint16_t id, int offset, bool more, const std::string& data) {
  std::string bytes = from_hex("45000000 00000000 40110000 01000001 02000002") + data;
  auto& ip = *reinterpret_cast<Ip4Header*>(bytes.data());
  ip.total_length = static_cast<uint16_t>(bytes.size());
  ip.id = id;
  ip.fragment = static_cast<uint16_t>(offset / 8 | (more ? 0x2000 : 0));
  set_ip_checksum(ip);
  return bytes;
}

void push_at(TestRouter& r, const std::string& bytes, int64_t seconds) {
  Packet* p = Packet::make(bytes.data(), static_cast<uint32_t>(bytes.size()));
  p->set_timestamp(Timestamp::from_sec(seconds));
  r.push("m", p);
}

TEST(IPReassembler, AnyOrder) {
  std::vector<int> order = {0, 1, 2};
  do {
    TestRouter r(kReassemblyGraph);
    ASSERT_TRUE(r.ok()) << r.errors();
    for (const int i : order) {
      EXPECT_EQ(captured(r, "c").size(), 0u);
      r.push("m", from_hex(kFragments[i]));
    }
    EXPECT_EQ(captured(r, "c"), plain_hex({kWhole}));
    EXPECT_EQ(capture(r, "c").seen()[0].packet->network_header_length(), 20);
  } while (std::next_permutation(order.begin(), order.end()));
}

TEST(IPReassembler, WholePacketsPass) {
  TestRouter r(kReassemblyGraph);
  ASSERT_TRUE(r.ok()) << r.errors();
  const std::string df = "45000058 00774000" + kWhole.substr(17);
  r.push("m", from_hex(kWhole));
  r.push("m", from_hex(df));
  EXPECT_EQ(captured(r, "c"), plain_hex({kWhole, df}));
}

TEST(IPReassembler, PacketsAreKeptApart) {
  TestRouter r(kReassemblyGraph);
  ASSERT_TRUE(r.ok()) << r.errors();
  // The same but for identification, protocol, source or destination.
  std::vector<std::string> others(4, from_hex(kFragments[1]));
  others[0][5] = 1;
  others[1][9] = 6;
  others[2][15] = 9;
  others[3][19] = 9;
  r.push("m", from_hex(kFragments[0]));
  r.push("m", from_hex(kFragments[2]));
  for (const std::string& other : others) r.push("m", other);
  EXPECT_EQ(captured(r, "c").size(), 0u);
  r.push("m", from_hex(kFragments[1]));
  EXPECT_EQ(captured(r, "c"), plain_hex({kWhole}));
}

TEST(IPReassembler, HeaderAndAnnotationsAreThoseOfTheFirstFragment) {
  TestRouter r("Idle -> m :: MarkIPHeader(14) -> r :: IPReassembler(MAX_MTU_ANNO 8) -> c :: Capture;");
  ASSERT_TRUE(r.ok()) << r.errors();
  const auto push = [&](const std::string& ether, const std::string& hex, int paint) {
    const std::string bytes = from_hex(ether + hex);
    Packet* p = Packet::make(bytes.data(), static_cast<uint32_t>(bytes.size()));
    p->set_mac_header();
    p->set_anno_u8(anno_offset::kPaint, static_cast<uint8_t>(paint));
    r.push("m", p);
  };
  const std::string first_ether = "aaaaaaaaaaaabbbbbbbbbbbb0800", other_ether = "ccccccccccccdddddddddddd0800";
  push(other_ether, kFragments[1], 1);
  // With an option, and another time-to-live.
  push(first_ether,
       "46000030 00772000 20110000 01000001 02000002 01010100 00010002004492d9 000102030405060708090a0b0c0d0e0f", 2);
  push(other_ether, kFragments[2], 3);
  const auto whole = captured(r, "c");
  ASSERT_EQ(whole.size(), 1u);
  EXPECT_EQ(whole[0].substr(0, 28), first_ether);
  EXPECT_EQ(whole[0].substr(28, 20), "4600005c007700002011");
  EXPECT_EQ(whole[0].substr(76), plain_hex("00010002004492d9") + plain_hex(kWhole).substr(56));
  const Packet& p = *capture(r, "c").seen()[0].packet;
  EXPECT_EQ(internet_checksum(p.network_header(), 24), 0);
  EXPECT_EQ(p.mac_header_offset(), 0);
  EXPECT_EQ(p.network_header_offset(), 14);
  EXPECT_EQ(p.anno_u8(anno_offset::kPaint), 2);
  EXPECT_EQ(p.anno_u16(8), 48);
}

TEST(IPReassembler, DuplicatesAreDropped) {
  TestRouter r(kReassemblyGraph);
  ASSERT_TRUE(r.ok()) << r.errors();
  r.push("m", fragment(1, 0, true, "aaaaaaaabbbbbbbb"));
  r.push("m", fragment(1, 16, true, "cccccccc"));
  r.push("m", fragment(1, 0, true, "aaaaaaaabbbbbbbb"));
  r.push("m", fragment(1, 16, true, "cccccccc"));
  r.push("m", fragment(1, 24, false, "ff"));
  ASSERT_EQ(captured(r, "c").size(), 1u);
  EXPECT_EQ(capture(r, "c").bytes(0).substr(20), "aaaaaaaabbbbbbbbccccccccff");
  EXPECT_EQ(r.read("r.drop_reasons"), "2\tduplicate fragment\n");
}

TEST(IPReassembler, OverlapsSpoilThePacket) {
  const struct {
    int offset;
    const char* data;
  } overlaps[] = {{8, "ccccccccdddddddd"}, {0, "eeeeeeee"}, {0, "aaaaaaaabbbbbbbX"}, {8, "bbbbbbbb"}};
  for (const auto& overlap : overlaps) {
    TestRouter r(kReassemblyGraph);
    ASSERT_TRUE(r.ok()) << r.errors();
    push_at(r, fragment(1, 0, true, "aaaaaaaabbbbbbbb"), 1000);
    push_at(r, fragment(1, overlap.offset, true, overlap.data), 1000);
    // Neither these nor the whole packet once more make a packet of it.
    push_at(r, fragment(1, 16, false, "ff"), 1000);
    push_at(r, fragment(1, 0, true, "aaaaaaaabbbbbbbb"), 1000);
    push_at(r, fragment(1, 16, false, "ff"), 1000);
    EXPECT_EQ(captured(r, "c").size(), 0u);
    EXPECT_EQ(r.read("r.drop_reasons"), "5\toverlapping fragments\n");
    // Once that is forgotten the identification may be used again.
    push_at(r, fragment(1, 0, true, "aaaaaaaabbbbbbbb"), 1031);
    push_at(r, fragment(1, 16, false, "ff"), 1031);
    EXPECT_EQ(captured(r, "c").size(), 1u);
    EXPECT_EQ(captured(r, "late").size(), 0u);
    EXPECT_EQ(capture(r, "c").seen().size() + PacketPool::instance().in_use(), 2u);
  }
}

TEST(IPReassembler, TinyFragmentsOfTcp) {
  TestRouter r(kReassemblyGraph);
  ASSERT_TRUE(r.ok()) << r.errors();
  const auto tcp = [](int offset, bool more, const std::string& data) {
    std::string bytes = fragment(1, offset, more, data);
    bytes[9] = 6;
    return bytes;
  };
  r.push("m", tcp(0, true, "portport"));
  r.push("m", tcp(8, true, "sequence"));
  r.push("m", tcp(8, false, "sequence"));
  EXPECT_EQ(r.read("r.drop_reasons"), "3\ttiny fragment\n");
  r.push("m", tcp(0, true, "portportsequence"));
  r.push("m", tcp(16, false, "acknflag"));
  EXPECT_EQ(captured(r, "c").size(), 1u);
}

TEST(IPReassembler, BadFragmentsAreDropped) {
  TestRouter r(kReassemblyGraph);
  ASSERT_TRUE(r.ok()) << r.errors();
  r.push("m", fragment(1, 0, true, "aaaaaaa"));                 // not a multiple of 8
  r.push("m", fragment(1, 8, true, ""));                        // no data
  r.push("m", fragment(1, 65528, false, "12345678"));           // beyond 65535
  r.push("m", fragment(1, 0, true, "12345678").substr(0, 27));  // shorter than it says
  r.push("m", from_hex("4f000018 00012000 40110000 01000001 02000002 00000000"));
  // Fragments that disagree on where the packet ends.
  r.push("m", fragment(2, 8, false, "1234"));
  r.push("m", fragment(2, 16, true, "12345678"));
  r.push("m", fragment(2, 8, false, "12345"));
  r.push("m", fragment(3, 16, true, "12345678"));
  r.push("m", fragment(3, 8, false, "12345678"));
  EXPECT_EQ(r.read("r.drop_reasons"), "8\tbad fragment\n");
  r.push("m", fragment(2, 0, true, "abcdefgh"));
  EXPECT_EQ(capture(r, "c").bytes(0).substr(20), "abcdefgh1234");
  EXPECT_NE(r.read("r.dump").find("bad fragments seen:  8\n"), std::string::npos);
}

TEST(IPReassembler, QuietPacketsAreGivenUp) {
  TestRouter r(kReassemblyGraph);
  ASSERT_TRUE(r.ok()) << r.errors();
  push_at(r, fragment(1, 0, true, "aaaaaaaabbbbbbbb"), 1000);
  push_at(r, fragment(1, 24, true, "dddddddd"), 1010);
  push_at(r, fragment(2, 0, true, "eeeeeeee"), 1035);
  EXPECT_EQ(captured(r, "late").size(), 0u);
  push_at(r, fragment(3, 0, true, "ffffffff"), 1046);
  ASSERT_EQ(captured(r, "late").size(), 1u);
  const std::string late = capture(r, "late").bytes(0);
  EXPECT_EQ(late.substr(20), "aaaaaaaabbbbbbbb" + std::string(8, '\0') + "dddddddd");
  EXPECT_EQ(to_hex(late.substr(0, 9)), "450000340001200040");
  EXPECT_EQ(internet_checksum(late.data(), 20), 0);
  EXPECT_EQ(r.read("r.dump").substr(0, 92),
            "frags seen total:    4\ngood reassemblies:   0\nfailed reassemblies: 1\nbad fragments seen:  0\n");
}

TEST(IPReassembler, TimeGoesOnWithoutPackets) {
  TestRouter r(std::string(kReassemblyGraph) + "Script(wait 5s, stop);" +
               "Idle -> n :: MarkIPHeader -> s :: IPReassembler(TIMEOUT 3) -> c; s[1] -> [1]late;");
  ASSERT_TRUE(r.ok()) << r.errors();
  r.push("n", fragment(1, 0, true, "aaaaaaaa"));
  r.push("n", fragment(2, 16, true, "dddddddd"));
  EXPECT_EQ(r.router().find("s")->held_packets(), 2u);
  r.run();
  ASSERT_EQ(capture(r, "late").seen().size(), 2u);
  EXPECT_EQ(r.router().find("s")->held_packets(), 0u);
  // What begins later in the packet says so, and so gets no ICMP error.
  for (const auto& seen : capture(r, "late").seen()) {
    const Ip4Header& ip = *ip4_header(*seen.packet);
    EXPECT_EQ(seen.packet->length(), 28u);
    EXPECT_EQ(ip.fragment, ip.id == 1 ? 0x2000 : 0x2002);
  }
}

TEST(IPReassembler, AnotherTakesOver) {
  TestRouter r(std::string(kReassemblyGraph) + "Idle -> n :: MarkIPHeader -> s :: IPReassembler -> c;");
  ASSERT_TRUE(r.ok()) << r.errors();
  r.push("m", from_hex(kFragments[0]));
  r.push("m", from_hex(kFragments[1]));
  Errors errors;
  r.router().find("s")->take_state(*r.router().find("r"), errors);
  EXPECT_EQ(r.router().find("r")->held_packets(), 0u);
  EXPECT_EQ(r.router().find("s")->held_packets(), 2u);
  r.push("n", from_hex(kFragments[2]));
  EXPECT_EQ(captured(r, "c"), plain_hex({kWhole}));
}

TEST(IPReassembler, TinyFragmentsDoNotTakeAllBuffers) {
  TestRouter r("Idle -> m :: MarkIPHeader -> r :: IPReassembler(HIMEM 100000000) -> c :: Capture;");
  ASSERT_TRUE(r.ok()) << r.errors();
  const uint32_t most = PacketPool::instance().buffers() / 8;
  for (uint32_t i = 0; i < 2 * most; ++i) r.push("m", fragment(static_cast<uint16_t>(i), 8, true, "12345678"));
  EXPECT_LE(PacketPool::instance().in_use(), most + 1);
  EXPECT_GE(PacketPool::instance().in_use(), most / 4 * 3 - 1);
}

TEST(IPReassembler, MemoryIsBounded) {
  TestRouter r("Idle -> m :: MarkIPHeader -> r :: IPReassembler(HIMEM 4096) -> c :: Capture;");
  ASSERT_TRUE(r.ok()) << r.errors();
  for (int i = 0; i < 1000; ++i)
    push_at(r, fragment(static_cast<uint16_t>(i), 0, true, std::string(88, 'x')), 1000 + i / 100);
  const std::string dump = r.read("r.dump");
  // 128 bytes each: at most 33, and a quarter has gone whenever that is exceeded.
  EXPECT_LE(std::count(dump.begin(), dump.end(), '\n'), 5 + 33);
  EXPECT_GE(std::count(dump.begin(), dump.end(), '\n'), 5 + 24);
  // The newest are still there.
  push_at(r, fragment(999, 88, false, "end"), 1010);
  EXPECT_EQ(captured(r, "c").size(), 1u);
}

TEST(IPReassembler, LargestPacketAndNothingBeyond) {
  TestRouter r(kReassemblyGraph);
  ASSERT_TRUE(r.ok()) << r.errors();
  std::string data;
  for (int i = 0; i < 65515; ++i) data += static_cast<char>(i * 7 % 253);
  for (int offset = 0; offset < 65515; offset += 1480)
    r.push("m", fragment(5, offset, offset + 1480 < 65515, data.substr(static_cast<size_t>(offset), 1480)));
  ASSERT_EQ(captured(r, "c").size(), 1u);
  EXPECT_TRUE(capture(r, "c").bytes(0).substr(20) == data);
  EXPECT_EQ(captured(r, "c")[0].substr(0, 16), "4500ffff00050000");
}

TEST(IPReassembler, FragmenterAndReassemblerAreInverse) {
  std::mt19937 random(1);
  for (int round = 0; round < 50; ++round) {
    const int mtu = 68 + static_cast<int>(random() % 600);
    TestRouter r("Idle -> m :: MarkIPHeader -> IPFragmenter(" + std::to_string(mtu) +
                 ") -> f :: Capture;"
                 "Idle -> r :: IPReassembler -> c :: Capture;");
    ASSERT_TRUE(r.ok()) << r.errors();
    std::string bytes = fragment(static_cast<uint16_t>(round), 0, false, std::string(1 + random() % 5000, '\0'));
    for (size_t i = 20; i < bytes.size(); ++i) bytes[i] = static_cast<char>(random());
    r.push("m", bytes);
    std::vector<size_t> order(capture(r, "f").seen().size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::shuffle(order.begin(), order.end(), random);
    for (const size_t i : order) {
      EXPECT_LE(capture(r, "f").bytes(i).size(), static_cast<size_t>(mtu));
      r.push("r", capture(r, "f").seen()[i].packet->clone());
    }
    ASSERT_EQ(capture(r, "c").seen().size(), 1u);
    EXPECT_TRUE(capture(r, "c").bytes(0) == bytes);
  }
}

}  // namespace
}  // namespace headrace::testing
