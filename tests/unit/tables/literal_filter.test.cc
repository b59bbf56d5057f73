#include "tables/pattern/literal_filter.hh"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

namespace headrace {
namespace {

LiteralFilter filter_of(const std::vector<Pattern>& patterns) {
  PatternSet set;
  Errors errors;
  for (const Pattern& pattern : patterns) EXPECT_TRUE(set.add(pattern, errors)) << errors.str();
  LiteralFilter filter;
  filter.build(set);
  return filter;
}

bool excluded_by(const LiteralFilter& filter, const std::string& payload) {
  // In memory of its own, so that a sanitizer sees what is read behind it.
  const std::vector<uint8_t> bytes(payload.begin(), payload.end());
  return filter.excludes({bytes.data(), static_cast<uint32_t>(bytes.size())});
}

std::string random_text(std::mt19937& random, size_t length) {
  std::string text(length, '\0');
  for (char& c : text) c = static_cast<char>(random());
  return text;
}

TEST(LiteralFilter, NeverExcludesAPayloadWithAPattern) {
  std::mt19937 random(1);
  for (int round = 0; round < 200; ++round) {
    std::vector<Pattern> patterns;
    const size_t count = 1 + random() % 24;
    for (size_t i = 0; i < count; ++i)
      patterns.push_back({random_text(random, 1 + random() % (i % 2 ? 4 : 40)), random() % 2 == 0});
    const LiteralFilter filter = filter_of(patterns);
    for (const Pattern& pattern : patterns)
      for (size_t length = pattern.bytes.size(); length <= 200; length += 1 + random() % 9) {
        std::string payload = random_text(random, length);
        std::string bytes = pattern.bytes;
        for (char& c : bytes)
          if (pattern.nocase && is_letter(static_cast<unsigned char>(c)) && random() % 2) c ^= 0x20;
        payload.replace(random() % (length - bytes.size() + 1), bytes.size(), bytes);
        ASSERT_FALSE(excluded_by(filter, payload)) << unparse_pattern(pattern) << " in " << length << " bytes";
      }
  }
}

TEST(LiteralFilter, ExcludesPayloadsWithoutOne) {
  const LiteralFilter filter =
      filter_of({{"/etc/passwd", false}, {"sqlmap", true}, {{"\x81\x83", 2}, false}, {"../", false}});
  if (!filter.useful()) GTEST_SKIP() << "this processor has no AVX-512";
  EXPECT_TRUE(excluded_by(filter, ""));
  EXPECT_FALSE(excluded_by(filter, "SqlMap"));
  EXPECT_TRUE(excluded_by(filter, "sqlma")) << "its last byte is missing";
  EXPECT_TRUE(excluded_by(filter, "qlmap")) << "its first byte is missing";
  EXPECT_TRUE(excluded_by(filter, "/etc/PASSWD")) << "another case";
  for (const size_t length : {62u, 63u, 64u, 65u, 128u, 1000u}) {
    EXPECT_TRUE(excluded_by(filter, std::string(length, '\0'))) << length;
    EXPECT_FALSE(excluded_by(filter, std::string(length, 'x') + "\x81\x83")) << length;
    EXPECT_TRUE(excluded_by(filter, std::string(length, 'x') + "\x81")) << length;
    EXPECT_FALSE(excluded_by(filter, std::string(length, 'x') + "SQLmap" + std::string(length, 'y'))) << length;
  }
  std::mt19937 random(2);
  for (int i = 0; i < 1000; ++i) {
    // Two bytes in a row are the only pattern that random bytes have at times.
    const std::string text = random_text(random, 1000);
    EXPECT_EQ(excluded_by(filter, text), text.find("\x81\x83") == text.npos);
  }
}

TEST(LiteralFilter, LeavesPayloadsToTheSearchOfWhichMuchPasses) {
  const LiteralFilter filter = filter_of({{"abcabcabcabd", false}});
  if (!filter.useful()) GTEST_SKIP() << "this processor has no AVX-512";
  std::string text;
  while (text.size() < 300) text += "abc";
  EXPECT_TRUE(excluded_by(filter, text.substr(0, 30)));
  EXPECT_FALSE(excluded_by(filter, text));
}

TEST(LiteralFilter, LeavesLargeSetsAndSingleBytesToTheSearch) {
  std::mt19937 random(3);
  std::vector<Pattern> patterns;
  for (int i = 0; i < 5000; ++i) patterns.push_back({random_text(random, 8), false});
  EXPECT_FALSE(filter_of(patterns).useful());
  EXPECT_FALSE(filter_of({{"a", false}}).useful()) << "one byte of 64 in many payloads";
  EXPECT_FALSE(filter_of({}).useful());
}

}  // namespace
}  // namespace headrace
