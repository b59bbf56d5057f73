/// \file
/// The engines of pattern matching against a naive search.

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "pattern_naive.hh"

namespace headrace {
namespace {

PatternSet set_of(const std::vector<Pattern>& patterns) {
  PatternSet set;
  Errors errors;
  for (const Pattern& pattern : patterns) EXPECT_TRUE(set.add(pattern, errors)) << errors.str();
  return set;
}

std::string random_text(std::mt19937& random, size_t length, std::string_view alphabet) {
  std::string text(length, '\0');
  for (char& c : text) c = alphabet[random() % alphabet.size()];
  return text;
}

std::string all_bytes() {
  std::string text;
  for (int byte = 0; byte < 256; ++byte) text += static_cast<char>(byte);
  return text;
}

TEST(PatternEngines, AWordInAText) {
  const AllEngines engines(set_of({{"needle", false}, {"HAY", true}}));
  EXPECT_EQ(engines.compare("hay, a needle, Hay, NEEDLE"), "");
  EXPECT_EQ(engines.compare(""), "");
  EXPECT_EQ(engines.compare("needl"), "");
  const PayloadBytes text = payload_of("a needle in the hay");
  const FirstMatch first = engines.matcher().first(text);
  EXPECT_TRUE(first.found());
  EXPECT_EQ(first.end(), 8u);
  EXPECT_EQ(first.pattern(), 0u);
  const Candidates found = engines.matcher().candidates(text);
  EXPECT_EQ(found.count(), 2u);
  EXPECT_EQ(found.pattern(1), 1u);
  EXPECT_FALSE(found.more());
}

TEST(PatternEngines, NoPatterns) {
  PatternMatcher matcher;
  Errors errors;
  ASSERT_TRUE(matcher.build(PatternSet(), {}, errors)) << errors.str();
  const PayloadBytes text = payload_of("anything");
  EXPECT_FALSE(matcher.first(text).found());
  EXPECT_TRUE(matcher.candidates(text).none());
  EXPECT_FALSE(first_match(matcher.view(), HostTeam<32>(), text).found());
}

TEST(PatternEngines, SmallAlphabetsWithNestedEqualAndMixedCasePatterns) {
  std::mt19937 random(1);
  const std::string alphabets[] = {"ab", "abAB", "aAbBcC01", std::string("a\0\xff\n", 4), all_bytes()};
  for (int round = 0; round < 15; ++round) {
    const std::string& alphabet = alphabets[round % 5];
    std::vector<Pattern> patterns;
    const size_t count = 1 + random() % 40;
    const size_t longest = round % 2 == 0 ? 4 : 64;
    for (size_t i = 0; i < count; ++i) {
      Pattern pattern{random_text(random, 1 + random() % longest, alphabet), random() % 2 == 0};
      if (!patterns.empty() && random() % 4 == 0) {
        // Equal but for case, or a part of another.
        pattern.bytes = patterns[random() % patterns.size()].bytes;
        if (random() % 2 == 0) pattern.bytes = pattern.bytes.substr(random() % pattern.bytes.size());
        for (char& c : pattern.bytes)
          if (random() % 4 == 0 && is_letter(static_cast<unsigned char>(c))) c = static_cast<char>(c ^ 0x20);
      }
      patterns.push_back(pattern);
    }
    const AllEngines engines(set_of(patterns));
    ASSERT_EQ(engines.faults(), "");
    for (const size_t length : {0, 1, 2, 3, 5, 31, 32, 33, 64, 127, 128, 200, 1460, 3000}) {
      std::string text = random_text(random, length, alphabet);
      // Whole patterns, too.
      for (size_t at = 0; at < length; at += 1 + random() % 100) {
        const std::string& bytes = patterns[random() % patterns.size()].bytes;
        if (at + bytes.size() <= length) text.replace(at, bytes.size(), bytes);
      }
      ASSERT_EQ(engines.compare(text), "") << "round " << round << ", length " << length;
    }
  }
}

TEST(PatternEngines, EveryPlaceInAPayload) {
  // Each window, each lane's border and the end of the payload.
  std::vector<Pattern> patterns;
  for (const size_t length : {1, 2, 3, 4, 5, 7, 8, 9, 12, 40, 100})
    patterns.push_back(
        {std::string("Zyxwvutsrqponmlkjihgfedcba").substr(0, length) + std::string(length > 26 ? length - 26 : 0, '9'),
         length % 2 == 0});
  const AllEngines engines(set_of(patterns));
  for (const Pattern& pattern : patterns) {
    for (size_t at = 0; at + pattern.bytes.size() <= 140; ++at) {
      std::string text(140, '.');
      text.replace(at, pattern.bytes.size(), pattern.bytes);
      ASSERT_EQ(engines.compare(text), "") << pattern.bytes << " at " << at;
      ASSERT_EQ(engines.compare(text.substr(0, at + pattern.bytes.size() - 1)), "") << pattern.bytes << " at " << at;
    }
  }
}

TEST(PatternEngines, AllPrefixesOfOneString) {
  std::vector<Pattern> patterns;
  for (size_t length = 1; length <= 120; ++length) patterns.push_back({std::string(length, 'a'), length % 3 == 0});
  for (size_t length = 1; length <= 40; ++length) patterns.push_back({std::string(length, 'A') + "b", true});
  const AllEngines engines(set_of(patterns));
  EXPECT_EQ(engines.compare(std::string(400, 'a')), "");
  EXPECT_EQ(engines.compare(std::string(150, 'A') + "b" + std::string(150, 'a')), "");
  const Candidates found = candidates(engines.prefilter().view(), HostTeam<32>(), payload_of(std::string(300, 'a')));
  EXPECT_TRUE(found.more());
  EXPECT_EQ(found.count(), 3u);
  EXPECT_EQ(found.pattern(2), 2u);
}

TEST(PatternEngines, EveryWordOfTwoLettersInADeBruijnText) {
  // All 2^10 words of ten letters, in the shortest text that has them all.
  constexpr int kOrder = 10;
  std::string text;
  std::vector<bool> seen(1 << kOrder);
  uint32_t window = 0;
  text.assign(kOrder, 'x');
  seen[0] = true;
  for (;;) {
    const uint32_t one = (window << 1 | 1) & (seen.size() - 1), zero = (window << 1) & (seen.size() - 1);
    window = !seen[one] ? one : zero;
    if (seen[window]) break;
    seen[window] = true;
    text += window & 1 ? 'y' : 'x';
  }
  std::vector<Pattern> patterns;
  for (uint32_t word = 0; word < seen.size(); word += 3) {
    std::string bytes;
    for (int bit = kOrder - 1; bit >= 0; --bit) bytes += word >> bit & 1 ? 'y' : 'x';
    patterns.push_back({bytes, word % 2 == 0});
  }
  const AllEngines engines(set_of(patterns));
  EXPECT_EQ(engines.compare(text), "");
}

TEST(PatternEngines, ASetThatUsesEveryByte) {
  std::vector<Pattern> patterns;
  for (int byte = 0; byte < 256; ++byte) patterns.push_back({std::string(3, static_cast<char>(byte)), false});
  patterns.push_back({all_bytes(), false});
  const AllEngines engines(set_of(patterns));
  EXPECT_EQ(engines.compare(all_bytes() + "aaaaAAAaAa" + all_bytes()), "");
}

TEST(PatternEngines, TheLongestPattern) {
  std::mt19937 random(5);
  const std::string bytes = random_text(random, kLongestPattern, all_bytes());
  const AllEngines engines(set_of({{bytes, true}, {bytes.substr(1000), false}}));
  EXPECT_EQ(engines.faults(), "");
  EXPECT_EQ(engines.compare("x" + bytes + bytes), "");
  EXPECT_EQ(engines.compare(bytes.substr(1) + bytes.substr(0, 2000)), "");
}

TEST(PatternEngines, AlignmentOfThePayloadDoesNotMatter) {
  const AllEngines engines(set_of({{"abcdefghij", true}, {"hij", false}}));
  const std::string text = "....abcdefghijabcdefghij";
  for (size_t skip = 0; skip < 12; ++skip) EXPECT_EQ(engines.compare(std::string_view(text).substr(skip)), "");
}

// --- Limits

TEST(PatternLimits, WorkIsCutAtTheSamePlaceForEveryTeam) {
  std::vector<Pattern> patterns;
  for (size_t length = 1; length <= 20; ++length) patterns.push_back({std::string(length, 'a'), false});
  const AllEngines engines(set_of(patterns), ScanBudget{32, 4});
  std::mt19937 random(9);
  int cut = 0, whole = 0;
  for (int round = 0; round < 300; ++round) {
    const std::string text = random_text(random, 200, std::string("aaaaaaaa.......").substr(0, 4 + round % 11));
    const auto check = [&](const auto& view) {
      const Candidates one = candidates(view, HostTeam<1>(), payload_of(text));
      EXPECT_EQ(one, candidates(view, HostTeam<7>(), payload_of(text)));
      EXPECT_EQ(one, candidates(view, HostTeam<32>(), payload_of(text)));
      one.cut() ? ++cut : ++whole;
      if (!one.cut()) {
        EXPECT_EQ(one, engines.matcher().candidates(payload_of(text)));
      }
      const FirstMatch first = first_match(view, HostTeam<32>(), payload_of(text));
      if (!first.cut()) {
        EXPECT_EQ(first, engines.matcher().first(payload_of(text)));
      }
    };
    check(engines.dfa().view());
    check(engines.compressed().view());
    check(engines.prefilter().view());
  }
  EXPECT_GT(cut, 100);
  EXPECT_GT(whole, 100);
}

TEST(PatternLimits, AStormOfMatchesOnTheCpu) {
  std::vector<Pattern> patterns;
  for (size_t length = 1; length <= 100; ++length) patterns.push_back({std::string(length, 'a'), false});
  PatternMatcher matcher;
  Errors errors;
  ASSERT_TRUE(matcher.build(set_of(patterns), {}, errors)) << errors.str();
  const std::string text(1460, 'a');
  uint32_t reports = 0;
  EXPECT_FALSE(matcher.scan(payload_of(text), [&](uint32_t, uint32_t) { ++reports; }));
  EXPECT_EQ(reports, 256u + 16 * 1460);
  EXPECT_TRUE(matcher.candidates(payload_of(text)).cut());
  EXPECT_EQ(matcher.first(payload_of(text)).end(), 1u);
}

TEST(PatternLimits, StatesAndMemoryAreErrorsWithNumbers) {
  const PatternSet set = set_of({{"abcdef", false}, {"abcxyz", false}, {"bcd", true}});
  Errors errors;
  DfaLimits limits;
  limits.states = 12;
  EXPECT_FALSE(FullDfa().build(set, limits, errors));
  EXPECT_FALSE(CompressedDfa().build(set, limits, errors));
  limits.states = 13;
  limits.bytes = 100;
  EXPECT_FALSE(FullDfa().build(set, limits, errors));
  limits.bytes = 16;
  EXPECT_FALSE(CompressedDfa().build(set, limits, errors));
  PrefilterLimits prefilter;
  prefilter.bytes = 100;
  EXPECT_FALSE(Prefilter().build(set, prefilter, errors));
  EXPECT_EQ(errors.str(),
            "full DFA: 3 patterns make 13 states, the limit is 12\n"
            "compressed DFA: 3 patterns make 13 states, the limit is 12\n"
            "full DFA: 13 states of 10 transitions take 572 bytes, the limit is 100\n"
            "compressed DFA: 13 states keep more than the 2 transitions that 16 bytes hold\n"
            "prefilter: 3 patterns take 2404 bytes, the limit is 100\n");
}

TEST(PatternLimits, AutoTakesAnotherEngine) {
  const PatternSet set = set_of({{"abcdef", false}, {"abcxyz", false}, {"bcd", true}});
  Errors errors;
  PatternMatcherOptions options;
  PatternMatcher matcher;
  ASSERT_TRUE(matcher.build(set, options, errors));
  EXPECT_EQ(matcher.engine(), PatternEngine::kPrefilter);
  options.prefilter.bytes = 100;
  ASSERT_TRUE(matcher.build(set, options, errors));
  EXPECT_EQ(matcher.engine(), PatternEngine::kCompressed);
  EXPECT_EQ(errors.str(), "");
  options.engine = PatternEngine::kPrefilter;
  EXPECT_FALSE(matcher.build(set, options, errors));
  EXPECT_NE(errors.str(), "");
}

TEST(PatternLimits, EnginesByName) {
  EXPECT_EQ(parse_engine("auto"), PatternEngine::kNone);
  EXPECT_EQ(parse_engine("compressed"), PatternEngine::kCompressed);
  EXPECT_FALSE(parse_engine("DFA").has_value());
  EXPECT_EQ(engine_name(PatternEngine::kPrefilter), "prefilter");
}

TEST(PatternCandidates, TheLowestNumbersInAnyOrder) {
  std::vector<uint32_t> numbers{1, 2, 3, 4, 5};
  do {
    pattern_detail::LowestNumbers lowest;
    for (const uint32_t number : numbers) {
      lowest.add(number);
      lowest.add(number);
      lowest.add(numbers[0]);
    }
    EXPECT_EQ(lowest.first, 1u);
    EXPECT_EQ(lowest.second, 2u);
    EXPECT_EQ(lowest.third, 3u);
    EXPECT_EQ(lowest.fourth, 4u);
    EXPECT_TRUE(lowest.more);
  } while (std::next_permutation(numbers.begin(), numbers.end()));
  pattern_detail::LowestNumbers lowest;
  for (const uint32_t number : {65534u, 7u, 7u, 9u, 65534u, 8u, 9u}) lowest.add(number);
  EXPECT_FALSE(lowest.more);
  EXPECT_EQ(lowest.fourth, 65534u);
}

}  // namespace
}  // namespace headrace
