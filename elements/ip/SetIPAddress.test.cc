#include "support/element_test.hh"

namespace headrace::testing {
namespace {

TEST(SetIPAddress, SetsTheAnnotation) {
  TestRouter r("Idle -> s :: SetIPAddress(1.2.3.4) -> c :: Capture; Idle -> t :: SetIPAddress(5.6.7.8, ANNO 4) -> c;");
  ASSERT_TRUE(r.ok()) << r.errors();
  r.push("s", "x");
  r.push("t", "x");
  EXPECT_TRUE(r.write("s.addr", "9.9.9.9"));
  EXPECT_EQ(r.read("s.addr"), "9.9.9.9");
  r.push("s", "x");
  const auto& seen = capture(r, "c").seen();
  EXPECT_EQ(IpAddress::from_bytes(seen[0].packet->anno()).unparse(), "1.2.3.4");
  EXPECT_EQ(IpAddress::from_bytes(seen[1].packet->anno() + 4).unparse(), "5.6.7.8");
  EXPECT_EQ(IpAddress::from_bytes(seen[2].packet->anno()).unparse(), "9.9.9.9");
}

TEST(SetRandIPAddress, StaysInItsPrefix) {
  TestRouter r(
      "Idle -> s :: SetRandIPAddress(10.1.2.0/24) -> c :: Capture; Idle -> t :: SetRandIPAddress(10.1.0.0/16, 3) -> d "
      ":: Capture;");
  ASSERT_TRUE(r.ok()) << r.errors();
  std::vector<IpAddress> all, few;
  const auto note = [](std::vector<IpAddress>& list, const Packet& p) {
    const IpAddress a = IpAddress::from_bytes(p.anno());
    if (std::find(list.begin(), list.end(), a) == list.end()) list.push_back(a);
  };
  for (int i = 0; i < 200; ++i) {
    r.push("s", "x");
    r.push("t", "x");
    note(all, *capture(r, "c").seen().back().packet);
    note(few, *capture(r, "d").seen().back().packet);
  }
  for (const IpAddress a : all) EXPECT_EQ(a.unparse().substr(0, 7), "10.1.2.");
  EXPECT_GT(all.size(), 50u);
  EXPECT_LE(few.size(), 3u);
  EXPECT_GE(few.size(), 2u);
}

}  // namespace
}  // namespace headrace::testing
