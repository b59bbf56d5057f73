// What a handler changes holds for the next packet, on every carrier; and shaders that break the rules are found.

#include <fmt/format.h>

#include "flow_elements.hh"
#include "offload_fixture.hh"
#include "packets.hh"
#include "support/element_test.hh"
#include "test_shaders.hh"

namespace headrace::testing {
namespace {

class OffloadUpdate : public OffloadTest {
 protected:
  /// Sends one packet and returns where it came out, with its bytes.
  std::pair<int, std::string> send(TestRouter& r, const std::string& bytes) {
    const Capture& cap = capture(r, "cap");
    const size_t before = cap.seen().size();
    inject(r, "first", {marked(bytes, 1, 0)});
    r.router().drain();
    if (cap.seen().size() != before + 1) return {-1, ""};
    return {cap.seen().back().port, cap.bytes(before)};
  }
};
HEADRACE_OFFLOAD_CARRIERS(OffloadUpdate);

TEST_P(OffloadUpdate, TheNextPacketSeesIt) {
  const auto r = make(R"(
Idle -> first :: Classifier(12/0800, -) -> Strip(14) -> CheckIPHeader
  -> rt :: RadixIPLookup(0.0.0.0/0 0) -> ttl :: DecIPTTL -> e :: EtherEncap(0x0800, 1:1:1:1:1:1, 2:2:2:2:2:2)
  -> cap :: Capture;
first[1] -> [1] cap; rt[1] -> p :: Paint(0) -> [2] cap; ttl[1] -> [3] cap;
)");
  ASSERT_TRUE(r->ok());
  const std::string frame = udp_frame(0x01020304, 0x05060708), last = udp_frame(0x01020304, 0x05060708, 1);
  EXPECT_EQ(send(*r, frame).first, 0);
  EXPECT_EQ(send(*r, last).first, 3);
  // Devices have several copies of the tables in turn. Without one, routes for all addresses take ThreadSanitizer long.
  const int rounds = on_cpu() ? 2 : 6;
  for (int round = 0; round < rounds; ++round) {
    ASSERT_TRUE(r->write("rt.add", "5.6.0.0/16 9.9.9.9 1")) << r->errors();
    EXPECT_EQ(send(*r, frame).first, 2);
    EXPECT_EQ(capture(*r, "cap").seen().back().packet->anno_u32(anno_offset::kDstIp), 0x09090909u);
    ASSERT_TRUE(r->write("p.color", std::to_string(round + 10)));
    EXPECT_EQ(send(*r, frame).first, 2);
    EXPECT_EQ(capture(*r, "cap").seen().back().packet->anno_u8(anno_offset::kPaint), round + 10);
    ASSERT_TRUE(r->write("rt.add", "5.6.7.8/32 0")) << r->errors();
    EXPECT_EQ(send(*r, frame).first, 0);
    ASSERT_TRUE(r->write("rt.set", "5.6.7.8/32 1"));
    EXPECT_EQ(send(*r, frame).first, 2);
    ASSERT_TRUE(r->write("rt.remove", "5.6.7.8/32"));
    ASSERT_TRUE(r->write("rt.remove", "5.6.0.0/16"));
    EXPECT_EQ(send(*r, frame).first, 0);
    ASSERT_TRUE(r->write("ttl.active", "false"));
    EXPECT_EQ(send(*r, last).first, 0);
    ASSERT_TRUE(r->write("ttl.active", "true"));
    EXPECT_EQ(send(*r, last).first, 3);
    const std::string mac = fmt::format("02:00:00:00:00:{:02x}", round);
    ASSERT_TRUE(r->write("e.dst", mac));
    EXPECT_EQ(to_hex(send(*r, frame).second.substr(0, 6)), fmt::format("0200000000{:02x}", round));
    // A classifier made anew, also one that looks at more than travels, or at more than a device may.
    for (const char* offset : {"14/45", "50/78", "62/78", "63/7878"}) {
      ASSERT_TRUE(r->write("first.config", fmt::format("{}, -", offset))) << r->errors();
      EXPECT_EQ(send(*r, frame).first, std::string_view(offset) == "63/7878" ? 1 : 0) << offset;
    }
    ASSERT_TRUE(r->write("first.config", "14/46, -"));
    EXPECT_EQ(send(*r, frame).first, 1);
    ASSERT_TRUE(r->write("first.config", "12/0800, -"));
    ASSERT_TRUE(r->write("rt.flush", ""));
    EXPECT_EQ(send(*r, frame).first, -1);
    ASSERT_TRUE(r->write("rt.add", "0.0.0.0/0 0"));
    EXPECT_EQ(send(*r, frame).first, 0);
  }
}

TEST_P(OffloadUpdate, ManyRoutes) {
  const auto r = make(
      "Idle -> first :: Strip(14) -> CheckIPHeader -> rt :: DirectIPLookup(0.0.0.0/0 0) -> cap :: Capture;"
      "rt[1] -> [1] cap; rt[2] -> [2] cap;");
  ASSERT_TRUE(r->ok());
  std::mt19937 random(7);
  std::string commands;
  for (int i = 0; i < 3000; ++i)
    commands +=
        fmt::format("set 16.{}.{}.{}/{} {}\n", random() % 2, random() % 256, 0, 17 + random() % 8, random() % 3);
  ASSERT_TRUE(r->write("rt.ctrl", commands)) << r->errors();
  for (int i = 0; i < 400; ++i) {
    const uint32_t address = 0x10000000 + (random() & 0x1ffff);
    const std::string found =
        r->read(fmt::format("rt.lookup 16.{}.{}.{}", address >> 16 & 255, address >> 8 & 255, address & 255));
    EXPECT_EQ(std::to_string(send(*r, udp_frame(0x01020304, address)).first), found.substr(0, 1)) << found;
  }
}

/// A handler that a worker calls while its own jobs are under way.
TEST_P(OffloadUpdate, AWorkerThatChangesTables) {
  OffloadOptions o = options();
  o.reference.delay_us = 1000;
  o.job = 16;
  LiveRouter r(R"(
src :: FlowSource(FLOWS 20, BURST 4) -> Strip(14) -> check :: CheckIPHeader -> rt :: RadixIPLookup(0.0.0.0/0 0)
  -> ttl :: DecIPTTL -> sink :: FlowSink; rt[1] -> [1] sink;
Script(set n 0, label again, write rt.set 1.0.0.0/8 0, write rt.set 3.0.0.0/8 0, set n $(add $n 1), goto again $(lt $n 20),
       write stop);
)",
               o, 2);
  ASSERT_TRUE(r.ok()) << r.errors();
  int writes = 0;
  // At the same time the control thread changes something, so that both kinds of update meet.
  r.run([&] {
    EXPECT_TRUE(r.write("rt.set", "2.0.0.0/8 1")) << r.errors();
    EXPECT_TRUE(r.write("ttl.active", "true")) << r.errors();
    ++writes;
    return r.router().run_count() > 0;
  });
  const auto* sink = r.router().first<FlowSink>();
  EXPECT_EQ(sink->received(), r.router().first<FlowSource>()->sent());
  EXPECT_EQ(sink->late() + sink->missing(), 0u);
  if (on_cpu()) return;
  EXPECT_EQ(r.engine()->describe().find("failed"), std::string::npos) << r.engine()->describe();
}

// --- Shaders that break the rules

TEST_P(OffloadUpdate, AShaderThatWritesTooEarlyIsFound) {
  if (!emulated()) GTEST_SKIP() << "the host looks for it";
  const auto r = make("Idle -> first :: OffloadRash(10) -> second :: OffloadRash(100) -> cap :: Capture;");
  inject(*r, "first", {marked(std::string(200, 'x'), 1, 0)});
  r->router().drain();
  EXPECT_NE(r->router().engine()->describe().find("fault: second :: OffloadRash wrote or counted before"),
            std::string::npos)
      << r->router().engine()->describe();
}

TEST_P(OffloadUpdate, AnUndeclaredAccessIsFound) {
  if (!emulated()) GTEST_SKIP() << "the host looks for it";
  const auto r = make(
      "Idle -> first :: OffloadSly(15) -> second :: OffloadSly(16) -> Strip(14) -> CheckIPHeader "
      "-> cap :: Capture;");
  inject(*r, "first", {marked(std::string(200, 'x'), 1, 0)});
  r->router().drain();
  EXPECT_NE(r->router().engine()->describe().find("fault: second :: OffloadSly used bytes"), std::string::npos)
      << r->router().engine()->describe();
}

TEST_P(OffloadUpdate, AnAnnotationThatIsNotSetIsFound) {
  if (!emulated()) GTEST_SKIP() << "the host looks for it";
  const auto r = make("Idle -> first :: OffloadForgetful -> cap :: Capture;");
  inject(*r, "first", {marked(std::string(60, 'x'), 1, 0)});
  r->router().drain();
  EXPECT_EQ(r->router().engine()->describe().find("fault"), std::string::npos);
  inject(*r, "first", {marked(std::string(60, '\0'), 1, 1)});
  r->router().drain();
  EXPECT_NE(r->router().engine()->describe().find("fault: first :: OffloadForgetful did not write an annotation"),
            std::string::npos)
      << r->router().engine()->describe();
}

TEST_P(OffloadUpdate, RightShadersAreNotBlamed) {
  if (!emulated()) GTEST_SKIP() << "the host looks for it";
  const auto r = make(
      "Idle -> first :: Classifier(12/0800, -) -> Strip(14) -> CheckIPHeader -> IPClassifier(tcp or udp port 53)"
      " -> IPGWOptions(1.2.3.4) -> DecIPTTL -> FixIPSrc(1.2.3.4) -> GetIPAddress(16) -> cap :: Capture;"
      "first[1] -> HostEtherFilter(1:1:1:1:1:1) -> [1] cap;");
  ASSERT_TRUE(r->ok());
  inject(*r, "first", RandomPackets(9).make(3000));
  r->router().drain();
  EXPECT_EQ(r->router().engine()->describe().find("fault"), std::string::npos) << r->router().engine()->describe();
}

std::string shader_that(const char* regions, const char* body) {
  return fmt::format(R"(#include "headrace/shader.hh"
namespace headrace {{
struct Sly : Shader<Sly> {{
  static constexpr auto kRegions = regions({});
  HEADRACE_SHADER Next shade(auto& p) const {{ {} return 0; }}
}};
struct Rows {{ HEADRACE_SHADER static constexpr RowLayout row() {{ return {{64, 1, 0, 32}}; }} }};
Next run(const Sly& s, Slot& slot) {{ return shade_slot(s, slot, Rows{{}}, 0); }}
}}
)",
                     regions, body);
}

TEST(OffloadDeclarations, AnUndeclaredFieldDoesNotCompile) {
  if (!why_no_compiler().empty()) GTEST_SKIP() << why_no_compiler();
  EXPECT_EQ(compile_text(shader_that("ReadWrite{ip4::ttl}", "p.set(ip4::ttl, p.get(ip4::ttl));"), true), "");
  const struct {
    const char *regions, *body, *why;
  } cases[] = {
      {"Read{ip4::ttl}", "if (p.get(ip4::tos)) return 1;", "does not declare that it reads this field"},
      {"Read{ip4::ttl}", "p.set(ip4::ttl, 1);", "does not declare that it writes this field"},
      {"Read{ip4::ttl}", "p.pull(4);", "does not declare what it uses here"},
      {"Read{meta::data}", "p.pull(4);", "does not declare what it uses here"},
      {"Read{ip4::ttl}", "if (p.length() > 3) return 1;", "does not declare what it uses here"},
  };
  for (const auto& c : cases) {
    const std::string messages = compile_text(shader_that(c.regions, c.body), true);
    EXPECT_NE(messages.find(c.why), std::string::npos) << c.body << "\n" << messages;
  }
  // The same where a packet is processed in place.
  const std::string host = compile_text(shader_that("Read{ip4::ttl}", "if (p.get(ip4::tos)) return 1;") +
                                            "headrace::Next in_place(const headrace::Sly& s, "
                                            "headrace::CpuView<headrace::Sly>& v) { return s.shade(v); }\n",
                                        false);
  EXPECT_NE(host.find("does not declare that it reads this field"), std::string::npos) << host;
}

}  // namespace
}  // namespace headrace::testing
