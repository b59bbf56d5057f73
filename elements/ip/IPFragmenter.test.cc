#include <algorithm>

#include "headrace/packet_pool.hh"
#include "support/element_test.hh"

namespace headrace::testing {
namespace {

std::string graph(const std::string& arguments) {
  return "Idle -> m :: MarkIPHeader -> f :: IPFragmenter(" + arguments + ") -> c :: Capture; f[1] -> d :: Capture;";
}

constexpr std::string_view kPayload =
    "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f202122232425262728292a2b2c2d2e2f303132333435363738"
    "393a3b";
const std::string kLongUdp = "45000058 00770000 4011771c 01000001 02000002 00010002004492d9" + std::string(kPayload);
const std::string kDontFragment =
    "45000058 00774000 4011371c 01000001 02000002 00010002004492d9" + std::string(kPayload);

TEST(IPFragmenter, SmallPacketsPassUnchanged) {
  TestRouter r(graph("88"));
  ASSERT_TRUE(r.ok()) << r.errors();
  r.push("m", from_hex(kLongUdp));
  EXPECT_EQ(captured(r, "c"), plain_hex({kLongUdp}));
  EXPECT_EQ(r.read("f.fragments"), "0");
}

TEST(IPFragmenter, FragmentsAsOthersDo) {
  for (const char* mtu : {"44", "51"}) {
    TestRouter r(graph(mtu));
    ASSERT_TRUE(r.ok()) << r.errors();
    r.push("m", from_hex(kLongUdp));
    EXPECT_EQ(captured(r, "c"),
              plain_hex({"4500002c00772000 4011574801000001 02000002 00010002004492d9 000102030405060708090a0b0c0d0e0f",
                         "4500002c00772003 4011574501000001 02000002 101112131415161718191a1b1c1d1e1f2021222324252627",
                         "4500002800770006 4011774601000001 02000002 28292a2b2c2d2e2f303132333435363738393a3b"}));
    EXPECT_EQ(r.read("f.fragments"), "3");
  }
}

TEST(IPFragmenter, LastFragmentUsesAllOfTheMtu) {
  // 547 bytes of data, room for 276: 272 and 275, as Linux does it.
  TestRouter r(graph("296"));
  ASSERT_TRUE(r.ok()) << r.errors();
  std::string data;
  for (int i = 0; i < 547; ++i) data += "ab";
  r.push("m", from_hex("45000237 00770000 40110000 01000001 02000002" + data));
  const auto fragments = captured(r, "c");
  ASSERT_EQ(fragments.size(), 2u);
  EXPECT_EQ(fragments[0].size() / 2, 20u + 272);
  EXPECT_EQ(fragments[1].size() / 2, 20u + 275);
  EXPECT_EQ(fragments[1].substr(12, 4), "0022");
}

TEST(IPFragmenter, FragmentsAFragment) {
  TestRouter r(graph("44"));
  ASSERT_TRUE(r.ok()) << r.errors();
  r.push("m", from_hex("45000054007720b9 4011566701000001 02000002" + std::string(kPayload) + "3c3d3e3f"));
  EXPECT_EQ(captured(r, "c"),
            plain_hex({"4500002c007720b9 4011568f01000001 02000002 000102030405060708090a0b0c0d0e0f1011121314151617",
                       "4500002c007720bc 4011568c01000001 02000002 18191a1b1c1d1e1f202122232425262728292a2b2c2d2e2f",
                       "45000024007720bf 4011569101000001 02000002 303132333435363738393a3b3c3d3e3f"}));
}

TEST(IPFragmenter, OptionsWithTheCopyBitAreInEveryFragment) {
  // NOP, record route (not copied), NOP, loose source route (copied).
  const std::string options = "01 070704 00000000 830704 03000003 00";
  TestRouter r(graph("56"));
  ASSERT_TRUE(r.ok()) << r.errors();
  r.push("m", from_hex("49000044 00050000 40110000 01000001 02000002" + options + std::string(kPayload.substr(0, 64))));
  const auto fragments = captured(r, "c");
  ASSERT_EQ(fragments.size(), 2u);
  EXPECT_EQ(fragments[0].substr(0, 16), "4900003400052000");
  EXPECT_EQ(fragments[0].substr(40, 32), plain_hex(options));
  EXPECT_EQ(fragments[0].substr(72), kPayload.substr(0, 32));
  EXPECT_EQ(fragments[1].substr(0, 16), "4700002c00050002");
  EXPECT_EQ(fragments[1].substr(40, 16), "8307040300000300");
  EXPECT_EQ(fragments[1].substr(56), kPayload.substr(32, 32));
}

TEST(IPFragmenter, BadOptionsAreNotCopied) {
  TestRouter r(graph("40, HONOR_DF false"));
  ASSERT_TRUE(r.ok()) << r.errors();
  r.push("m",
         from_hex("4600002c 00110000 4011f4ad 01000001 02000002 82000000 000102030405060708090a0b0c0d0e0f 10111213"));
  EXPECT_EQ(captured(r, "c"),
            plain_hex({"46000028 00112000 4011d4b1 01000001 02000002 82000000 000102030405060708090a0b0c0d0e0f",
                       "45000018 00110002 401177c0 01000001 02000002 10111213"}));
}

TEST(IPFragmenter, HonorsDontFragment) {
  TestRouter r(graph("44"));
  ASSERT_TRUE(r.ok()) << r.errors();
  ::testing::internal::CaptureStderr();
  r.push("m", from_hex(kDontFragment));
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "IPFragmenter(44) DF 1.0.0.1 2.0.0.2 len=88\n");
  EXPECT_EQ(captured(r, "d"), plain_hex({kDontFragment}));
  EXPECT_EQ(r.read("f.drops"), "1");
}

TEST(IPFragmenter, ReportsFiveTimesOrAlways) {
  for (const auto& [arguments, reports] : {std::pair{"44", 5}, {"44, true, true", 7}}) {
    TestRouter r(graph(arguments));
    ASSERT_TRUE(r.ok()) << r.errors();
    ::testing::internal::CaptureStderr();
    for (int i = 0; i < 7; ++i) r.push("m", from_hex(kDontFragment));
    const std::string text = ::testing::internal::GetCapturedStderr();
    EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), reports);
    EXPECT_EQ(r.read("f.drops"), "7");
  }
}

TEST(IPFragmenter, IgnoringDontFragmentMakesNewIdentifications) {
  TestRouter r(graph("44, HONOR_DF false"));
  ASSERT_TRUE(r.ok()) << r.errors();
  r.push("m", from_hex(kDontFragment));
  r.push("m", from_hex(kDontFragment));
  const auto fragments = captured(r, "c");
  ASSERT_EQ(fragments.size(), 6u);
  EXPECT_EQ(fragments[0].substr(8, 4), fragments[1].substr(8, 4));
  EXPECT_NE(fragments[0].substr(8, 4), fragments[3].substr(8, 4));
  EXPECT_EQ(fragments[0].substr(12, 4), "2000");
  EXPECT_EQ(fragments[2].substr(12, 4), "0006");
}

TEST(IPFragmenter, AnnotationsAndFrontBytes) {
  TestRouter r("Idle -> f :: IPFragmenter(44, HEADROOM 64) -> c :: Capture;");
  ASSERT_TRUE(r.ok()) << r.errors();
  const std::string bytes = from_hex("aaaaaaaaaaaa bbbbbbbbbbbb 0800" + kLongUdp);
  Packet* p = Packet::make(bytes.data(), static_cast<uint32_t>(bytes.size()));
  p->set_mac_header();
  p->set_network_header(14, 20);
  p->set_anno_u8(anno_offset::kPaint, 9);
  p->set_timestamp(Timestamp::from_sec(3));
  r.push("f", p);
  const auto& seen = capture(r, "c").seen();
  ASSERT_EQ(seen.size(), 3u);
  EXPECT_EQ(captured(r, "c")[0].substr(0, 36), "aaaaaaaaaaaabbbbbbbbbbbb08004500002c");
  EXPECT_EQ(seen[0].packet->mac_header_offset(), 0);
  EXPECT_EQ(seen[0].packet->network_header_offset(), 14);
  for (const auto& s : seen) {
    EXPECT_EQ(s.packet->anno_u8(anno_offset::kPaint), 9);
    EXPECT_EQ(s.packet->timestamp(), Timestamp::from_sec(3));
    EXPECT_EQ(s.packet->headroom(), 64u);
  }
  EXPECT_FALSE(seen[1].packet->has_mac_header());
  EXPECT_EQ(seen[1].packet->network_header_offset(), 0);
}

TEST(IPFragmenter, LinkPaddingAloneIsCutOff) {
  TestRouter r(graph("88"));
  ASSERT_TRUE(r.ok()) << r.errors();
  r.push("m", from_hex(kLongUdp + "0000"));
  EXPECT_EQ(captured(r, "c"), plain_hex({kLongUdp}));
}

TEST(IPFragmenter, NonsenseIsDropped) {
  TestRouter r("Idle -> m :: MarkIPHeader -> f :: IPFragmenter(44) -> c :: Capture; Idle -> f;");
  ASSERT_TRUE(r.ok()) << r.errors();
  r.push("m", from_hex("45000100" + kLongUdp.substr(8)));            // longer than the packet
  r.push("m", from_hex("45000010" + kLongUdp.substr(8)));            // shorter than its header
  r.push("m", from_hex("44000058" + kLongUdp.substr(8)));            // header too short
  r.push("m", from_hex("45000058 00771fff" + kLongUdp.substr(17)));  // ends beyond 65535
  r.push("f", from_hex(kLongUdp));                                   // no network header
  EXPECT_EQ(captured(r, "c").size(), 0u);
  EXPECT_EQ(r.read("f.drop_reasons"), "5\tbad IP header\n");
}

TEST(IPFragmenter, WithoutABufferForEachFragmentThePacketIsDropped) {
  TestRouter r(graph("44"));
  ASSERT_TRUE(r.ok()) << r.errors();
  for (const size_t buffers : {0u, 1u, 2u, 3u}) {
    const std::string bytes = from_hex(kLongUdp);
    Packet* const p = Packet::make(bytes.data(), static_cast<uint32_t>(bytes.size()));
    std::vector<Packet*> all;
    for (Packet* q; PacketPool::instance().allocate_bulk(&q, 1) == 1;) all.push_back(q);
    for (size_t i = 0; i < buffers; ++i) {
      all.back()->kill();
      all.pop_back();
    }
    r.push("m", p);
    for (Packet* q : all) q->kill();
  }
  EXPECT_EQ(captured(r, "c").size(), 3u) << "those of the last packet";
  EXPECT_EQ(r.read("f.fragments"), "3");
  EXPECT_EQ(r.read("f.drop_reasons"), "3\tno buffer\n");
}

TEST(IPFragmenter, MtuWithoutRoomForData) {
  TestRouter r(graph("27"));
  ASSERT_TRUE(r.ok()) << r.errors();
  ::testing::internal::CaptureStderr();
  r.push("m", from_hex(kLongUdp));
  ::testing::internal::GetCapturedStderr();
  EXPECT_EQ(captured(r, "d").size(), 1u);
  TestRouter small(graph("7"));
  EXPECT_FALSE(small.ok());
  EXPECT_NE(small.errors().find("MTU must be at least 8"), std::string::npos);
}

TEST(IPFragmenter, LargestPacket) {
  TestRouter r(graph("28"));
  ASSERT_TRUE(r.ok()) << r.errors();
  std::string bytes = from_hex("4500ffff 00770000 40110000 01000001 02000002");
  for (int i = 20; i < 65535; ++i) bytes += static_cast<char>(i % 251);
  r.push("m", bytes);
  const Capture& c = capture(r, "c");
  ASSERT_EQ(c.seen().size(), 8190u);
  std::string data;
  for (size_t i = 0; i < c.seen().size(); ++i) data += c.bytes(i).substr(20);
  EXPECT_TRUE(data == bytes.substr(20));
}

}  // namespace
}  // namespace headrace::testing
