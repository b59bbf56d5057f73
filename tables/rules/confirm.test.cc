#include "tables/rules/confirm.hh"

#include <gtest/gtest.h>

#include <chrono>
#include <random>

#include "tables/rules/literal_search.hh"
#include "tables/rules/rule_reader.hh"

namespace headrace::rules {
namespace {

Rule rule_of(const std::string& options) {
  RuleReader reader({});
  reader.read_text("alert tcp any any -> any any (sid:1; " + options + ")", "t");
  RuleSet set = reader.finish();
  for (const RefusedRule& r : set.refused) ADD_FAILURE() << r.text() << ": " << options;
  return set.rules.empty() ? Rule() : set.rules[0];
}

bool matches(const std::string& options, const std::string& payload) {
  WorkLimit limit;
  const Confirmed c = confirm_steps(rule_of(options), payload, limit);
  EXPECT_NE(c, Confirmed::kCut);
  return c == Confirmed::kMatch;
}

TEST(RuleConfirm, Places) {
  EXPECT_TRUE(matches("content:\"abc\";", "xxabc"));
  EXPECT_FALSE(matches("content:\"abc\";", "xxaBc"));
  EXPECT_TRUE(matches("content:\"aBc\"; nocase;", "xxAbC"));
  EXPECT_TRUE(matches("content:\"abc\"; offset:2;", "xxabc") && !matches("content:\"abc\"; offset:3;", "xxabc"));
  EXPECT_TRUE(matches("content:\"abc\"; depth:5;", "xxabc") && !matches("content:\"abc\"; depth:4;", "xxabc"));
  EXPECT_TRUE(matches("content:\"abc\"; offset:1; depth:4;", "xxabc") &&
              !matches("content:\"abc\"; offset:1; depth:3;", "xxabc"));
  EXPECT_TRUE(matches("content:\"abc\"; startswith;", "abcx") && !matches("content:\"abc\"; startswith;", "xabc"));
  EXPECT_TRUE(matches("content:\"abc\"; endswith;", "abcabc") && !matches("content:\"abc\"; endswith;", "abcx"));
  EXPECT_TRUE(matches("content:\"abc\"; startswith; endswith;", "abc") &&
              !matches("content:\"abc\"; startswith; endswith;", "abcabc"));
  EXPECT_TRUE(matches("content:!\"abc\";", "xxab") && !matches("content:!\"abc\";", "xxabc"));
  EXPECT_TRUE(matches("content:!\"abc\"; depth:4;", "xxabc") && !matches("content:!\"abc\"; depth:5;", "xxabc"));
  EXPECT_TRUE(matches("content:\"a\"; content:\"b\"; distance:1;", "a.b") &&
              !matches("content:\"a\"; content:\"b\"; distance:1;", "ab"));
  EXPECT_TRUE(matches("content:\"a\"; content:\"b\"; within:2;", "a.b") &&
              !matches("content:\"a\"; content:\"b\"; within:1;", "a.b"));
  EXPECT_TRUE(matches("content:\"a\"; content:\"b\"; distance:2; within:1;", "a..b") &&
              !matches("content:\"a\"; content:\"b\"; distance:2; within:1;", "a...b"));
  EXPECT_TRUE(matches("content:\"ab\"; content:\"a\"; distance:-2; within:1;", "xab"));
  EXPECT_TRUE(matches("content:\"b\"; content:\"a\"; distance:-9; within:8;", "ab") &&
              matches("content:\"a\"; distance:1;", "ba"));
  // The first "a" has no "b" behind it, the second one does.
  EXPECT_TRUE(matches("content:\"a\"; content:\"b\"; distance:0; within:1;", "a.ab"));
  EXPECT_TRUE(matches("content:\"a\"; content:\"b\"; within:1; content:\"c\"; within:1;", "ab.abc"));
  EXPECT_FALSE(matches("content:\"a\"; content:\"b\"; within:1; content:\"c\"; within:1;", "ab.ac"));
  EXPECT_TRUE(matches("content:\"a\"; content:!\"b\"; within:1;", "ab.ac") &&
              !matches("content:\"a\"; content:!\"b\"; within:1;", "abab"));
  // A content that may be anywhere is nothing to be relative to.
  EXPECT_TRUE(
      matches("content:\"a\"; content:\"zzz\"; fast_pattern:only; content:\"b\"; distance:0; within:1;", "zzzab"));
  EXPECT_FALSE(matches("content:\"a\"; content:\"zzz\"; fast_pattern:only; content:\"b\"; within:1;", "ab"));
}

TEST(RuleConfirm, DataAtAndExpressions) {
  EXPECT_TRUE(matches("isdataat:4;", "12345") && !matches("isdataat:5;", "12345"));
  EXPECT_TRUE(matches("isdataat:!5;", "12345") && !matches("isdataat:!4;", "12345"));
  EXPECT_TRUE(matches("content:\"a\"; isdataat:2,relative;", "a12") &&
              !matches("content:\"a\"; isdataat:3,relative;", "a12"));
  EXPECT_TRUE(matches("content:\"a\"; isdataat:!1,relative;", "aba") &&
              !matches("content:\"a\"; isdataat:!1,relative;", "ab"));
  EXPECT_TRUE(matches("pcre:\"/a.c/\";", "xabc") && !matches("pcre:\"/^a.c/\";", "xabc") &&
              matches("pcre:\"/A.C/i\";", "xabc"));
  EXPECT_TRUE(matches("pcre:\"/a.c/s\";", "a\nc") && !matches("pcre:\"/a.c/\";", "a\nc"));
  EXPECT_TRUE(matches("pcre:\"/^b/m\";", "a\nb") && matches("pcre:\"/a b/x\";", "ab") &&
              matches("pcre:\"/b/A\";", "ba"));
  EXPECT_TRUE(matches("pcre:\"/a$/\";", "a\n") && !matches("pcre:\"/a$/E\";", "a\n"));
  EXPECT_TRUE(matches("pcre:!\"/abc/\";", "abd") && !matches("pcre:!\"/abc/\";", "abc"));
  EXPECT_TRUE(matches("content:\"x\"; pcre:\"/^a/R\";", "xa") && !matches("content:\"x\"; pcre:\"/^a/R\";", "xba"));
  EXPECT_TRUE(matches("content:\"x\"; pcre:\"/^a/R\";", "xbxa"));
  EXPECT_TRUE(matches("pcre:\"/a+/\"; content:\"b\"; within:1;", "a.aab") &&
              !matches("pcre:\"/a/\"; content:\"b\"; within:1;", "a.b"));
  // Greedy: all of "aa"; with /G as few as it can.
  EXPECT_TRUE(matches("pcre:\"/xa+/\"; content:\"a\"; within:1;", "xaaxab") == false);
  EXPECT_TRUE(matches("pcre:\"/xa+/G\"; content:\"a\"; within:1;", "xaab"));
  EXPECT_TRUE(matches("pcre:\"/\\x00\\xff/\";", std::string("a\0\xff", 3)));
}

/// The same question answered by trying all places, with no thought of speed.
class Naive {
 public:
  Naive(const Rule& rule, const std::string& payload) : rule_(rule), payload_(payload) {}

  bool run(size_t i = 0, int last = 0) const {
    if (i == rule_.steps.size()) return true;
    if (const auto* at = std::get_if<DataAt>(&rule_.steps[i])) {
      const int size = static_cast<int>(payload_.size()), offset = static_cast<int>(at->offset);
      const bool there = at->relative ? size - last >= offset : size > offset;
      return there != at->negated && run(i + 1, last);
    }
    const auto& c = std::get<Content>(rule_.steps[i]);
    bool any = false;
    for (int place = 0; place <= static_cast<int>(payload_.size()); ++place) {
      if (!fits(c, place, last)) continue;
      any = true;
      if (c.anywhere ? run(i + 1, last) : !c.negated && run(i + 1, place + static_cast<int>(c.bytes.size())))
        return true;
    }
    return c.negated && !any && run(i + 1, last);
  }

 private:
  bool fits(const Content& c, int place, int last) const {
    const int n = static_cast<int>(c.bytes.size()), end = place + n;
    if (end > static_cast<int>(payload_.size())) return false;
    for (int k = 0; k < n; ++k) {
      const char is = payload_[static_cast<size_t>(place + k)];
      if ((c.nocase ? static_cast<char>(std::tolower(is)) : is) != c.bytes[static_cast<size_t>(k)]) return false;
    }
    if (c.anywhere) return true;
    const int base = (c.relative ? last : 0) + c.from;
    return place >= base && (c.room < 0 || end <= base + c.room) &&
           (!c.ends_with || end == static_cast<int>(payload_.size()));
  }
  const Rule& rule_;
  const std::string& payload_;
};

TEST(RuleConfirm, AgreesWithTryingAllPlaces) {
  std::mt19937 random(1);
  const auto below = [&](uint32_t n) { return random() % n; };
  const auto text = [&](size_t n, uint32_t letters) {
    std::string s;
    for (size_t i = 0; i < n; ++i) s += "abABc"[below(letters)];
    return s;
  };
  int matched = 0;
  for (int round = 0; round < 4000; ++round) {
    std::string options;
    const uint32_t letters = 2 + below(4);
    const uint32_t steps = 1 + below(5);
    for (uint32_t i = 0; i < steps; ++i) {
      if (below(6) == 0) {
        options += std::string("isdataat:") + (below(2) ? "!" : "") + std::to_string(below(12)) +
                   (below(2) ? ",relative; " : "; ");
        continue;
      }
      const std::string bytes = text(1 + below(3), letters);
      const bool negated = below(5) == 0;
      options += std::string("content:") + (negated ? "!\"" : "\"") + bytes + "\"; ";
      if (below(3) == 0) options += "nocase; ";
      const std::string room = std::to_string(bytes.size() + below(8));
      switch (below(8)) {
        case 0:
          options += "offset:" + std::to_string(below(10)) + "; ";
          break;
        case 1:
          options += "depth:" + room + "; offset:" + std::to_string(below(5)) + "; ";
          break;
        case 2:
          options += "distance:" + std::to_string(static_cast<int>(below(8)) - 4) + "; ";
          break;
        case 3:
          options += "within:" + room + "; ";
          break;
        case 4:
          options += "within:" + room + "; distance:" + std::to_string(static_cast<int>(below(8)) - 4) + "; ";
          break;
        case 5:
          options += below(2) ? "startswith; " : "endswith; ";
          break;
        case 6:
          if (!negated) options += "fast_pattern:only; ";
          break;
        default:
          break;
      }
    }
    const Rule rule = rule_of(options);
    for (int k = 0; k < 8; ++k) {
      const std::string payload = text(below(40), letters);
      WorkLimit limit;
      const bool expected = Naive(rule, payload).run();
      ASSERT_EQ(confirm_steps(rule, payload, limit), expected ? Confirmed::kMatch : Confirmed::kNoMatch)
          << options << "on '" << payload << "'";
      matched += expected;
    }
  }
  EXPECT_GT(matched, 3000);
  EXPECT_LT(matched, 29000);
}

TEST(RuleConfirm, FindsLiteralsAtEveryPlace) {
  for (size_t length : {1, 2, 15, 16, 17, 33, 80})
    for (size_t n : {1, 2, 3, 16, 17}) {
      if (n > length) continue;
      for (size_t place = 0; place + n <= length; ++place) {
        std::string text(length, '.'), literal;
        for (size_t i = 0; i < n; ++i) literal += static_cast<char>('a' + i);
        text.replace(place, n, literal);
        EXPECT_EQ(find_literal(text, literal, 0, false), place);
        EXPECT_EQ(find_literal(text, literal, static_cast<uint32_t>(place), true), place);
        EXPECT_EQ(find_literal(text, literal, static_cast<uint32_t>(place) + 1, false), kNotFound);
        for (char& c : text) c = static_cast<char>(std::toupper(c));
        EXPECT_EQ(find_literal(text, literal, 0, true), place);
        EXPECT_EQ(find_literal(text, literal, 0, false), kNotFound);
      }
    }
  // Only letters have two cases: '@' and '`' differ in the same bit as 'A' and 'a'.
  EXPECT_EQ(find_literal("xx@yy", "`", 0, true), kNotFound);
  EXPECT_EQ(find_literal("aaaaaaaaaaaaaaaaaaaaaaaaaaaaa[", "{", 0, true), kNotFound);
}

TEST(RuleConfirm, RepetitionsDoNotHideAMatch) {
  // Attackers repeat what a rule's content matches in front of what its expression matches.
  for (const int repetitions : {30, 31, 300}) {
    std::string payload;
    for (int i = 0; i < repetitions; ++i) payload += "user=x&";
    EXPECT_TRUE(matches("content:\"user=\"; pcre:\"/^admin[0-9]/R\";", payload + "user=admin1")) << repetitions;
    EXPECT_TRUE(matches("pcre:\"/user=/\"; content:\"admin\"; within:5;", payload + "user=admin1")) << repetitions;
    EXPECT_FALSE(matches("content:\"user=\"; pcre:\"/^admin[0-9]/R\";", payload + "user=admin")) << repetitions;
  }
  // The same with texts that make the expression backtrack much, or until it gives up, as many as fit into a packet.
  const auto found = [](const std::string& options, const std::string& payload) {
    WorkLimit limit;
    return confirm_steps(rule_of(options), payload, limit);
  };
  for (const int n : {6, 7, 8, 9, 10, 11, 12, 13, 14, 20, 40}) {
    std::string payload;
    while (payload.size() + 20 + static_cast<size_t>(n) < 1460)
      payload += "x" + std::string(static_cast<size_t>(n), 'a') + "c";
    for (const char* regex : {"/^(a+)+[bd]/R", "/(a+)+b[^c]/R", "/^(a|aa)+[bd]/R"}) {
      const std::string options = std::string("content:\"x\"; pcre:\"") + regex + "\";";
      EXPECT_EQ(found(options, payload + "xaabd"), Confirmed::kMatch) << n << regex;
      EXPECT_NE(found(options, payload + "xaa"), Confirmed::kMatch) << n << regex;
    }
  }
  // A match is told although a try before it gave up; without a match that try makes the answer uncertain.
  const std::string costly = "x" + std::string(40, 'a') + "c";
  EXPECT_EQ(found("content:\"x\"; pcre:\"/^(a+)+[bd]/R\";", costly + "xab"), Confirmed::kMatch);
  EXPECT_EQ(found("content:\"x\"; pcre:\"/^(a+)+[bd]/R\";", costly + "xac"), Confirmed::kCut);
  // What is not known to be absent is not absent.
  EXPECT_EQ(found("content:\"x\"; pcre:!\"/^(a+)+[bd]/R\";", costly), Confirmed::kCut);
  EXPECT_EQ(found("content:\"x\"; pcre:!\"/^(a+)+[bd]/R\";", costly + "xac"), Confirmed::kMatch);
}

TEST(RuleConfirm, WorkIsLimited) {
  const std::string a(1460, 'a');
  // Each content tries each place of the one before it.
  std::string deep = "content:\"a\"; ";
  for (int i = 0; i < 30; ++i) deep += "content:\"a\"; within:40; ";
  deep += "content:\"b\"; within:40;";
  std::string shifting;
  for (int i = 0; i < 20; ++i) shifting += "pcre:\"/a+?/R\"; ";
  // [^a] and the like: PCRE2 would see at once that a plain "b" is not there.
  const std::string evil[] = {deep,
                              "pcre:\"/(a+)+[^a]/\"; ",
                              "pcre:\"/(a|aa)+[^a]/\"; ",
                              "pcre:\"/(.*)(.*)(.*)(.*)[^a]/\";",
                              shifting + "content:\"b\"; within:1;",
                              "pcre:\"/a/\"; pcre:\"/^a*a*a*a*a*[^a]/R\";",
                              "content:\"a\"; pcre:\"/^.{0,30}[^a]/R\";",
                              "content:\"a\"; pcre:\"/^(a+)+[^a]/R\";",
                              "content:\"a\"; pcre:\"/^(([a-z])+.)+[A-Z]([a-z])+$/R\";",
                              "content:\"a\"; pcre:\"/(a|aa)+[^a]/R\";"};
  for (const std::string& options : evil) {
    const Rule rule = rule_of(options);
    WorkLimit limit;
    const auto start = std::chrono::steady_clock::now();
    const Confirmed c = confirm_steps(rule, a, limit);
    const double ms = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
    std::printf("%.2f ms, %u units: %s\n", ms, WorkLimit::kUnits - limit.left(), options.substr(0, 50).c_str());
    EXPECT_NE(c, Confirmed::kMatch);
    EXPECT_LT(ms, 200) << options;  // on any machine, with any sanitizer
  }
  WorkLimit limit;
  EXPECT_EQ(confirm_steps(rule_of(deep), a, limit), Confirmed::kCut);
  EXPECT_FALSE(limit.exhausted());  // others may be tried
  for (int i = 0; i < 10; ++i) EXPECT_EQ(confirm_steps(rule_of(deep), a, limit), Confirmed::kCut);
  EXPECT_TRUE(limit.exhausted());
}

}  // namespace
}  // namespace headrace::rules
