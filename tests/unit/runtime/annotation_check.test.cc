#include <headrace/shader.hh>

#include "support/element_test.hh"

namespace headrace {

/// A field of one's own at the offset of the destination address, which lies there in another order.
struct OwnAnnotation : Shader<OwnAnnotation> {
  static constexpr Field<Anchor::kAnno, 0, uint16_t> number{};
  static constexpr auto kRegions = regions(ReadWrite{number});

  HEADRACE_SHADER Next shade(auto& p) const {
    p.set(number, static_cast<uint16_t>(p.get(number) + 1));
    return 0;
  }
};
HEADRACE_ELEMENT(OwnAnnotation)

namespace testing {
namespace {

TEST(AnnotationCheck, WarnsOfBytesThatAreReadAsSomethingElse) {
  TestRouter r(
      "Idle -> SetTimestamp(FIRST true) -> p :: Paint(1, ANNO 33) -> Null\n"
      "  -> sink :: TrafficSink(LATENCY true);");
  ASSERT_TRUE(r.ok()) << r.errors();
  EXPECT_NE(r.errors().find("2: warning: 'sink :: TrafficSink' reads annotation FIRST_TIMESTAMP (bytes 32 to 39), but "
                            "'p :: Paint' has written byte 33 there\n"),
            std::string::npos)
      << r.errors();
}

TEST(AnnotationCheck, IsSilentWhereNothingIsWrong) {
  TestRouter r(
      "Idle -> SetTimestamp(FIRST true) -> Strip(14) -> CheckIPHeader -> StringMatcher(needle) -> GetIPAddress(16)"
      " -> Paint(1) -> rt :: StaticIPLookup(0/0 0) -> FixIPSrc(1.2.3.4) -> IPPrint(PAINT true)"
      " -> TrafficSink(LATENCY true);");
  ASSERT_TRUE(r.ok()) << r.errors();
  EXPECT_EQ(r.errors(), "");
}

TEST(AnnotationCheck, OwnIntegersAreInHostOrderAtEveryOffset) {
  for (const auto mode : {OffloadOptions::Mode::kCpu, OffloadOptions::Mode::kDevice}) {
    OffloadOptions offload;
    offload.mode = mode;
    offload.backend = "reference";
    TestRouter r("Idle -> a :: OwnAnnotation -> c :: Capture;", RouterOptions{.profile = false, .offload = offload});
    ASSERT_TRUE(r.ok()) << r.errors();
    Packet* p = Packet::make("abcd", 4);
    p->set_anno_u16(0, 0x01ff);
    r.push("a", p);
    r.router().drain();
    ASSERT_EQ(capture(r, "c").seen().size(), 1u);
    EXPECT_EQ(capture(r, "c").seen()[0].packet->anno_u16(0), 0x0200);
  }
}

}  // namespace
}  // namespace testing
}  // namespace headrace
