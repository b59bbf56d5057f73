#include "elements/ip6/LookupIP6Route.hh"

#include <random>

#include "elements/ip6/ip6_routes.hh"
#include "support/element_test.hh"

namespace headrace::testing {
namespace {

constexpr std::string_view kGraph =
    "Idle -> d :: GetIP6Address(0) -> rt :: LookupIP6Route(2001:db8::/32 0, 2001:db8:1::/48 2001:db8::9 1,"
    " 2001:db8:1::1/128 ::0 2);"
    "rt[0] -> a :: Capture; rt[1] -> b :: Capture; rt[2] -> c :: Capture;";

std::string annotation(TestRouter& r, const char* name) {
  return Ip6Address::from_bytes(capture(r, name).seen().at(0).packet->anno() + anno_offset::kDstIp6).unparse();
}

TEST(LookupIP6Route, TheLongestPrefixDecides) {
  TestRouter r(kGraph);
  ASSERT_TRUE(r.ok()) << r.errors();
  for (const char* dst : {"20010db8000200000000000000000001", "20010db8000100000000000000000002",
                          "20010db8000100000000000000000001", "20010db9000000000000000000000001"})
    r.push("d", from_hex(dst));
  for (const char* name : {"a", "b", "c"}) ASSERT_EQ(capture(r, name).seen().size(), 1u);
  // A gateway becomes the destination annotation; without one the address stays.
  EXPECT_EQ(annotation(r, "a"), "2001:db8:2::1");
  EXPECT_EQ(annotation(r, "b"), "2001:db8::9");
  EXPECT_EQ(annotation(r, "c"), "2001:db8:1::1");
  EXPECT_EQ(r.read("rt.drop_reasons"), "1\tno route\n");
}

TEST(LookupIP6Route, HandlersListLookUpAndChange) {
  TestRouter r(kGraph);
  ASSERT_TRUE(r.ok()) << r.errors();
  EXPECT_EQ(r.read("rt.table"),
            "2001:db8::/32\t\t\t-\t\t0\n2001:db8:1::/48\t\t\t2001:db8::9\t1\n2001:db8:1::1/128\t\t-\t\t2\n");
  EXPECT_EQ(r.read("rt.count"), "3");
  EXPECT_EQ(r.read("rt.lookup 2001:db8:1::5"), "1 2001:db8::9");
  EXPECT_EQ(r.read("rt.lookup 2001:db8:1::1"), "2");
  EXPECT_EQ(r.read("rt.lookup fe80::1"), "-1");
  EXPECT_TRUE(r.write("rt.add", "fe80::/10 1"));
  EXPECT_EQ(r.read("rt.lookup fe80::1"), "1");
  EXPECT_FALSE(r.write("rt.add", "fe80::/10 2"));
  EXPECT_NE(r.errors().find("conflict with existing route 'fe80::/10 - 1'"), std::string::npos) << r.errors();
  EXPECT_TRUE(r.write("rt.set", "fe80::/10 fe80::5 2"));
  EXPECT_EQ(r.read("rt.lookup fe80::1"), "2 fe80::5");
  EXPECT_FALSE(r.write("rt.remove", "fe80::/11"));
  EXPECT_FALSE(r.write("rt.remove", "fe80::/10 fe80::5 1"));
  EXPECT_TRUE(r.write("rt.remove", "fe80::/10 fe80::5 2"));
  EXPECT_EQ(r.read("rt.lookup fe80::1"), "-1");
  EXPECT_TRUE(r.write("rt.flush"));
  EXPECT_EQ(r.read("rt.count"), "0");
}

TEST(LookupIP6Route, AFailedGroupOfCommandsChangesNothing) {
  TestRouter r(kGraph);
  ASSERT_TRUE(r.ok()) << r.errors();
  const std::string before = r.read("rt.table");
  EXPECT_FALSE(
      r.write("rt.ctrl", "add 5::/16 0\nremove 2001:db8:1::1/128\nset 2001:db8::/32 2\nadd 2001:db8:1::/48 0"));
  EXPECT_EQ(r.read("rt.table"), before);
  EXPECT_TRUE(r.write("rt.ctrl", "add 5::/16 0\nremove 2001:db8:1::1/128\n"));
  EXPECT_EQ(r.read("rt.count"), "3");
}

TEST(LookupIP6Route, BadArgumentsAreAllNamed) {
  TestRouter r("Idle -> rt :: LookupIP6Route(1::/8, 1::/8 7, x 0, FILE /nonexistent/routes) -> Idle;");
  EXPECT_FALSE(r.ok());
  for (const char* text :
       {"config:1: While configuring 'rt :: LookupIP6Route':\n", "argument 1 should be 'ADDR/MASK [GATEWAY] OUTPUT'",
        "argument 2 bad OUTPUT", "argument 3 should be", "/nonexistent/routes"})
    EXPECT_NE(r.errors().find(text), std::string::npos) << r.errors();
}

// The body for whole batches and the one for a single packet are the same function to a user.
TEST(LookupIP6Route, BothBodiesGiveTheSameAnswers) {
  RouteTable<Ip6Family> owner;
  Errors errors;
  struct FourOutputs final : NameScope {
    int noutputs() const override { return 4; }
  } scope;
  std::vector<std::string> arguments;
  std::mt19937_64 random(7);
  const auto draw = [&] {
    // Few different addresses, so that they meet routes.
    const uint64_t words[2] = {0x20 | (random() & 0x0703'0000'0000'0f00), random() & 0x0f00'0000'0000'0000};
    return Ip6Address::from_bytes(words);
  };
  for (int i = 0; i < 5000; ++i) {
    const Ip6Prefix prefix{draw(), 4 + static_cast<int>(random() % 125)};
    arguments.push_back(Ip6Prefix{prefix.network(), prefix.length}.unparse() +
                        (i % 3 ? " fe80::" + std::to_string(i % 200) : std::string()) + " " + std::to_string(i % 4));
  }
  Args args(std::move(arguments), &scope, errors);
  ASSERT_TRUE(owner.configure(args).ok()) << errors.str();
  LookupIP6Route shader{};
  shader.refresh(owner);
  int found = 0;
  for (int round = 0; round < 50; ++round) {
    Packet* one[100];
    Packet* all[100];
    for (int i = 0; i < 100; ++i) {
      one[i] = Packet::make(20);
      all[i] = Packet::make(20);
      const Ip6Address dst = draw();
      dst.copy_to(one[i]->anno() + anno_offset::kDstIp6);
      dst.copy_to(all[i]->anno() + anno_offset::kDstIp6);
    }
    Next nexts[100];
    uint64_t batch_events[1] = {0}, events[1] = {0};
    shader.shade_batch(all, 100, nexts, batch_events);
    for (int i = 0; i < 100; ++i) {
      CpuView<LookupIP6Route> view(one[i], events);
      EXPECT_EQ(shader.shade(view), nexts[i]);
      EXPECT_EQ(std::memcmp(one[i]->anno(), all[i]->anno(), Packet::kAnnoSize), 0);
      found += nexts[i] != kDrop;
      one[i]->kill();
      all[i]->kill();
    }
    EXPECT_EQ(batch_events[0], events[0]);
  }
  EXPECT_GT(found, 1000);
}

TEST(GetIP6Address, FromAnOffset) {
  TestRouter r("Idle -> g :: GetIP6Address(2) -> c :: Capture;");
  ASSERT_TRUE(r.ok()) << r.errors();
  r.push("g", from_hex("ffff20010db8000000000000000000000001"));
  EXPECT_EQ(annotation(r, "c"), "2001:db8::1");
  r.push("g", from_hex("ffff20010db80000000000000000000000"));
  EXPECT_EQ(capture(r, "c").seen()[1].packet->anno_u64(anno_offset::kDstIp6), 0u);
  EXPECT_FALSE(TestRouter("Idle -> GetIP6Address -> Idle;").ok());
  EXPECT_FALSE(TestRouter("Idle -> GetIP6Address(-1) -> Idle;").ok());
}

TEST(SetIP6Address, SetsTheAnnotation) {
  TestRouter r("Idle -> s :: SetIP6Address(2001:db8::7) -> c :: Capture;");
  ASSERT_TRUE(r.ok()) << r.errors();
  r.push("s", "x");
  EXPECT_EQ(annotation(r, "c"), "2001:db8::7");
  EXPECT_TRUE(r.write("s.addr", "fe80::1"));
  EXPECT_EQ(r.read("s.addr"), "fe80::1");
  EXPECT_FALSE(r.write("s.addr", "1.2.3.4"));
  EXPECT_FALSE(TestRouter("Idle -> SetIP6Address -> Idle;").ok());
}

}  // namespace
}  // namespace headrace::testing
