/// \file
/// The text form of patterns and files of them.

#include "tables/pattern/pattern_set.hh"

#include <gtest/gtest.h>
#include <zlib.h>

#include <random>
#include <string>

#include "support/temporary_file.hh"

namespace headrace {
namespace {

using testing::TemporaryFile;

Pattern parsed(std::string_view text) {
  Pattern pattern;
  EXPECT_EQ(parse_pattern(text, pattern), "") << text;
  return pattern;
}
std::string fault(std::string_view text) {
  Pattern pattern;
  return parse_pattern(text, pattern);
}

TEST(PatternText, Forms) {
  EXPECT_EQ(parsed("GET /cmd.exe|3f 2F|x"), (Pattern{"GET /cmd.exe?/x", false}));
  EXPECT_EQ(parsed("  two  words \t"), (Pattern{"two  words", false}));
  EXPECT_EQ(parsed("\"  two \""), (Pattern{"  two ", false}));
  EXPECT_EQ(parsed("i:User-Agent"), (Pattern{"User-Agent", true}));
  EXPECT_EQ(parsed("i: \" x\""), (Pattern{" x", true}));
  EXPECT_EQ(parsed("\"i:x\""), (Pattern{"i:x", false}));
  EXPECT_EQ(parsed(R"(\x00\xFf\n\r\t\0\\\|\"\#\;\:)"), (Pattern{std::string("\0\xff\n\r\t\0\\|\"#;:", 12), false}));
  EXPECT_EQ(parsed("|00|a|0d0a 00|"), (Pattern{std::string("\0a\r\n\0", 5), false}));
  EXPECT_EQ(parsed("a#b"), (Pattern{"a#b", false}));
}

TEST(PatternText, Faults) {
  EXPECT_EQ(fault(""), "the pattern is empty");
  EXPECT_EQ(fault("i:"), "the pattern is empty");
  EXPECT_EQ(fault("\"\""), "the pattern is empty");
  EXPECT_EQ(fault("||"), "the pattern is empty");
  EXPECT_EQ(fault("a|0d 0"), "a byte between bars has two hexadecimal digits");
  EXPECT_EQ(fault("a|0d 0g|"), "a byte between bars has two hexadecimal digits");
  EXPECT_EQ(fault("a|xy|"), "'x' between bars is no hexadecimal digit");
  EXPECT_EQ(fault("a|0d"), "the closing | is missing");
  EXPECT_EQ(fault("\"abc"), "the closing quote is missing");
  EXPECT_EQ(fault("\"abc\" d"), "unexpected byte 0x20 after the closing quote");
  EXPECT_EQ(fault("a\"b"), "a quote within a pattern is written \\\"");
  EXPECT_EQ(fault("\\x4"), "\\x needs two hexadecimal digits");
  EXPECT_EQ(fault("\\q"), "unknown escape: a backslash and 'q'");
  EXPECT_EQ(fault("abc\\"), "nothing follows the last backslash");
}

TEST(PatternText, WhatIsWrittenReadsBack) {
  std::mt19937 random(2);
  for (int round = 0; round < 2000; ++round) {
    Pattern pattern{std::string(1 + random() % 12, '\0'), random() % 2 == 0};
    for (char& c : pattern.bytes) c = static_cast<char>(random() % 2 == 0 ? random() : "\"\\| #i:x"[random() % 8]);
    ASSERT_EQ(parsed(unparse_pattern(pattern)), pattern) << unparse_pattern(pattern);
  }
}

TEST(PatternFile, BadLinesAreNamedAndTheOthersTaken) {
  const TemporaryFile file(
      "# a comment\n"
      "\n"
      "first\r\n"
      "bad|0|\n"
      "i:Second\n"
      "\"third\n" +
      std::string(kLongestPattern + 1, 'x') + "\n" + std::string(5000, 'y') + "\n" + std::string(kLongestPattern, 'z'));
  PatternSet set;
  Errors errors;
  EXPECT_FALSE(set.add_file(file.path(), errors));
  EXPECT_EQ(errors.str(), file.path() + ":4: a byte between bars has two hexadecimal digits\n" + file.path() +
                              ":6: the closing quote is missing\n" + file.path() +
                              ":7: the pattern has 2048 bytes, the limit is 2047\n" + file.path() +
                              ":8: line is too long\n");
  ASSERT_EQ(set.size(), 3u);
  EXPECT_EQ(set[0], (Pattern{"first", false}));
  EXPECT_EQ(set[1], (Pattern{"Second", true}));
  EXPECT_EQ(set[2].bytes.size(), kLongestPattern);
  EXPECT_EQ(set.longest(), kLongestPattern);
  EXPECT_EQ(set.total_bytes(), 5 + 6 + kLongestPattern);
}

TEST(PatternFile, ManyBadLinesAreCounted) {
  std::string text;
  for (int i = 0; i < 25; ++i) text += "\\q\n";
  const TemporaryFile file(text + "good\n");
  PatternSet set;
  Errors errors;
  EXPECT_FALSE(set.add_file(file.path(), errors));
  EXPECT_EQ(errors.error_count(), 21);
  EXPECT_EQ(errors.lines().back(), file.path() + ": 5 more bad lines");
  EXPECT_EQ(set.size(), 1u);
}

TEST(PatternFile, Compressed) {
  const TemporaryFile file;
  const gzFile out = gzopen(file.path().c_str(), "wb");
  ASSERT_NE(out, nullptr);
  gzputs(out, "one\ntwo\n");
  gzclose(out);
  PatternSet set;
  Errors errors;
  EXPECT_TRUE(set.add_file(file.path(), errors)) << errors.str();
  ASSERT_EQ(set.size(), 2u);
  EXPECT_EQ(set[1].bytes, "two");
}

TEST(PatternFile, Missing) {
  PatternSet set;
  Errors errors;
  EXPECT_FALSE(set.add_file("/nowhere/patterns", errors));
  EXPECT_EQ(errors.str(), "/nowhere/patterns: No such file or directory\n");
}

TEST(PatternSet, RefusesEmptyOnesAndTooMany) {
  PatternSet set;
  Errors errors;
  EXPECT_FALSE(set.add({"", true}, errors));
  for (uint32_t i = 0; i < kMostPatterns; ++i) ASSERT_TRUE(set.add({std::to_string(i), false}, errors));
  EXPECT_FALSE(set.add({"one more", false}, errors));
  EXPECT_EQ(errors.str(), "the pattern is empty\nthere are more than 65534 patterns\n");
}

}  // namespace
}  // namespace headrace
