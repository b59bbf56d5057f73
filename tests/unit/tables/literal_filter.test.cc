#include "tables/pattern/short_filter.hh"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

namespace headrace {
namespace {

ShortFilter short_filter_of(const std::vector<Pattern>& patterns) {
  PatternSet set;
  Errors errors;
  for (const Pattern& pattern : patterns) EXPECT_TRUE(set.add(pattern, errors)) << errors.str();
  ShortFilter filter;
  filter.build(set);
  return filter;
}

bool excluded_by(const ShortFilter& filter, const std::string& payload) {
  // In memory of its own, so that a sanitizer sees what is read behind it.
  const std::vector<uint8_t> bytes(payload.begin(), payload.end());
  return filter.excludes({bytes.data(), static_cast<uint32_t>(bytes.size())});
}

std::string random_short(std::mt19937& random, size_t length) {
  std::string text(length, '\0');
  for (char& c : text) c = static_cast<char>(random());
  return text;
}

TEST(ShortFilter, NeverExcludesAPayloadWithAPattern) {
  std::mt19937 random(1);
  for (int round = 0; round < 200; ++round) {
    std::vector<Pattern> patterns;
    const size_t count = 1 + random() % 24;
    for (size_t i = 0; i < count; ++i)
      patterns.push_back({random_short(random, 1 + random() % (i % 2 ? 4 : 40)), random() % 2 == 0});
    const ShortFilter filter = short_filter_of(patterns);
    for (const Pattern& pattern : patterns)
      for (size_t length = pattern.bytes.size(); length <= 66; length += 1 + random() % 5) {
        std::string payload = random_short(random, length);
        std::string bytes = pattern.bytes;
        for (char& c : bytes)
          if (pattern.nocase && is_letter(static_cast<unsigned char>(c)) && random() % 2) c ^= 0x20;
        payload.replace(random() % (length - bytes.size() + 1), bytes.size(), bytes);
        ASSERT_FALSE(excluded_by(filter, payload)) << unparse_pattern(pattern) << " in " << length << " bytes";
      }
  }
}

TEST(ShortFilter, ExcludesNearlyAllPayloadsWithoutOne) {
  const ShortFilter filter =
      short_filter_of({{"/etc/passwd", false}, {"sqlmap", true}, {{"\x81\x83", 2}, false}, {"../", false}});
  if (!filter.useful()) GTEST_SKIP() << "this processor has no AVX-512";
  EXPECT_TRUE(excluded_by(filter, ""));
  EXPECT_TRUE(excluded_by(filter, std::string(64, '\0')));
  EXPECT_FALSE(excluded_by(filter, std::string(65, '\0'))) << "longer than a vector";
  EXPECT_FALSE(excluded_by(filter, "SqlMap"));
  EXPECT_FALSE(excluded_by(filter, std::string(62, 'x') + "\x81\x83"));
  std::mt19937 random(2);
  int passed = 0;
  for (int i = 0; i < 1000; ++i) passed += !excluded_by(filter, random_short(random, 64));
  EXPECT_LT(passed, 50);
}

TEST(ShortFilter, LeavesLargeSetsAndSingleBytesToTheSearch) {
  std::mt19937 random(3);
  std::vector<Pattern> patterns;
  for (int i = 0; i < 5000; ++i) patterns.push_back({random_short(random, 8), false});
  EXPECT_FALSE(short_filter_of(patterns).useful());
  EXPECT_FALSE(short_filter_of({{"a", false}}).useful()) << "one byte of 64 in many payloads";
  EXPECT_FALSE(short_filter_of({}).useful());
}

}  // namespace
}  // namespace headrace
