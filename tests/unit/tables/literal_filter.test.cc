#include "tables/pattern/literal_filter.hh"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

namespace headrace {
namespace {

using Vectors = LiteralFilter::Vectors;

/// What this processor has, and none.
std::vector<Vectors> all_vectors() {
  std::vector<Vectors> all = {Vectors::kNone};
  for (const Vectors vectors : {Vectors::kAvx2, Vectors::kAvx512})
    if (vectors <= LiteralFilter::best_vectors()) all.push_back(vectors);
  return all;
}

LiteralFilter filter_of(const std::vector<Pattern>& patterns, Vectors vectors) {
  PatternSet set;
  Errors errors;
  for (const Pattern& pattern : patterns) EXPECT_TRUE(set.add(pattern, errors)) << errors.str();
  LiteralFilter filter;
  filter.build(set, vectors);
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

class LiteralFilterBy : public testing::TestWithParam<Vectors> {};

TEST_P(LiteralFilterBy, NeverExcludesAPayloadWithAPattern) {
  std::mt19937 random(1);
  for (int round = 0; round < 200; ++round) {
    std::vector<Pattern> patterns;
    const size_t count = 1 + random() % 24;
    for (size_t i = 0; i < count; ++i)
      patterns.push_back({random_text(random, 1 + random() % (i % 2 ? 4 : 40)), random() % 2 == 0});
    const LiteralFilter filter = filter_of(patterns, GetParam());
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

TEST_P(LiteralFilterBy, ExcludesPayloadsWithoutOne) {
  const LiteralFilter filter =
      filter_of({{"/etc/passwd", false}, {"sqlmap", true}, {{"\x81\x83", 2}, false}, {"../", false}}, GetParam());
  ASSERT_EQ(filter.useful(), GetParam() != Vectors::kNone);
  if (!filter.useful()) return;
  EXPECT_TRUE(excluded_by(filter, ""));
  EXPECT_FALSE(excluded_by(filter, "SqlMap"));
  EXPECT_TRUE(excluded_by(filter, "sqlma")) << "its last byte is missing";
  EXPECT_TRUE(excluded_by(filter, "qlmap")) << "its first byte is missing";
  EXPECT_TRUE(excluded_by(filter, "/etc/PASSWD")) << "another case";
  for (const size_t length : {30u, 31u, 32u, 33u, 62u, 63u, 64u, 65u, 128u, 1000u}) {
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

TEST_P(LiteralFilterBy, LeavesPayloadsToTheSearchOfWhichMuchPasses) {
  const LiteralFilter filter = filter_of({{"abcabcabcabd", false}}, GetParam());
  ASSERT_EQ(filter.useful(), GetParam() != Vectors::kNone);
  if (!filter.useful()) return;
  std::string text;
  while (text.size() < 300) text += "abc";
  EXPECT_TRUE(excluded_by(filter, text.substr(0, 30)));
  EXPECT_FALSE(excluded_by(filter, text));
}

TEST_P(LiteralFilterBy, SaysTheSameWhereverThePayloadLies) {
  const LiteralFilter filter = filter_of({{"needle", false}, {"\r\n\r\n", false}}, GetParam());
  for (uint32_t length = 0; length < 200; ++length)
    for (uint32_t at = 0; at + 6 <= length; ++at) {
      std::string text(length, '.');
      text.replace(at, 6, "needle");
      ASSERT_FALSE(excluded_by(filter, text)) << length << " " << at;
      text[at + 5] = '.';
      ASSERT_EQ(excluded_by(filter, text), filter.useful()) << length << " " << at;
    }
}

TEST_P(LiteralFilterBy, LeavesLargeSetsAndSingleBytesToTheSearch) {
  std::mt19937 random(3);
  std::vector<Pattern> patterns;
  for (int i = 0; i < 5000; ++i) patterns.push_back({random_text(random, 8), false});
  EXPECT_FALSE(filter_of(patterns, GetParam()).useful());
  EXPECT_FALSE(filter_of({{"a", false}}, GetParam()).useful()) << "one byte of 64 in many payloads";
  EXPECT_FALSE(filter_of({}, GetParam()).useful());
}

std::string name_of_vectors(const testing::TestParamInfo<Vectors>& of) {
  constexpr const char* kNames[] = {"None", "Avx2", "Avx512"};
  return kNames[static_cast<size_t>(of.param)];
}
INSTANTIATE_TEST_SUITE_P(Vectors, LiteralFilterBy, testing::ValuesIn(all_vectors()), name_of_vectors);

}  // namespace
}  // namespace headrace
