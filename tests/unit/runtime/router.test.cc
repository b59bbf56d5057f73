#include "headrace/router.hh"

#include <gtest/gtest.h>

#include "headrace/packet_pool.hh"
#include "support/element_test.hh"

namespace headrace::testing {
namespace {

void push_numbered(TestRouter& r, const char* element, int n) {
  Batch batch;
  for (int i = 0; i < n; ++i) {
    Packet* p = Packet::make(20);
    std::memset(p->data(), 0, 20);
    p->data()[0] = static_cast<uint8_t>(i % 3);
    p->data()[1] = static_cast<uint8_t>(i);
    batch.push_back(p);
  }
  r.router().find(element)->push(0, batch);
}

TEST(Router, ABatchSplitsByNextAndKeepsItsOrder) {
  TestRouter r(
      "Idle -> c :: Classifier(0/00, 0/01, -); c[0] -> a :: Capture; c[1] -> b :: Capture; c[2] -> d :: Capture;");
  ASSERT_TRUE(r.ok()) << r.errors();
  push_numbered(r, "c", 256);
  size_t all = 0;
  for (const char* name : {"a", "b", "d"}) {
    const Capture& c = capture(r, name);
    all += c.seen().size();
    for (size_t i = 1; i < c.seen().size(); ++i)
      ASSERT_LT(c.seen()[i - 1].packet->data()[1], c.seen()[i].packet->data()[1]) << name;
  }
  EXPECT_EQ(all, 256u);
}

TEST(Router, APushCycleIsCutAndCounted) {
  TestRouter r("Idle -> p :: Paint(1) -> q :: Paint(2) -> p;");
  ASSERT_TRUE(r.ok()) << r.errors();
  const uint32_t before = PacketPool::instance().in_use();
  r.push("p", std::string(20, 'x'));
  EXPECT_EQ(PacketPool::instance().in_use(), before);
  ASSERT_EQ(r.router().drops().size(), 1u);
  EXPECT_EQ(r.router().drops()[0].reason, "loop");
  EXPECT_EQ(r.router().drops()[0].packets, 1u);
}

TEST(Router, ProfileCountsPacketsAndBatchesOfEachElement) {
  TestRouter r("Idle -> n :: Paint(1) -> p :: Paint(2) -> c :: Capture;", 1, true);
  ASSERT_TRUE(r.ok()) << r.errors();
  push_numbered(r, "n", 10);
  push_numbered(r, "n", 6);
  const ElementProfile profile = r.router().profile(r.router().find("p"));
  EXPECT_EQ(profile.packets, 16u);
  EXPECT_EQ(profile.batches, 2u);
  EXPECT_GT(profile.cycles, 0u);
}

TEST(Router, NamesAreLookedUpInTheCompoundFirst) {
  TestRouter r("x :: Idle -> Idle; c :: { x :: Idle -> Idle; y :: Idle -> Idle; };");
  ASSERT_TRUE(r.ok()) << r.errors();
  Element* inner = r.router().find("c/y");
  ASSERT_NE(inner, nullptr);
  EXPECT_EQ(r.router().find("x", inner)->name(), "c/x");
  EXPECT_EQ(r.router().find("x")->name(), "x");
  EXPECT_EQ(r.router().find("y"), nullptr);
}

TEST(Router, EveryErrorOfARunIsReported) {
  TestRouter r("a :: Paint(300);\nb :: Strip(x);\nIdle -> a -> b -> Idle;");
  EXPECT_FALSE(r.ok());
  EXPECT_NE(r.errors().find("config:1: While configuring 'a :: Paint':"), std::string::npos) << r.errors();
  EXPECT_NE(r.errors().find("config:2: While configuring 'b :: Strip':"), std::string::npos) << r.errors();
  EXPECT_NE(r.errors().find("Router could not be initialized!"), std::string::npos) << r.errors();
}

TEST(Router, AnUnknownClassIsNamedWithASuggestion) {
  TestRouter r("Idle -> DecIPTLL -> Idle;");
  EXPECT_FALSE(r.ok());
  EXPECT_NE(r.errors().find("config:1: unknown element class 'DecIPTLL' (did you mean 'DecIPTTL'?)"), std::string::npos)
      << r.errors();
}

TEST(Router, StandardHandlersAnswer) {
  TestRouter r("i :: Idle -> p :: Paint(1) -> Idle;");
  ASSERT_TRUE(r.ok()) << r.errors();
  EXPECT_EQ(r.read("p.name"), "p");
  EXPECT_EQ(r.read("p.class"), "Paint");
  EXPECT_EQ(r.read("p.config"), "1");
  EXPECT_EQ(r.read("list").substr(0, 2), "3\n");
  EXPECT_NE(r.read("p.handlers").find("config\t"), std::string::npos);
  EXPECT_TRUE(r.write("p.config", "7"));
  EXPECT_EQ(r.read("p.config"), "7");
  EXPECT_FALSE(r.write("p.config", "700"));
  EXPECT_EQ(r.read("p.config"), "7");
}

}  // namespace
}  // namespace headrace::testing
