#include "elements/ip/DirectIPLookup.hh"

#include <random>

#include "elements/ip/ip4_routes.hh"
#include "support/element_test.hh"

namespace headrace::testing {
namespace {

constexpr std::string_view kGraph =
    "Idle -> d :: GetIPAddress(0) -> rt :: DirectIPLookup(1.0.0.0/8 0, 1.2.0.0/16 9.9.9.9 1, 1.2.3.4/32 2);"
    "rt[0] -> a :: Capture; rt[1] -> b :: Capture; rt[2] -> c :: Capture;";

TEST(DirectIPLookup, TheLongestPrefixDecides) {
  TestRouter r(kGraph);
  ASSERT_TRUE(r.ok()) << r.errors();
  for (const char* dst : {"01090909", "01020909", "01020304", "02000000"}) r.push("d", from_hex(dst));
  ASSERT_EQ(capture(r, "a").seen().size(), 1u);
  ASSERT_EQ(capture(r, "b").seen().size(), 1u);
  ASSERT_EQ(capture(r, "c").seen().size(), 1u);
  // A gateway becomes the destination annotation; without one the address stays.
  EXPECT_EQ(capture(r, "b").seen()[0].packet->anno_u32(anno_offset::kDstIp), 0x09090909u);
  EXPECT_EQ(capture(r, "a").seen()[0].packet->anno_u32(anno_offset::kDstIp), __builtin_bswap32(0x01090909u));
  EXPECT_EQ(r.read("rt.drop_reasons"), "1\tno route\n");
}

TEST(DirectIPLookup, AnyAddressMayBeAGateway) {
  TestRouter r(
      "Idle -> d :: GetIPAddress(0) -> rt :: DirectIPLookup(1.0.0.0/8 255.255.255.255 1, 1.2.0.0/16 0.0.0.1 0);"
      "rt[0] -> a :: Capture; rt[1] -> b :: Capture;");
  ASSERT_TRUE(r.ok()) << r.errors();
  for (const char* dst : {"01090909", "02000000", "01020909", "00000000"}) r.push("d", from_hex(dst));
  ASSERT_EQ(capture(r, "a").seen().size(), 1u);
  ASSERT_EQ(capture(r, "b").seen().size(), 1u);
  EXPECT_EQ(capture(r, "a").seen()[0].packet->anno_u32(anno_offset::kDstIp), 0x01000000u);
  EXPECT_EQ(capture(r, "b").seen()[0].packet->anno_u32(anno_offset::kDstIp), 0xffffffffu);
  EXPECT_EQ(r.read("rt.drop_reasons"), "2\tno route\n");
}

TEST(IPLookups, EveryClassAnswersAlike) {
  for (const char* lookup : {"LinearIPLookup", "RadixIPLookup", "RangeIPLookup", "SortedIPLookup", "StaticIPLookup"}) {
    SCOPED_TRACE(lookup);
    std::string graph(kGraph);
    graph.replace(graph.find("DirectIPLookup"), 14, lookup);
    TestRouter r(graph);
    ASSERT_TRUE(r.ok()) << r.errors();
    for (const char* dst : {"01090909", "01020909", "01020304", "02000000"}) r.push("d", from_hex(dst));
    EXPECT_EQ(captured(r, "a"), plain_hex({"01090909"}));
    ASSERT_EQ(captured(r, "b"), plain_hex({"01020909"}));
    EXPECT_EQ(captured(r, "c"), plain_hex({"01020304"}));
    EXPECT_EQ(capture(r, "b").seen()[0].packet->anno_u32(anno_offset::kDstIp), 0x09090909u);
    EXPECT_EQ(r.read("rt.drop_reasons"), "1\tno route\n");
  }
}

TEST(DirectIPLookup, HandlersListLookUpAndChange) {
  TestRouter r(kGraph);
  ASSERT_TRUE(r.ok()) << r.errors();
  EXPECT_EQ(r.read("rt.table"), "1.0.0.0/8\t\t-\t\t0\n1.2.0.0/16\t\t9.9.9.9\t\t1\n1.2.3.4/32\t\t-\t\t2\n");
  EXPECT_EQ(r.read("rt.lookup 1.2.3.5"), "1 9.9.9.9");
  EXPECT_EQ(r.read("rt.lookup 1.2.3.4"), "2");
  EXPECT_EQ(r.read("rt.lookup 7.7.7.7"), "-1");
  EXPECT_TRUE(r.write("rt.add", "7.0.0.0/8 1"));
  EXPECT_EQ(r.read("rt.lookup 7.7.7.7"), "1");
  EXPECT_FALSE(r.write("rt.add", "7.0.0.0/8 2"));
  EXPECT_NE(r.errors().find("conflict with existing route '7.0.0.0/8 - 1'"), std::string::npos) << r.errors();
  EXPECT_TRUE(r.write("rt.set", "7.0.0.0/8 2"));
  EXPECT_EQ(r.read("rt.lookup 7.7.7.7"), "2");
  EXPECT_FALSE(r.write("rt.remove", "7.0.0.0/9"));
  EXPECT_TRUE(r.write("rt.remove", "7.0.0.0/8"));
  EXPECT_EQ(r.read("rt.lookup 7.7.7.7"), "-1");
}

TEST(DirectIPLookup, AFailedGroupOfCommandsChangesNothing) {
  TestRouter r(kGraph);
  ASSERT_TRUE(r.ok()) << r.errors();
  const std::string before = r.read("rt.table");
  EXPECT_FALSE(r.write("rt.ctrl", "add 5.0.0.0/8 0\nremove 1.2.3.4/32\nset 1.0.0.0/8 2\nadd 1.2.0.0/16 0\n"));
  EXPECT_EQ(r.read("rt.table"), before);
  EXPECT_TRUE(r.write("rt.ctrl", "add 5.0.0.0/8 0\nremove 1.2.3.4/32\n"));
  EXPECT_EQ(r.read("rt.count"), "3");
}

TEST(DirectIPLookup, BadArgumentsAreAllNamed) {
  TestRouter r("Idle -> rt :: DirectIPLookup(1.0.0.0/8, 1.0.0.0/8 7, x 0, FILE /nonexistent/routes) -> Idle;");
  EXPECT_FALSE(r.ok());
  EXPECT_NE(r.errors().find("config:1: While configuring 'rt :: DirectIPLookup':\n"), std::string::npos) << r.errors();
  EXPECT_NE(r.errors().find("argument 1 should be 'ADDR/MASK [GATEWAY] OUTPUT'"), std::string::npos) << r.errors();
  EXPECT_NE(r.errors().find("argument 2 bad OUTPUT"), std::string::npos) << r.errors();
  EXPECT_NE(r.errors().find("argument 3 should be"), std::string::npos) << r.errors();
  EXPECT_NE(r.errors().find("/nonexistent/routes"), std::string::npos) << r.errors();
}

}  // namespace
}  // namespace headrace::testing
