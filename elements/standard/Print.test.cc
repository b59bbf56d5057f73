#include "support/test_router.hh"

namespace headrace::testing {
namespace {

/// What `Print(arguments)` says of a packet.
std::string print(const std::string& arguments, std::string_view bytes) {
  TestRouter r("Idle -> p :: Print(" + arguments + ") -> Discard;");
  EXPECT_TRUE(r.ok()) << r.errors();
  if (!r.ok()) return {};
  Packet* p = Packet::make(bytes.data(), static_cast<uint32_t>(bytes.size()));
  p->set_timestamp(Timestamp::from_us(1234567));
  p->set_anno_u8(0, 0xab);
  ::testing::internal::CaptureStderr();
  r.push("p", p);
  return ::testing::internal::GetCapturedStderr();
}

TEST(Print, HexInGroupsOfFour) {
  EXPECT_EQ(print("", from_hex("0102030405")), "   5 | 01020304 05\n");
  EXPECT_EQ(print("ok", from_hex("ff")), "ok:    1 | ff\n");
}

TEST(Print, ShowsTheFirst24BytesByDefault) {
  EXPECT_EQ(print("a", std::string(30, '\x11')), "a:   30 | 11111111 11111111 11111111 11111111 11111111 11111111\n");
  EXPECT_EQ(print("a, 2", std::string(30, '\x11')), "a:   30 | 1111\n");
  EXPECT_EQ(print("a, MAXLENGTH -1", std::string(25, '\x11')),
            "a:   25 | 11111111 11111111 11111111 11111111 11111111 11111111 11\n");
}

TEST(Print, AsciiInGroupsOfEight) {
  EXPECT_EQ(print("\"A got\", CONTENTS ASCII", "B says hi."), "A got:   10 |  B says h i.\n");
  EXPECT_EQ(print("CONTENTS ascii", from_hex("41007f42")), "   4 |  A..B\n");
}

TEST(Print, WithoutContents) {
  EXPECT_EQ(print("a, CONTENTS NONE", "xyz"), "a:    3\n");
  EXPECT_EQ(print("a, CONTENTS false", "xyz"), "a:    3\n");
  EXPECT_EQ(print("a", ""), "a:    0\n");
}

TEST(Print, TimestampHeadroomAndAnnotations) {
  EXPECT_EQ(print("a, TIMESTAMP true", "x"), "a: 1.234567:    1 | 78\n");
  EXPECT_EQ(print("TIMESTAMP true", "x"), "1.234567:    1 | 78\n");
  EXPECT_EQ(print("HEADROOM true, CONTENTS NONE", "x").substr(0, 11), "   1 (h128 ");
  EXPECT_EQ(print("PRINTANNO true", "x"), "   1 | ab" + std::string(94, '0') + " | 78\n");
}

TEST(Print, InactiveItIsSilent) {
  EXPECT_EQ(print("ACTIVE false", "x"), "");
  TestRouter r("Idle -> p :: Print -> Discard;");
  EXPECT_TRUE(r.write("p.active", "false"));
  ::testing::internal::CaptureStderr();
  r.push("p", std::string_view("x"));
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
}

TEST(Print, RejectsOtherContents) {
  EXPECT_NE(TestRouter("Idle -> Print(CONTENTS foo) -> Discard;")
                .errors()
                .find("bad contents value 'foo'; should be 'NONE', 'HEX', or 'ASCII'"),
            std::string::npos);
}

}  // namespace
}  // namespace headrace::testing
