// Chains compiled for the CPU, where they differ from other carriers: they take over while packets flow, and they have
// shaders in them as constants.

#include "offload/cpu_chains.hh"

#include <fmt/format.h>

#include <functional>

#include "flow_elements.hh"
#include "headrace/checksum.hh"
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
  /// \param smallest chains, in elements, and batches that are compiled
  static std::unique_ptr<TestRouter> compiled(const std::string& text, int threads = 1, int smallest = 1) {
    auto r = std::make_unique<TestRouter>(text,
                                          RouterOptions{.offload = {},
                                                        .compile = {.mode = CompileOptions::Mode::kWait,
                                                                    .file = {},
                                                                    .shortest = smallest,
                                                                    .smallest_batch = smallest}},
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

/// Programs of classifiers are part of the source, until another one is written.
TEST_F(CpuChains, AClassifierIsReplaced) {
  const auto r = compiled(
      "Idle -> first :: Null -> c :: Classifier(0/61, 0/62 2/64%f0 3/65, -) -> cap :: Capture; c[1] -> [1] cap; c[2] -> [2] cap;");
  const auto ports = [&] {
    const size_t before = r->router().first<Capture>()->seen().size();
    inject(*r, "first",
           {marked("abc", 1, 0), marked("bcde", 1, 1), marked("bcfe", 1, 2), marked("bcd", 1, 3), marked("x", 1, 4),
            marked("", 1, 5)});
    std::string by_number(6, '?');
    const auto& seen = r->router().first<Capture>()->seen();
    for (size_t i = before; i < seen.size(); ++i)
      by_number[seen[i].packet->anno_u32(kNumberAnno)] = static_cast<char>('0' + seen[i].port);
    return by_number;
  };
  EXPECT_EQ(ports(), "011222");
  EXPECT_TRUE(r->write("c.config", "0/62, 0/61, -"));
  EXPECT_EQ(ports(), "100022");
  EXPECT_TRUE(r->write("c.config", "0/61, 0/62 2/64%f0 3/65, -"));
  EXPECT_EQ(ports(), "011222");
}

/// Random filters and packets, of any length, give the same as code and as tables.
TEST_F(CpuChains, ClassifiersAsCodeAndAsTables) {
  std::mt19937 random(7);
  const auto any = [&](std::initializer_list<const char*> of) { return *(of.begin() + random() % of.size()); };
  std::string text = "Idle -> first :: Null -> MarkIPHeader -> c0 :: Null;\ncap :: Capture;\n";
  constexpr int kFilters = 12;
  std::vector<std::string> filters;
  for (int f = 0; f < kFilters; ++f) {
    std::string rules;
    for (int rule = 0; rule < 6; ++rule) {
      rules += fmt::format("{} ", any({"allow", "deny", "drop"}));
      for (int term = 0, n = 1 + static_cast<int>(random() % 3); term < n; ++term)
        rules += fmt::format(
            "{}{}", term ? any({" && ", " || "}) : "",
            any({"src net 10.0.0.0/9", "dst host 1.2.3.4", "udp", "tcp dst port 80", "src port 53", "ip ttl < 5",
                 "ip frag", "dst net 1.0.0.0/8", "not icmp", "ip proto 17", "dst port 1000-2000"}));
      rules += ", ";
    }
    filters.push_back(rules + any({"allow all", "deny all"}));
    text += fmt::format("c{} -> c{} :: IPFilter({});\n", f, f + 1, filters.back());
  }
  text += fmt::format("c{} -> cap;\n", kFilters);
  const auto r = compiled(text);
  std::vector<std::string> packets;
  for (int i = 0; i < 400; ++i) {
    std::string p = udp_frame(random() % 2 ? 0x0a000000 + random() % 4 * 0x400000 : random(),
                              random() % 2 ? 0x01020304 : random(), static_cast<uint8_t>(random() % 8))
                        .substr(14);
    p[9] = any({"\x11", "\x06", "\x01"})[0];
    if (random() % 4 == 0) p.resize(20 + random() % 20);
    packets.push_back(p);
  }
  const auto passed = [&] {
    const size_t before = r->router().first<Capture>()->seen().size();
    std::vector<Packet*> batch;
    for (size_t i = 0; i < packets.size(); ++i) batch.push_back(marked(packets[i], 1, static_cast<uint32_t>(i)));
    inject(*r, "first", batch);
    std::vector<uint32_t> numbers;
    const auto& seen = r->router().first<Capture>()->seen();
    for (size_t i = before; i < seen.size(); ++i) numbers.push_back(seen[i].packet->anno_u32(kNumberAnno));
    return numbers;
  };
  const std::vector<uint32_t> as_code = passed();
  std::string counted;
  for (int f = 1; f <= kFilters; ++f) counted += r->read(fmt::format("c{}.drop_reasons", f));
  for (int f = 1; f <= kFilters; ++f)
    EXPECT_TRUE(r->write(fmt::format("c{}.config", f), filters[static_cast<size_t>(f - 1)]));
  EXPECT_EQ(passed(), as_code);
  EXPECT_NE(counted, "");
}

/// The program that is made of a configuration.
std::string source_of(TestRouter& r) {
  const auto& graph = r.router().graph();
  return offload::cpu_program_source(
      offload::plan_cpu_chains(Router::Graph::nodes(r.router()), graph.edges, graph.resolved, 2).plans);
}

/// Lets `first` receive batches whose packets go three ways to Capture, or have none: each is there once, in order, and all
/// without a way are counted by `rt`.
/// \param frame  the bytes of a packet for a way; 7: that has none
void expect_divided(TestRouter& r, const std::function<std::string(uint32_t way)>& frame) {
  const auto* cap = r.router().first<Capture>();
  uint64_t dropped = 0;
  for (const uint32_t size : {1u, 2u, 3u, 4u, 7u, 64u, 255u})
    // Numbers of packets before the one without a way; the last: all have one.
    for (const uint32_t odd : {0u, 3u, 6u, 200u, size}) {
      const size_t before = cap->seen().size();
      std::vector<Packet*> packets;
      for (uint32_t i = 0; i < size; ++i) packets.push_back(marked(frame(i == odd ? 7 : (i * i + size) % 3), 1, i));
      inject(r, "first", packets);
      dropped += odd < size;
      std::map<int, uint32_t> last;
      ASSERT_EQ(cap->seen().size() - before, size - (odd < size)) << size << " " << odd;
      for (size_t i = before; i < cap->seen().size(); ++i) {
        const Capture::Seen& s = cap->seen()[i];
        const uint32_t number = s.packet->anno_u32(kNumberAnno);
        EXPECT_EQ(s.port, static_cast<int>((number * number + size) % 3)) << size << " " << odd;
        EXPECT_EQ(s.packet->anno_u8(anno::paint.kOffset), 10 + s.port);
        EXPECT_TRUE(last.find(s.port) == last.end() || last[s.port] < number) << size << " " << odd;
        last[s.port] = number;
      }
    }
  EXPECT_EQ(r.read("rt.drop_reasons"), fmt::format("{}\tno route\n", dropped));
}

/// A lookup that works on whole batches: when all have a way, and when some have none.
TEST_F(CpuChains, ABatchDividesAmongEqualWays) {
  const auto r = compiled(
      "Idle -> first :: Null -> GetIP6Address(0) -> rt :: LookupIP6Route(2001::/16 0, 2002::/16 1, 2003::/16 2);"
      "rt[0] -> Paint(10) -> cap :: Capture; rt[1] -> Paint(11) -> [1] cap; rt[2] -> Paint(12) -> [2] cap;");
  EXPECT_NE(source_of(*r).find("compiled::all_below(nexts, in.size(), 3)"), std::string::npos);
  expect_divided(
      *r, [](uint32_t way) { return std::string("\x20", 1) + static_cast<char>(1 + way) + std::string(14, '\1'); });
}

/// A lookup packet by packet whose ways are unlike, so that it fills a list for each. No store of a packet may wait for the
/// lookup of the one before.
TEST_F(CpuChains, ALookupChoosesForAllBeforeItDealsThemOut) {
  const auto r = compiled(
      "Idle -> first :: Null -> GetIPAddress(0) -> rt :: DirectIPLookup(1.0.0.0/8 0, 2.0.0.0/8 9.9.9.9 1, 3.0.0.0/8 2);"
      "rt[0] -> Paint(10) -> cap :: Capture; rt[1] -> Null -> Paint(11) -> [1] cap;"
      "rt[2] -> Paint(12) -> Null -> [2] cap;");
  EXPECT_NE(source_of(*r).find("    *next_to++ = compiled::shade(rt_"), std::string::npos);
  expect_divided(*r, [](uint32_t way) { return static_cast<char>(1 + way) + std::string(15, '\1'); });
}

/// Equal ways begin where a loop begins, behind other steps of a loop, and behind other equal ways.
TEST_F(CpuChains, EqualWaysBeginAnywhere) {
  const std::pair<const char*, int> kChains[] = {
      {"Idle -> first :: Classifier(0/01%01, -) -> q0 :: Counter -> cap :: Capture; first[1] -> q1 :: Counter -> [1] cap;",
       2},
      {"Idle -> first :: Null -> Paint(3) -> t :: Classifier(0/01%01, -) -> q0 :: Counter -> cap :: Capture;"
       " t[1] -> q1 :: Counter -> [1] cap;",
       2},
      {"Idle -> first :: Strip(0) -> p :: PaintTee(9) -> q :: Counter -> cap :: Capture; p[1] -> c :: Counter -> [1] cap;",
       1},
      {"Idle -> first :: Null -> t :: Classifier(0/02%02, -); cap :: Capture;"
       " t[0] -> Paint(1) -> t0 :: Classifier(0/01%01, -); t[1] -> Paint(2) -> t1 :: Classifier(0/01%01, -);"
       " t0[0] -> q0 :: Counter -> cap; t0[1] -> q1 :: Counter -> [1] cap;"
       " t1[0] -> q2 :: Counter -> [2] cap; t1[1] -> q3 :: Counter -> [3] cap;",
       4},
  };
  for (const auto& [text, ways] : kChains) {
    const auto r = compiled(text);
    ASSERT_TRUE(r->router().cpu_chains()->ready()) << r->router().cpu_chains()->describe();
    std::vector<Packet*> packets;
    for (uint32_t i = 0; i < 300; ++i)
      packets.push_back(marked(std::string(20, static_cast<char>(i * i + i / 3)), 1, i));
    inject(*r, "first", packets);
    const auto& seen = r->router().first<Capture>()->seen();
    ASSERT_EQ(seen.size(), 300u) << text;
    std::map<int, uint32_t> last;
    for (const Capture::Seen& s : seen) {
      const uint32_t number = s.packet->anno_u32(kNumberAnno);
      EXPECT_EQ(s.port, (~(number * number + number / 3) & 3) % static_cast<uint32_t>(ways)) << text;
      EXPECT_TRUE(last.find(s.port) == last.end() || last[s.port] < number) << text;
      last[s.port] = number;
    }
    EXPECT_EQ(last.size(), static_cast<size_t>(ways));
    EXPECT_GT(r->router().cpu_chains()->runs(0), 0u);
  }
}

/// Ways that differ only in values share their code, and nothing else.
TEST_F(CpuChains, EqualWaysKeepTheirOwnValues) {
  const std::string way = R"(
    rt[{0}] -> p{0} :: Paint({1}) -> t{0} :: DecIPTTL -> f{0} :: IPFragmenter({2}) -> b{0} :: DropBroadcasts -> [{0}] cap;
    t{0}[1] -> [{3}] cap;
  )";
  std::string text =
      "Idle -> first :: Null -> GetIPAddress(16) -> rt :: DirectIPLookup(1.0.0.0/8 0, 2.0.0.0/8 1, 3.0.0.0/8 2); cap :: Capture;";
  for (int w = 0; w < 3; ++w) text += fmt::format(fmt::runtime(way), w, 10 + w, 100 * (w + 1), 3 + w);
  const auto r = compiled(text);
  {
    const auto& graph = r->router().graph();
    const std::string source = offload::cpu_program_source(
        offload::plan_cpu_chains(Router::Graph::nodes(r->router()), graph.edges, graph.resolved, 2).plans);
    EXPECT_NE(source.find("// t0, t1, t2 :: DecIPTTL()"), std::string::npos);
  }
  const auto* cap = r->router().first<Capture>();
  const auto send = [&] {
    std::vector<Packet*> packets;
    for (uint32_t i = 0; i < 60; ++i) {
      // To way i % 3; of each way, some expire, some are fragments then, some broadcasts, some have no way.
      Packet* p = marked(udp_frame(7, (i % 4 + 1) << 24, i / 4 % 5 == 0 ? 1 : 64, i / 4 % 5 == 1 ? 264 : 90), 1, i);
      p->pull(14);
      p->set_network_header(0, 20);
      if (i / 4 % 5 == 2) p->set_packet_type(PacketType::kBroadcast);
      packets.push_back(p);
    }
    inject(*r, "first", packets);
  };
  send();
  // 15 packets a way: 3 expire, 3 need 3, 2 or 1 fragments of 100, 200, 300 bytes, 3 are broadcasts.
  size_t by[6] = {};
  for (const Capture::Seen& s : cap->seen()) {
    ++by[s.port];
    EXPECT_EQ(s.packet->anno_u8(anno::paint.kOffset), 10 + s.port % 3);
    EXPECT_EQ(s.packet->anno_u32(kNumberAnno) % 4, static_cast<uint32_t>(s.port % 3));
  }
  for (int w = 0; w < 3; ++w) EXPECT_EQ(by[3 + w], 3u);
  EXPECT_GT(by[0], by[1]);
  EXPECT_GT(by[1], by[2]);
  EXPECT_EQ(by[2], 9u);
  for (int w = 0; w < 3; ++w) {
    EXPECT_EQ(r->read(fmt::format("b{}.drop_reasons", w)), "3\tlink broadcast or multicast\n");
    EXPECT_EQ(r->read(fmt::format("t{}.drop_reasons", w)), "");
  }
  EXPECT_EQ(r->read("rt.drop_reasons"), "15\tno route\n");
  // One way changes.
  EXPECT_TRUE(r->write("t1.active", "false"));
  EXPECT_TRUE(r->write("p2.color", "77"));
  const size_t before = cap->seen().size();
  send();
  size_t now[6] = {}, painted = 0;
  for (size_t i = before; i < cap->seen().size(); ++i) {
    ++now[cap->seen()[i].port];
    painted += cap->seen()[i].packet->anno_u8(anno::paint.kOffset) == 77;
  }
  EXPECT_EQ(now[0], by[0]);
  EXPECT_EQ(now[1], by[1] + 3);
  EXPECT_EQ(now[4], 0u);
  EXPECT_EQ(now[2], by[2]);
  EXPECT_EQ(painted, now[2] + now[5]);
}

/// Which annotation a shader looks at is part of the program where all ways to it agree.
TEST_F(CpuChains, WaysMayTestUnlikeAnnotations) {
  for (const auto& [annotations, known] : {std::pair(std::array{20, 20}, true), std::pair(std::array{20, 21}, false),
                                           std::pair(std::array{16, 16}, true)}) {
    const auto r = compiled(fmt::format(
        "Idle -> first :: Null -> GetIPAddress(16) -> rt :: DirectIPLookup(1.0.0.0/8 0, 2.0.0.0/8 1); cap :: Capture;"
        "rt[0] -> t0 :: PaintTee(7, {}) -> [0] cap; t0[1] -> [2] cap; rt[1] -> t1 :: PaintTee(7, {}) -> [1] cap;"
        "t1[1] -> [3] cap;",
        annotations[0], annotations[1]));
    EXPECT_EQ(source_of(*r).find(fmt::format("offset == {}", annotations[0])) != std::string::npos, known);
    std::vector<Packet*> packets;
    size_t expected[4] = {};
    for (uint32_t i = 0; i < 60; ++i) {
      Packet* p = marked(udp_frame(7, (i % 2 + 1) << 24, 64, 90).substr(14), 1, i);
      p->set_network_header(0, 20);
      p->set_anno_u8(16, i % 3 == 0 ? 7 : 8);
      p->set_anno_u8(20, i % 5 == 0 ? 7 : 8);
      p->set_anno_u8(21, i % 7 == 0 ? 7 : 8);
      ++expected[i % 2];
      expected[2 + i % 2] += p->anno_u8(annotations[i % 2]) == 7;
      packets.push_back(p);
    }
    inject(*r, "first", packets);
    size_t by[4] = {};
    for (const Capture::Seen& seen : r->router().first<Capture>()->seen()) ++by[seen.port];
    for (int port = 0; port < 4; ++port) EXPECT_EQ(by[port], expected[port]) << port;
    EXPECT_EQ(r->router().cpu_chains()->runs(0), 1u);
  }
}

/// Where headers are is held by a chain from when a shader needs or sets it: by all ways to a shader, rare ones too.
TEST_F(CpuChains, HeadersStayWhereTheyAre) {
  const std::string text = R"(
    Idle -> first :: Null -> Strip(14) -> CheckIPHeader(INTERFACES 10.0.0.1/24) -> Paint(1)
      -> ttl :: DecIPTTL -> e :: EtherEncap(0x0800, 2:0:0:0:0:1, 2:0:0:0:0:2) -> Unstrip(4) -> Strip(4)
      -> HostEtherFilter(2:0:0:0:0:2) -> Strip(14) -> CheckIPHeader -> IPFragmenter(1500) -> Unstrip(14) -> cap :: Capture;
    ttl[1] -> [1] cap;
  )";
  TestRouter plain(text);
  ASSERT_TRUE(plain.ok()) << plain.errors();
  const auto chain = compiled(text);
  ASSERT_TRUE(chain->router().cpu_chains()->ready()) << chain->router().cpu_chains()->describe();
  ::testing::internal::CaptureStderr();
  for (TestRouter* r : {&plain, chain.get()}) {
    std::vector<Packet*> packets;
    for (uint32_t i = 0; i < 256; ++i) {
      // Few have options, a source that a filter does not refuse at once, a time to live that ends, or no room in front.
      const uint32_t source = i % 7 == 0 ? 0x0a0000ff + (i % 2) * 0x100 : 0x01020304;
      std::string frame = udp_frame(source, 0x05060708 + i, i % 11 == 0 ? 1 : 64, 60 + i % 4);
      if (i % 5 == 0) {
        frame.insert(14 + 20, std::string(4, '\1'));
        frame[14] = 0x46;
        auto* const ip = reinterpret_cast<Ip4Header*>(frame.data() + 14);
        ip->total_length = static_cast<uint16_t>(ip->total_length + 4);
        set_ip_checksum(*ip);
        frame += "padding";
      }
      Packet* const p = marked(frame, 1, i);
      if (i % 13 == 0) {
        EXPECT_TRUE(p->shift_to(0));
      }
      packets.push_back(p);
    }
    inject(*r, "first", packets);
  }
  ::testing::internal::GetCapturedStderr();
  const auto& expected = plain.router().first<Capture>()->seen();
  const auto& seen = chain->router().first<Capture>()->seen();
  ASSERT_GT(expected.size(), 200u);
  ASSERT_EQ(seen.size(), expected.size());
  std::map<uint32_t, const Capture::Seen*> by_number;
  for (const Capture::Seen& s : expected) by_number[s.packet->anno_u32(kNumberAnno)] = &s;
  for (const Capture::Seen& s : seen) {
    const Capture::Seen& as = *by_number.at(s.packet->anno_u32(kNumberAnno));
    EXPECT_EQ(s.port, as.port);
    EXPECT_EQ(s.packet->length(), as.packet->length());
    EXPECT_EQ(s.packet->mac_header_offset(), as.packet->mac_header_offset());
    EXPECT_EQ(s.packet->network_header_offset(), as.packet->network_header_offset());
    EXPECT_EQ(s.packet->network_header_length(), as.packet->network_header_length());
    EXPECT_EQ(s.packet->packet_type(), as.packet->packet_type());
    EXPECT_EQ(0, std::memcmp(s.packet->data(), as.packet->data(), as.packet->length()));
  }
}

/// More lists than a loop holds the ends of.
TEST_F(CpuChains, ALoopFillsManyLists) {
  constexpr int kOutputs = 20;
  std::string text = "Idle -> first :: Null -> c :: Classifier(";
  for (int i = 0; i < kOutputs; ++i) text += fmt::format("{}0/{:02x}", i ? ", " : "", i);
  text += "); cap :: Capture;";
  for (int i = 0; i < kOutputs; ++i) text += fmt::format("c[{0}] -> Paint({0}) -> [{0}] cap;", i);
  const auto r = compiled(text);
  ASSERT_TRUE(r->router().cpu_chains()->ready()) << r->router().cpu_chains()->describe();
  std::vector<Packet*> packets;
  for (uint32_t i = 0; i < 250; ++i) packets.push_back(marked(std::string(20, static_cast<char>(i % 25)), 1, i));
  inject(*r, "first", packets);
  const auto& seen = r->router().first<Capture>()->seen();
  EXPECT_EQ(seen.size(), 200u);
  for (const Capture::Seen& s : seen) {
    EXPECT_EQ(s.packet->anno_u32(kNumberAnno) % 25, static_cast<uint32_t>(s.port));
    EXPECT_EQ(s.packet->anno_u8(anno::paint.kOffset), s.port);
  }
  EXPECT_EQ(r->read("c.drop_reasons"), "50\tno pattern matches\n");
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
  // The same program, compiled before: where all processors are busy a compiler, which gives way to all else, may take a
  // minute.
  compiled(text, 2, 2);
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
  EXPECT_EQ(swaps, 3) << r.router().cpu_chains()->describe();
  EXPECT_TRUE(all_ready) << r.errors();
  EXPECT_NE(r.router().cpu_chains()->describe().find("kept in"), std::string::npos)
      << r.router().cpu_chains()->describe();
  const auto* sink = r.router().first<FlowSink>();
  EXPECT_EQ(sink->missing() + sink->late() + sink->damaged(), 0u);
  EXPECT_EQ(sink->received(), r.router().first<FlowSource>()->sent());
}

}  // namespace
}  // namespace headrace::testing
