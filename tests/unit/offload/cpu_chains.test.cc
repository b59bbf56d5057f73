// Chains compiled for the CPU, where they differ from other carriers: they take over while packets flow, and they have
// shaders in them as constants.

#include "offload/cpu_chains.hh"

#include <fmt/format.h>

#include "flow_elements.hh"
#include "headrace/real_clock.hh"
#include "offload/chain_plans.hh"
#include "offload/cpu_program.hh"
#include "offload_fixture.hh"
#include "packets.hh"
#include "runtime/router_graph.hh"

namespace headrace::testing {
namespace {

class CpuChains : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!why_no_compiler().empty()) GTEST_SKIP() << why_no_compiler();
  }
  static std::unique_ptr<TestRouter> compiled(const std::string& text, int threads = 1) {
    auto r = std::make_unique<TestRouter>(
        text,
        RouterOptions{.offload = {},
                      .compile = {.mode = CompileOptions::Mode::kWait, .file = {}, .shortest = 1, .smallest_batch = 1}},
        threads);
    EXPECT_TRUE(r->ok()) << r->errors();
    return r;
  }
};

TEST_F(CpuChains, AWriteHandlerShowsWithTheNextBatch) {
  const auto r =
      compiled("Idle -> first :: Null -> p :: Paint(1) -> t :: PaintTee(1) -> cap :: Capture; t[1] -> [1] cap;");
  const auto* cap = r->router().first<Capture>();
  inject(*r, "first", {marked("abc", 1, 0)});
  ASSERT_EQ(cap->seen().size(), 2u);
  EXPECT_TRUE(r->write("p.color", "2"));
  inject(*r, "first", {marked("abc", 1, 1)});
  ASSERT_EQ(cap->seen().size(), 3u);
  EXPECT_EQ(cap->seen()[2].packet->anno_u8(anno::paint.kOffset), 2);
  EXPECT_TRUE(r->write("t.color", "2"));
  inject(*r, "first", {marked("abc", 1, 2)});
  EXPECT_EQ(cap->seen().size(), 5u);
  EXPECT_EQ(r->router().cpu_chains()->runs(0), 3u);
}

TEST_F(CpuChains, RoutesChangeBetweenBatches) {
  const auto r = compiled(
      "Idle -> first :: Null -> GetIPAddress(16) -> rt :: DirectIPLookup(1.0.0.0/8 0) -> cap :: Capture; rt[1] -> [1] cap;");
  const std::string packet = udp_frame(1, 0x01020304).substr(14);
  inject(*r, "first", {marked(packet, 1, 0)});
  EXPECT_TRUE(r->write("rt.add", "1.2.0.0/16 1"));
  inject(*r, "first", {marked(packet, 1, 1)});
  EXPECT_TRUE(r->write("rt.flush"));
  inject(*r, "first", {marked(packet, 1, 2)});
  const auto* cap = r->router().first<Capture>();
  ASSERT_EQ(cap->seen().size(), 2u);
  EXPECT_EQ(cap->seen()[0].port, 0);
  EXPECT_EQ(cap->seen()[1].port, 1);
  EXPECT_EQ(r->read("rt.drop_reasons"), "1\tno route\n");
}

/// Packets for a host body are no faster and no slower than others of their flow.
TEST_F(CpuChains, HostBodiesKeepTheOrder) {
  const auto r = compiled("Idle -> first :: Null -> frag :: IPFragmenter(100) -> Paint(3) -> cap :: Capture;");
  std::vector<Packet*> packets;
  std::mt19937 random(3);
  for (uint32_t i = 0; i < 1000; ++i) {
    const uint32_t length = random() % 3 == 0 ? 300 : 90;
    Packet* p = marked(udp_frame(1, 2, 64, length), 1, i);
    p->pull(14);
    p->set_network_header(0, 20);
    packets.push_back(p);
  }
  inject(*r, "first", packets);
  uint32_t last = 0, fragments = 0;
  for (const Capture::Seen& s : r->router().first<Capture>()->seen()) {
    const uint32_t number = s.packet->anno_u32(kNumberAnno);
    ASSERT_GE(number, last);
    ASSERT_LE(number, last + 1);
    fragments += number == last;
    last = number;
  }
  EXPECT_EQ(last, 999u);
  EXPECT_GT(fragments, 500u);
}

/// What a chain sends away may come to it again before it is done.
TEST_F(CpuChains, PacketsThatComeBackWhileAChainRuns) {
  const auto r = compiled(R"(
    Idle -> first :: Null -> check :: CheckIPHeader -> rt :: DirectIPLookup(0.0.0.0/0 0, 10.0.0.0/8 1) -> ttl :: DecIPTTL
      -> cap :: Capture;
    rt[1] -> t2 :: DecIPTTL -> [1] cap;
    ttl[1] -> ICMPError(10.0.0.1, timeexceeded) -> rt; t2[1] -> ICMPError(10.0.0.1, timeexceeded) -> rt;
  )");
  std::vector<Packet*> packets;
  for (uint32_t i = 0; i < 160; ++i) {
    // Every other one expires; the error goes to its source, by the other way.
    Packet* p = marked(udp_frame(0x0a000000 + i, 0x14000000 + i, i % 2 ? 64 : 1), 1 + i, 0);
    p->pull(14);
    packets.push_back(p);
  }
  inject(*r, "first", packets);
  size_t by[2] = {0, 0};
  for (const Capture::Seen& s : r->router().first<Capture>()->seen()) ++by[s.port];
  EXPECT_EQ(by[0], 80u);
  EXPECT_EQ(by[1], 80u);
}

TEST_F(CpuChains, EqualConfigurationsHaveEqualPrograms) {
  // Else nothing would be found in the cache: no address and no undefined byte is part of a program.
  const std::string text =
      "Idle -> c :: Classifier(12/0800, -); c[1] -> Discard; c -> Strip(14) -> CheckIPHeader(INTERFACES 10.0.0.1/24) -> IPGWOptions(1.2.3.4)"
      " -> IPFragmenter(1500) -> EtherEncap(0x0800, 1:1:1:1:1:1, 2:2:2:2:2:2) -> Discard;";
  std::string first;
  for (int i = 0; i < 3; ++i) {
    TestRouter r(text, RouterOptions());
    ASSERT_TRUE(r.ok()) << r.errors();
    const auto& graph = r.router().graph();
    const std::string source = offload::cpu_program_source(
        offload::plan_cpu_chains(Router::Graph::nodes(r.router()), graph.edges, graph.resolved, 2).plans);
    if (i == 0) first = source;
    EXPECT_EQ(source, first);
  }
}

/// Workers change over from one way to the other while packets flow, also after a swap; none is lost or out of order.
TEST_F(CpuChains, TakesOverWhilePacketsFlow) {
  const std::string text = R"(
    src :: FlowSource(FLOWS 50, BURST 32) -> c :: Classifier(12/0800, -) -> Strip(14) -> check :: CheckIPHeader
      -> rt :: IPClassifier(dst net 1.0.0.0/8, -) -> ttl :: DecIPTTL -> n :: Counter -> frag :: IPFragmenter(100)
      -> EtherEncap(0x0800, 1:1:1:1:1:1, 2:2:2:2:2:2) -> sink :: FlowSink; c[1] -> Discard; rt[1] -> [1] sink;
  )";
  OffloadOptions cpu;
  cpu.mode = OffloadOptions::Mode::kCpu;
  LiveRouter r(text, cpu, 2, {.mode = CompileOptions::Mode::kAuto, .file = {}, .shortest = 2, .smallest_batch = 2});
  ASSERT_TRUE(r.ok()) << r.errors();
  const int64_t end = now_ns() + 60'000'000'000;
  int swaps = 0;
  bool all_ready = true;
  r.run([&] {
    const offload::CpuChains* const chains = r.router().cpu_chains();
    if (now_ns() > end) return false;
    if (!chains->ready() || chains->runs(0) < 20) return true;
    if (swaps == 3) return false;
    ++swaps;
    all_ready &= r.swap(text);
    return true;
  });
  EXPECT_EQ(swaps, 3);
  EXPECT_TRUE(all_ready) << r.errors();
  const auto* sink = r.router().first<FlowSink>();
  EXPECT_EQ(sink->missing() + sink->late() + sink->damaged(), 0u);
  EXPECT_EQ(sink->received(), r.router().first<FlowSource>()->sent());
}

}  // namespace
}  // namespace headrace::testing
