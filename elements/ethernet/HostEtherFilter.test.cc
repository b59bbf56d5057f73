#include "support/element_test.hh"

namespace headrace::testing {
namespace {

const std::string kMine = "020000000001", kOther = "020000000002", kSource = "0a0000000003";

std::string frame(const std::string& to, const std::string& from = kSource) { return from_hex(to + from + "0800"); }

TEST(HostEtherFilter, SetsThePacketType) {
  TestRouter r("Idle -> f :: HostEtherFilter(2:0:0:0:0:1, DROP_OTHER false) -> c :: Capture;");
  ASSERT_TRUE(r.ok()) << r.errors();
  for (const std::string& to :
       {kMine, std::string("ffffffffffff"), std::string("01005e000001"), kOther, std::string("ffffffffff00")})
    r.push("f", frame(to));
  std::vector<PacketType> types;
  for (const auto& seen : capture(r, "c").seen()) types.push_back(seen.packet->packet_type());
  EXPECT_EQ(types, (std::vector<PacketType>{PacketType::kHost, PacketType::kBroadcast, PacketType::kMulticast,
                                            PacketType::kOtherHost, PacketType::kMulticast}));
}

TEST(HostEtherFilter, FiltersOtherHostsAndOwnPackets) {
  TestRouter r(
      "Idle -> f :: HostEtherFilter(2:0:0:0:0:1) -> c :: Capture; f[1] -> d :: Capture;"
      "Idle -> g :: HostEtherFilter(2:0:0:0:0:1, true) -> c;");
  ASSERT_TRUE(r.ok()) << r.errors();
  r.push("f", frame(kOther));
  r.push("f", frame(kOther, kMine));
  r.push("f", frame(kMine, kMine));
  r.push("f", frame(kMine).substr(0, 13));
  r.push("g", frame(kMine, kMine));
  EXPECT_EQ(captured(r, "d").size(), 3u);
  EXPECT_EQ(captured(r, "c").size(), 1u);
  EXPECT_EQ(r.read("g.drop_reasons"), "1\town packet\n");
  EXPECT_EQ(r.read("f.ether"), "02-00-00-00-00-01");
  EXPECT_TRUE(r.write("f.ether", "2:0:0:0:0:2"));
  r.push("f", frame(kOther));
  EXPECT_EQ(captured(r, "c").size(), 2u);
}

TEST(HostEtherFilter, HeaderAtAnOffset) {
  TestRouter r("Idle -> f :: HostEtherFilter(2:0:0:0:0:1, OFFSET 2) -> c :: Capture;");
  ASSERT_TRUE(r.ok()) << r.errors();
  r.push("f", from_hex("0000") + frame(kMine));
  r.push("f", from_hex("00") + frame(kMine));
  EXPECT_EQ(captured(r, "c").size(), 1u);
  EXPECT_EQ(r.read("f.drop_reasons"), "1\tno Ethernet header\n");
}

TEST(EtherMirror, ExchangesTheAddresses) {
  TestRouter r("Idle -> m :: EtherMirror -> c :: Capture;");
  ASSERT_TRUE(r.ok()) << r.errors();
  r.push("m", frame(kMine));
  r.push("m", frame(kMine).substr(0, 11));
  EXPECT_EQ(captured(r, "c"), plain_hex({kSource + kMine + "0800"}));
  EXPECT_EQ(r.read("m.drop_reasons"), "1\tno Ethernet header\n");
}

}  // namespace
}  // namespace headrace::testing
