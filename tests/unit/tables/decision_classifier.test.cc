#include <fmt/format.h>
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "decision_packet.hh"
#include "tables/decision/classifier_patterns.hh"

namespace headrace {
namespace {

using decision_test::Bytes;
using decision_test::CheckedWords;
using Patterns = std::vector<std::string>;

DecisionProgram compile(const Patterns& patterns) {
  Errors errors;
  DecisionProgram program;
  EXPECT_TRUE(compile_classifier(patterns, errors, program).ok()) << errors.str();
  EXPECT_EQ(errors.str(), "");
  return program;
}

std::string errors_of(const Patterns& patterns) {
  Errors errors;
  DecisionProgram program;
  EXPECT_FALSE(compile_classifier(patterns, errors, program).ok());
  EXPECT_EQ(program.text(), DecisionProgram().text()) << "changed by a failed compilation";
  return errors.str();
}

int match(const DecisionProgram& program, const Bytes& frame) {
  const CheckedWords words(frame);
  const int output = program.view().match(words);
  EXPECT_FALSE(words.outside());
  return output;
}

Bytes frame_with(size_t length, const std::vector<std::pair<size_t, Bytes>>& parts) {
  Bytes frame(length);
  for (const auto& [offset, bytes] : parts) {
    for (size_t i = 0; i < bytes.size(); ++i) frame.at(offset + i) = bytes[i];
  }
  return frame;
}

TEST(ClassifierProgram, PrintsEthernetDemultiplexer) {
  EXPECT_EQ(compile({"12/0806 20/0001", "12/0806 20/0002", "12/0800", "-"}).text(),
            " 0  12/08060000%ffff0000  yes->step 1  no->step 3\n"
            " 1  20/00010000%ffff0000  yes->[0]  no->step 2\n"
            " 2  20/00020000%ffff0000  yes->[1]  no->[3]\n"
            " 3  12/08000000%ffff0000  yes->[2]  no->[3]\n"
            "safe length 22\n"
            "alignment offset 0\n");
}

TEST(ClassifierProgram, PrintsConstantPrograms) {
  EXPECT_EQ(compile({"-"}).text(), "all->[0]\nsafe length 0\nalignment offset 0\n");
  EXPECT_EQ(compile({}).text(), "all->[2147483647]\nsafe length 0\nalignment offset 0\n");
  EXPECT_EQ(compile({"12/????", "-"}).text(), "all->[0]\nsafe length 0\nalignment offset 0\n");
  EXPECT_EQ(compile({"  "}).text(), "all->[0]\nsafe length 0\nalignment offset 0\n");
}

TEST(ClassifierProgram, PrintsMasksAndNegations) {
  EXPECT_EQ(compile({"33/02%12", "12/08?6", "!12/0800"}).text(),
            " 0  32/00020000%00120000  yes->[0]  no->step 1\n"
            " 1  12/08060000%ff0f0000  yes->[1]  no->step 2\n"
            " 2  12/08000000%ffff0000  yes->[X]  no->[2]\n"
            "safe length 34\n"
            "alignment offset 0\n");
}

TEST(ClassifierProgram, JoinsTestsOfOneWord) {
  EXPECT_EQ(compile({"12/08 13/06", "-"}).text(),
            " 0  12/08060000%ffff0000  yes->[0]  no->[1]\n"
            "safe length 14\n"
            "alignment offset 0\n");
  EXPECT_EQ(compile({"3/1122"}).text(),
            " 0   0/00000011%000000ff  yes->step 1  no->[X]\n"
            " 1   4/22000000%ff000000  yes->[0]  no->[X]\n"
            "safe length 5\n"
            "alignment offset 0\n");
}

TEST(ClassifierProgram, ForgetsNothingThatAnEarlierTestLeavesOpen) {
  // The second pattern shares a byte with the first, and its other byte is still to be tested.
  const DecisionProgram program = compile({"12/0806", "12/08"});
  EXPECT_EQ(match(program, frame_with(14, {{12, {8, 6}}})), 0);
  EXPECT_EQ(match(program, frame_with(14, {{12, {8, 0}}})), 1);
  EXPECT_EQ(match(program, frame_with(13, {{12, {8}}})), 1);
  EXPECT_EQ(match(program, frame_with(12, {})), DecisionView::kDrop);
}

TEST(ClassifierProgram, NamesOutputsThatNothingReaches) {
  EXPECT_EQ(compile({"12/0806 12/0800", "12/0800"}).unused_outputs(2), std::vector<int>{0});
  EXPECT_EQ(compile({"-", "12/0800"}).unused_outputs(2), std::vector<int>{1});
  EXPECT_EQ(compile({"12/0800", "-"}).unused_outputs(2), std::vector<int>{});
  EXPECT_EQ(compile({"12/0800", "-"}).unused_outputs(3), std::vector<int>{2});
}

TEST(ClassifierProgram, ClassifiesFrames) {
  const DecisionProgram program = compile({"12/0806 20/0001", "12/0806 20/0002", "12/0800", "-"});
  EXPECT_EQ(match(program, frame_with(60, {{12, {8, 6}}, {20, {0, 1}}})), 0);
  EXPECT_EQ(match(program, frame_with(60, {{12, {8, 6}}, {20, {0, 2}}})), 1);
  EXPECT_EQ(match(program, frame_with(60, {{12, {8, 6}}, {20, {0, 3}}})), 3);
  EXPECT_EQ(match(program, frame_with(60, {{12, {8, 0}}})), 2);
  EXPECT_EQ(match(program, frame_with(60, {{12, {0x86, 0xdd}}})), 3);
  EXPECT_EQ(match(program, frame_with(14, {{12, {8, 0}}})), 2);
  EXPECT_EQ(match(program, frame_with(13, {{12, {8}}})), 3);
  EXPECT_EQ(match(program, frame_with(22, {{12, {8, 6}}, {20, {0, 1}}})), 0);
  EXPECT_EQ(match(program, frame_with(21, {{12, {8, 6}}, {20, {0}}})), 3);
  EXPECT_EQ(match(program, {}), 3);
}

TEST(ClassifierProgram, NegatedClauseHoldsForShortFrames) {
  const DecisionProgram program = compile({"!12/0800", "-"});
  EXPECT_EQ(match(program, frame_with(14, {{12, {8, 0}}})), 1);
  EXPECT_EQ(match(program, frame_with(14, {{12, {8, 1}}})), 0);
  EXPECT_EQ(match(program, frame_with(12, {})), 0);
}

TEST(ClassifierProgram, SearchesManyValuesOfOneWord) {
  Patterns patterns;
  for (int i = 0; i < 300; ++i) patterns.push_back(fmt::format("12/{:04x}", (i * 7919) & 0xffff));
  patterns.push_back("12/1eef");  // the value of pattern 1 again: never reached
  patterns.push_back("-");
  const DecisionProgram program = compile(patterns);
  EXPECT_EQ(program.unused_outputs(302), std::vector<int>{300});
  std::vector<int> expected(65536, 301);
  for (int i = 299; i >= 0; --i) expected[(i * 7919) & 0xffff] = i;
  for (int type = 0; type < 65536; ++type) {
    const Bytes frame = frame_with(14, {{12, {static_cast<uint8_t>(type >> 8), static_cast<uint8_t>(type & 0xff)}}});
    ASSERT_EQ(match(program, frame), expected[type]) << type;
  }
}

TEST(ClassifierProgram, SurvivesAMove) {
  DecisionProgram first = compile({"12/0800", "-"});
  const DecisionView view = first.view();
  const DecisionProgram second = std::move(first);
  const Bytes frame = frame_with(14, {{12, {8, 0}}});
  EXPECT_EQ(view.match(CheckedWords(frame)), 0);
  EXPECT_EQ(second.view().match(CheckedWords(frame)), 0);
}

TEST(ClassifierProgram, ViewOfACopiedImageMatchesAlike) {
  Patterns patterns;
  for (int i = 0; i < 20; ++i) patterns.push_back(fmt::format("12/{:04x} 30/{:02x}", i % 5, i));
  DecisionProgram program = compile(patterns);
  std::vector<std::byte> copy(program.image_size() + 64);
  auto* base = reinterpret_cast<std::byte*>((reinterpret_cast<uintptr_t>(copy.data()) + 63) & ~uintptr_t{63});
  std::copy_n(program.image(), program.image_size(), base);
  const DecisionView view = program.view_at(base);
  program = DecisionProgram();
  for (int i = 0; i < 20; ++i) {
    const Bytes frame = frame_with(60, {{12, {0, static_cast<uint8_t>(i % 5)}}, {30, {static_cast<uint8_t>(i)}}});
    EXPECT_EQ(view.match(CheckedWords(frame)), i);
  }
}

TEST(ClassifierErrors, AreClicks) {
  EXPECT_EQ(errors_of({"x"}), "pattern 0: expected a digit\n");
  EXPECT_EQ(errors_of({"-", "12/0800 -"}), "pattern 1: expected a digit\n");
  EXPECT_EQ(errors_of({"!"}), "pattern 0: expected a digit\n");
  EXPECT_EQ(errors_of({"12"}), "pattern 0: expected '/'\n");
  EXPECT_EQ(errors_of({"12 /0800"}), "pattern 0: expected '/'\n");
  EXPECT_EQ(errors_of({"12/"}), "pattern 0: value has less than 2 hex digits\n");
  EXPECT_EQ(errors_of({"12/8"}), "pattern 0: value has less than 2 hex digits\n");
  EXPECT_EQ(errors_of({"12/080"}), "pattern 0: value has odd number of hex digits\n");
  EXPECT_EQ(errors_of({"12/0800%f"}), "pattern 0: mask has too few hex digits\n");
  EXPECT_EQ(errors_of({"12/08%ffff"}), "pattern 0: mask has too many hex digits\n");
  EXPECT_EQ(errors_of({"65531/0800"}), "pattern 0: offset out of range, bound 65532\n");
  EXPECT_EQ(errors_of({"99999999999999999999/08"}), "pattern 0: offset out of range, bound 65532\n");
  EXPECT_EQ(errors_of({"12/080", "-", "12/08z 12"}),
            "pattern 0: value has odd number of hex digits\npattern 2: expected a digit\n");
}

/// Patterns, and what they say about a packet when read clause by clause.
class NaiveClassifier {
 public:
  NaiveClassifier(std::mt19937& random, bool negations) {
    auto pick = [&](int below) { return static_cast<int>(random() % below); };
    const int count = 1 + pick(8);
    for (int i = 0; i < count; ++i) {
      Pattern pattern;
      const int clauses = 1 + pick(4);
      for (int j = 0; j < clauses; ++j) {
        Clause clause;
        clause.negated = negations && pick(4) == 0;
        clause.offset = static_cast<size_t>(pick(3) == 0 ? pick(20) : 12 + pick(3));
        for (int length = 1 + pick(5); length > 0; --length) {
          // Few values and masks, so that patterns imply and contradict each other.
          const uint8_t masks[] = {0xff, 0xff, 0x0f, 0xf0, 0x80, 0x10, 0x00};
          const uint8_t mask = masks[pick(7)];
          clause.mask.push_back(mask);
          clause.value.push_back(static_cast<uint8_t>(mask & (pick(2) * 0x11 | pick(2) * 0x80)));
        }
        pattern.push_back(clause);
      }
      patterns_.push_back(pattern);
    }
  }

  Patterns texts() const {
    Patterns texts;
    for (const Pattern& pattern : patterns_) {
      std::string text;
      for (const Clause& clause : pattern) {
        text += fmt::format("{}{}{}/", text.empty() ? "" : " ", clause.negated ? "!" : "", clause.offset);
        for (uint8_t byte : clause.value) text += fmt::format("{:02x}", byte);
        text += '%';
        for (uint8_t byte : clause.mask) text += fmt::format("{:02x}", byte);
      }
      texts.push_back(text);
    }
    return texts;
  }

  int match(const Bytes& frame) const {
    for (size_t i = 0; i < patterns_.size(); ++i) {
      bool all = true;
      for (const Clause& clause : patterns_[i]) all = all && clause.matches(frame) != clause.negated;
      if (all) return static_cast<int>(i);
    }
    return DecisionView::kDrop;
  }

 private:
  struct Clause {
    bool negated;
    size_t offset;
    Bytes value, mask;

    bool matches(const Bytes& frame) const {
      for (size_t i = 0; i < value.size(); ++i) {
        if (mask[i] == 0) continue;
        if (offset + i >= frame.size() || (frame[offset + i] & mask[i]) != value[i]) return false;
      }
      return true;
    }
  };
  using Pattern = std::vector<Clause>;

  std::vector<Pattern> patterns_;
};

Bytes random_frame(std::mt19937& random, size_t length) {
  const uint8_t values[] = {0x00, 0x11, 0x80, 0x91, 0x10, 0xff};
  Bytes frame(length);
  for (uint8_t& byte : frame) byte = values[random() % 6];
  return frame;
}

TEST(ClassifierProgram, AgreesWithPatternsReadOneByOne) {
  std::mt19937 random(1);
  for (int round = 0; round < 3000; ++round) {
    const NaiveClassifier naive(random, false);
    const DecisionProgram program = compile(naive.texts());
    for (int i = 0; i < 40; ++i) {
      const Bytes frame = random_frame(random, random() % 26);
      ASSERT_EQ(match(program, frame), naive.match(frame))
          << fmt::format("{}\n{}length {}", fmt::join(naive.texts(), ", "), program.text(), frame.size());
    }
  }
}

TEST(ClassifierProgram, AgreesWithNegatedPatternsReadOneByOne) {
  std::mt19937 random(2);
  for (int round = 0; round < 3000; ++round) {
    const NaiveClassifier naive(random, true);
    const DecisionProgram program = compile(naive.texts());
    for (int i = 0; i < 40; ++i) {
      // A frame that ends inside a word may count as too short for all negated tests of that word, as in Click.
      const Bytes frame = random_frame(random, random() % 7 * 4);
      ASSERT_EQ(match(program, frame), naive.match(frame))
          << fmt::format("{}\n{}length {}", fmt::join(naive.texts(), ", "), program.text(), frame.size());
    }
  }
}

}  // namespace
}  // namespace headrace
