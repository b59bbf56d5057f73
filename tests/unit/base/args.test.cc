#include "headrace/args.hh"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace other {

/// A value type of an element author, outside of namespace headrace.
struct Point {
  int x = 0, y = 0;
};

bool parse_argument(std::string_view text, Point& out, const headrace::ArgContext& context) {
  const size_t colon = text.find(':');
  if (colon == std::string_view::npos) return context.error("expected 'X:Y'");
  Point point;
  if (!headrace::parse_argument(text.substr(0, colon), point.x, context)) return false;
  if (!headrace::parse_argument(text.substr(colon + 1), point.y, context)) return false;
  out = point;
  return true;
}

}  // namespace other

namespace headrace {
namespace {

using Texts = std::vector<std::string>;

class ArgsTest : public ::testing::Test {
 protected:
  Args make(Texts texts) { return Args(std::move(texts), nullptr, errors); }
  Args make(std::string_view text) { return Args::from_text(text, nullptr, errors); }

  Errors errors;
  int a = -1, b = -1, c = -1;
};

TEST_F(ArgsTest, NoArguments) {
  EXPECT_TRUE(make("").complete().ok());
  EXPECT_TRUE(make("").read("A", a).read_p("B", b).complete().ok());
  EXPECT_EQ(a, -1);
  EXPECT_EQ(b, -1);
  EXPECT_EQ(errors.str(), "");
}

TEST_F(ArgsTest, KeywordsInAnyOrder) {
  EXPECT_TRUE(make("C 3, A 1, B 2").read("A", a).read_m("B", b).read_p("C", c).complete().ok());
  EXPECT_EQ(a, 1);
  EXPECT_EQ(b, 2);
  EXPECT_EQ(c, 3);
}

TEST_F(ArgsTest, PositionsThenKeywords) {
  EXPECT_TRUE(make("1, 2, C 3").read_mp("A", a).read_p("B", b).read("C", c).complete().ok());
  EXPECT_EQ(a, 1);
  EXPECT_EQ(b, 2);
  EXPECT_EQ(c, 3);
}

TEST_F(ArgsTest, KeywordForPositionalArgument) {
  EXPECT_TRUE(make("1, C 3").read_p("A", a).read_p("B", b).read_p("C", c).complete().ok());
  EXPECT_EQ(a, 1);
  EXPECT_EQ(b, -1);
  EXPECT_EQ(c, 3);
}

TEST_F(ArgsTest, NothingIsPositionalBehindAUsedKeyword) {
  EXPECT_FALSE(make("A 1, 2").read("A", a).read_p("B", b).complete().ok());
  EXPECT_EQ(errors.str(), "too many arguments\n");
  EXPECT_EQ(b, -1);
}

TEST_F(ArgsTest, MandatoryPositionTakesTextThatLooksLikeAKeyword) {
  std::string pattern;
  EXPECT_TRUE(make("allow all").read_mp("PATTERN", pattern, AnyArg{}).complete().ok());
  EXPECT_EQ(pattern, "allow all");
}

TEST_F(ArgsTest, OptionalPositionDoesNot) {
  std::string label = "none";
  EXPECT_FALSE(make("hello world").read_p("LABEL", label).complete().ok());
  EXPECT_EQ(errors.str(), "hello: unknown argument\n(valid keywords are LABEL)\n");
  EXPECT_EQ(label, "none");
}

TEST_F(ArgsTest, LastOccurrenceOfAKeywordCounts) {
  EXPECT_TRUE(make("A 1, A 2, A 3").read("A", a).complete().ok());
  EXPECT_EQ(a, 3);
}

TEST_F(ArgsTest, KeywordBehindItsOwnPositionCounts) {
  EXPECT_TRUE(make("1, A 2").read_p("A", a).complete().ok());
  EXPECT_EQ(a, 2);
}

TEST_F(ArgsTest, KeywordsAreCaseSensitiveAndWhole) {
  EXPECT_FALSE(make("a 1, AB 2").read("A", a).complete().ok());
  EXPECT_EQ(errors.str(), "a: unknown argument\nAB: unknown argument\n(valid keywords are A)\n");
}

TEST_F(ArgsTest, KeywordCharacters) {
  EXPECT_TRUE(make("a.b:c?d!_9 5").read("a.b:c?d!_9", a).complete().ok());
  EXPECT_EQ(a, 5);
  // Neither a digit in front nor a dash makes a keyword.
  std::string first, second;
  EXPECT_TRUE(make("9A 5, A-B 6").read_p("X", first, AnyArg{}).read_p("Y", second, AnyArg{}).complete().ok());
  EXPECT_EQ(first, "9A 5");
  EXPECT_EQ(second, "A-B 6");
}

TEST_F(ArgsTest, BareKeywordIsAPositionalValue) {
  std::string word;
  EXPECT_TRUE(make("ACTIVE").read_p("WORD", word).read("ACTIVE", a).complete().ok());
  EXPECT_EQ(word, "ACTIVE");
  EXPECT_EQ(a, -1);
}

TEST_F(ArgsTest, ValueMayFollowAnySpace) {
  EXPECT_TRUE(make(Texts{"A \t\n 7"}).read("A", a).complete().ok());
  EXPECT_EQ(a, 7);
}

TEST_F(ArgsTest, MissingMandatoryArguments) {
  EXPECT_FALSE(make("").read_m("A", a).read_mp("B", b).complete().ok());
  EXPECT_EQ(errors.str(), "A: required argument missing\nB: required argument missing\n");
}

TEST_F(ArgsTest, EmptyArgumentIsNotGiven) {
  bool given = true;
  EXPECT_TRUE(make(",2").read_p_status("A", a, given).read_p("B", b).complete().ok());
  EXPECT_FALSE(given);
  EXPECT_EQ(a, -1);
  EXPECT_EQ(b, 2);
  EXPECT_FALSE(make(",2").read_mp("A", a).read_p("B", b).complete().ok());
  EXPECT_EQ(errors.str(), "A: required argument missing\n");
}

TEST_F(ArgsTest, LeftoversInOneRun) {
  EXPECT_FALSE(make("1, X y, 5, Z w").read("BURST", a).read_p("LIMIT", b).read("PATTERN*", c).complete().ok());
  EXPECT_EQ(errors.str(),
            "X: unknown argument\nZ: unknown argument\n(valid keywords are BURST, LIMIT)\ntoo many arguments\n");
  EXPECT_EQ(errors.error_count(), 3);
  EXPECT_EQ(b, -1);
}

TEST_F(ArgsTest, NoHintWithoutKeywords) {
  EXPECT_FALSE(make("1, X y").complete().ok());
  EXPECT_EQ(errors.str(), "X: unknown argument\ntoo many arguments\n");
}

TEST_F(ArgsTest, EveryMistakeIsReportedAndNothingAssigned) {
  bool flag = false;
  EXPECT_FALSE(make("5, A x, FLAG maybe, B 300, NEW 1")
                   .read_p("C", c)
                   .read("A", a)
                   .read("B", b, Between{0, 255})
                   .read("FLAG", flag)
                   .read_m("MORE", a)
                   .complete()
                   .ok());
  EXPECT_EQ(
      errors.str(),
      "A: expected an integer\nB: out of range, bound 255\nFLAG: expected true or false\nMORE: required argument missing\n"
      "NEW: unknown argument\n(valid keywords are C, A, B, FLAG, MORE)\n");
  EXPECT_EQ(c, -1);
}

TEST_F(ArgsTest, ErrorsStandInTheirContext) {
  {
    Errors::Context context(errors, {"router.click", 3}, "While configuring 'q :: Queue':");
    EXPECT_FALSE(make("CAPACITY x").read_p("CAPACITY", a).complete().ok());
  }
  EXPECT_EQ(errors.str(), "router.click:3: While configuring 'q :: Queue':\n  CAPACITY: expected an integer\n");
}

TEST_F(ArgsTest, AssignedOnlyByComplete) {
  Args args = make("A 1");
  args.read("A", a);
  EXPECT_EQ(a, -1);
  EXPECT_TRUE(args.ok());
  EXPECT_TRUE(args.complete().ok());
  EXPECT_EQ(a, 1);
}

TEST_F(ArgsTest, NeverAssignedWithoutComplete) {
  make("A 1").read("A", a);
  EXPECT_EQ(a, -1);
}

TEST_F(ArgsTest, CompleteTwiceReportsOnce) {
  Args args = make("X 1");
  EXPECT_FALSE(args.complete().ok());
  EXPECT_FALSE(args.complete().ok());
  EXPECT_EQ(errors.error_count(), 1);
}

TEST_F(ArgsTest, StatusTellsWhatWasGiven) {
  bool given_a = true, given_b = false, given_c = true, given_d = true;
  Args args = make("1, B 2, D x");
  args.read_status("A", a, given_a)
      .read_p_status("P", c, given_c)
      .read_status("B", b, Between{0, 9}, given_b)
      .read_status("D", a, given_d);
  EXPECT_FALSE(given_a);
  EXPECT_TRUE(given_b);
  EXPECT_TRUE(given_c);
  EXPECT_FALSE(given_d);
  EXPECT_FALSE(args.ok());
}

TEST_F(ArgsTest, ReadOrSet) {
  EXPECT_TRUE(
      make("7").read_or_set("A", a, 5).read_or_set_p("B", b, 6).read_or_set("C", c, Between{0, 9}, 8).complete().ok());
  EXPECT_EQ(a, 5);
  EXPECT_EQ(b, 7);
  EXPECT_EQ(c, 8);
  std::string text = "old";
  EXPECT_TRUE(make("").read_or_set("T", text, "new").complete().ok());
  EXPECT_EQ(text, "new");
}

TEST_F(ArgsTest, ReadAll) {
  std::vector<int> values{9};
  EXPECT_TRUE(make("V 1, A 5, V 2, V 3").read_all("V", values).read("A", a).complete().ok());
  EXPECT_EQ(values, (std::vector<int>{1, 2, 3}));
  EXPECT_EQ(a, 5);
  EXPECT_TRUE(make("").read_all("V", values).complete().ok());
  EXPECT_TRUE(values.empty());
}

TEST_F(ArgsTest, ReadAllReportsEachBadValue) {
  std::vector<int> values{9};
  EXPECT_FALSE(make("V 1, V x, V 300").read_all("V", values, Between{0, 255}).complete().ok());
  EXPECT_EQ(errors.str(), "V: expected an integer\nV: out of range, bound 255\n");
  EXPECT_EQ(values, (std::vector<int>{9}));
}

TEST_F(ArgsTest, ConsumeRestTakesWhatIsLeft) {
  Texts rest{"old"};
  Args args = make("TYPE 1, allow src 1.2.3.4, \"x, y\", deny all, A 2");
  args.read("TYPE", a).read("A", b).consume_rest(rest);
  EXPECT_EQ(rest, (Texts{"allow src 1.2.3.4", "\"x, y\"", "deny all"}));
  EXPECT_EQ(args.remaining(), 0u);
  EXPECT_TRUE(args.complete().ok());
  EXPECT_EQ(a, 1);
  EXPECT_EQ(b, 2);
}

TEST_F(ArgsTest, ConsumeGoesOnWithTheRest) {
  Args args = make("1, A 2, 3");
  EXPECT_TRUE(args.read_p("X", c).read("A", a).consume().ok());
  EXPECT_EQ(c, 1);
  EXPECT_EQ(a, 2);
  EXPECT_EQ(args.remaining(), 1u);
  EXPECT_TRUE(args.read_mp("B", b).complete().ok());
  EXPECT_EQ(b, 3);
}

TEST_F(ArgsTest, FailureLastsAcrossConsume) {
  Args args = make("A x, B 2");
  EXPECT_FALSE(args.read("A", a).consume().ok());
  EXPECT_FALSE(args.read("B", b).complete().ok());
  EXPECT_EQ(errors.str(), "A: expected an integer\n");
  EXPECT_EQ(b, -1);
}

TEST_F(ArgsTest, FromWords) {
  std::string name;
  EXPECT_TRUE(Args::from_words("5 'a b' 7", nullptr, errors)
                  .read_mp("A", a)
                  .read_mp("NAME", name)
                  .read_p("B", b)
                  .complete()
                  .ok());
  EXPECT_EQ(a, 5);
  EXPECT_EQ(name, "a b");
  EXPECT_EQ(b, 7);
}

TEST_F(ArgsTest, PositionsWithoutAName) {
  EXPECT_FALSE(make("5, x").read_p(nullptr, a).read_p("", b).complete().ok());
  EXPECT_EQ(errors.str(), "expected an integer\n");
}

TEST_F(ArgsTest, TypesOfAnElementAuthor) {
  other::Point point;
  EXPECT_TRUE(make("3:4").read_mp("POINT", point).complete().ok());
  EXPECT_EQ(point.x, 3);
  EXPECT_EQ(point.y, 4);
  EXPECT_FALSE(make("34").read_mp("POINT", point).complete().ok());
  EXPECT_FALSE(make("3:y").read_mp("POINT", point).complete().ok());
  EXPECT_EQ(errors.str(), "POINT: expected 'X:Y'\nPOINT: expected an integer\n");
  std::vector<other::Point> points;
  EXPECT_TRUE(make("POINTS 1:2 3:4").read("POINTS", points).complete().ok());
  EXPECT_EQ(points.size(), 2u);
}

TEST_F(ArgsTest, ParserThatReportsAnErrorFailsEvenIfItReturnsTrue) {
  struct Careless {
    bool parse(std::string_view, int& out, const ArgContext& context) const {
      context.error("no good");
      out = 5;
      return true;
    }
  };
  EXPECT_FALSE(make("A 1").read("A", a, Careless{}).complete().ok());
  EXPECT_EQ(errors.str(), "A: no good\n");
  EXPECT_EQ(a, -1);
}

TEST_F(ArgsTest, WarningsDoNotFail) {
  struct Warner {
    bool parse(std::string_view text, int& out, const ArgContext& context) const {
      context.warning("argument deprecated");
      return parse_argument(text, out, context);
    }
  };
  EXPECT_TRUE(make("A 1").read("A", a, Warner{}).complete().ok());
  EXPECT_EQ(errors.str(), "warning: A: argument deprecated\n");
  EXPECT_EQ(a, 1);
}

TEST_F(ArgsTest, ErrorsOfTheContextBearNoKeyword) {
  Args args = make("A 1");
  args.read("A", a);
  EXPECT_FALSE(parse_argument("x", b, args.context()));
  EXPECT_EQ(errors.str(), "expected an integer\n");
}

TEST_F(ArgsTest, TextIsNeverAFormat) {
  Choice<int> choice{{"{}", 1}};
  EXPECT_FALSE(make(Texts{"A {0}%s", "B{ 1", "C? {"}).read("A", a, choice).complete().ok());
  EXPECT_EQ(
      errors.str(),
      "A: unknown value, expected one of: {}\nC?: unknown argument\n(valid keywords are A)\ntoo many arguments\n");
}

}  // namespace
}  // namespace headrace
