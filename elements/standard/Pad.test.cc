#include <set>

#include "headrace/packet.hh"
#include "support/element_test.hh"

namespace headrace::testing {
namespace {

Packet* with_extra_length(std::string_view bytes, uint32_t extra) {
  Packet* p = Packet::make(bytes.data(), static_cast<uint32_t>(bytes.size()));
  p->set_anno_u32(anno_offset::kExtraLength, extra);
  return p;
}

TEST(Pad, FillsUpToLengthWithZeros) {
  TestRouter r("Idle -> p :: Pad(4) -> c :: Capture;");
  ASSERT_TRUE(r.ok()) << r.errors();
  r.push("p", with_extra_length("ab", 7));
  r.push("p", "abcde");
  EXPECT_EQ(capture(r, "c").bytes(0), std::string("ab\0\0", 4));
  EXPECT_EQ(capture(r, "c").bytes(1), "abcde");
  EXPECT_EQ(capture(r, "c").seen()[0].packet->anno_u32(anno_offset::kExtraLength), 0u);
}

TEST(Pad, WithoutLengthAddsTheExtraLength) {
  TestRouter r("Idle -> p :: Pad -> c :: Capture;");
  ASSERT_TRUE(r.ok()) << r.errors();
  r.push("p", with_extra_length("ab", 3));
  r.push("p", "ab");
  EXPECT_EQ(capture(r, "c").bytes(0), std::string("ab\0\0\0", 5));
  EXPECT_EQ(capture(r, "c").bytes(1), "ab");
}

TEST(Pad, RandomBytesDiffer) {
  TestRouter r("Idle -> p :: Pad(11, RANDOM true) -> c :: Capture;");
  ASSERT_TRUE(r.ok()) << r.errors();
  std::set<std::string> seen;
  for (int i = 0; i < 10; ++i) {
    r.push("p", "ab");
    const std::string bytes = capture(r, "c").bytes(static_cast<size_t>(i));
    EXPECT_EQ(bytes.size(), 11u);
    EXPECT_EQ(bytes.substr(0, 2), "ab");
    seen.insert(bytes);
  }
  EXPECT_EQ(seen.size(), 10u);
}

TEST(Pad, MaxLengthLimitsWhatIsAdded) {
  TestRouter r("Idle -> p :: Pad(MAXLENGTH 4, VERBOSE false) -> c :: Capture;");
  ASSERT_TRUE(r.ok()) << r.errors();
  r.push("p", with_extra_length("ab", 100));
  r.push("p", with_extra_length("abcdef", 1));
  EXPECT_EQ(capture(r, "c").bytes(0).size(), 4u);
  EXPECT_EQ(capture(r, "c").bytes(1), "abcdef");
  EXPECT_EQ(r.read("p.limited"), "2");
}

TEST(Pad, DropsWhatDoesNotFit) {
  TestRouter r("Idle -> p :: Pad -> c :: Capture;");
  ASSERT_TRUE(r.ok()) << r.errors();
  r.push("p", with_extra_length("ab", 0x7fffffff));
  r.push("p", with_extra_length("ab", 0xffffffff));
  EXPECT_TRUE(capture(r, "c").seen().empty());
  EXPECT_EQ(r.read("p.drop_reasons"), "2\tno room behind\n");
}

TEST(Pad, Errors) {
  for (const auto& [arguments, message] :
       {std::pair("x", "LENGTH: expected an integer"), std::pair("65600", "LENGTH: out of range"),
        std::pair("ZERO 3", "ZERO: "), std::pair("MAXLENGTH -1", "MAXLENGTH: "),
        std::pair("ZERO true, RANDOM true", "ZERO and RANDOM exclude each other")}) {
    TestRouter r("Idle -> Pad(" + std::string(arguments) + ") -> Discard;");
    EXPECT_NE(r.errors().find(message), std::string::npos) << arguments << ": " << r.errors();
  }
}

}  // namespace
}  // namespace headrace::testing
