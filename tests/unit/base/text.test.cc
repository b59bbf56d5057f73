#include "headrace/text.hh"

#include <gtest/gtest.h>

namespace headrace {
namespace {

TEST(Text, HexDigits) {
  for (int digit = 0; digit < 16; ++digit) {
    EXPECT_EQ(hex_digit("0123456789abcdef"[digit]), digit);
    EXPECT_EQ(hex_digit("0123456789ABCDEF"[digit]), digit);
  }
  for (const char c : {'g', 'G', '/', ':', '@', '`', ' ', '\0', '\xff'}) EXPECT_EQ(hex_digit(c), -1);
}

TEST(Text, WholeNumbers) {
  EXPECT_EQ(whole_number<int>("0"), 0);
  EXPECT_EQ(whole_number<int>("007"), 7);
  EXPECT_EQ(whole_number<int>("2147483647"), 2147483647);
  EXPECT_EQ(whole_number<uint16_t>("65535"), 65535);
  EXPECT_EQ(whole_number<uint64_t>("18446744073709551615"), UINT64_MAX);
  EXPECT_EQ(whole_number<uint32_t>("1f", UINT32_MAX, 16), 0x1fu);
  EXPECT_EQ(whole_number("32", 32), 32);
  for (const char* text : {"", "-1", "+1", " 1", "1 ", "1x", "x", "0x1", "1.0", "33", "99999999999999999999"})
    EXPECT_FALSE(whole_number(text, 32)) << text;
  EXPECT_FALSE(whole_number<uint16_t>("65536"));
}

TEST(Text, Words) {
  std::string_view text = " a\tbc \r\n d";
  EXPECT_EQ(next_word(text), "a");
  EXPECT_EQ(text, "\tbc \r\n d");
  EXPECT_EQ(next_word(text), "bc");
  EXPECT_EQ(next_word(text), "d");
  EXPECT_EQ(next_word(text), "");
  text = "  ";
  EXPECT_EQ(next_word(text), "");
  EXPECT_EQ(text, "");
}

TEST(Text, Trimmed) {
  EXPECT_EQ(trimmed("\r\n a b\t\v\f"), "a b");
  EXPECT_EQ(trimmed(" \n"), "");
}

}  // namespace
}  // namespace headrace
