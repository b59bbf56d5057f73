#include "tables/regex/regex_table.hh"

#include <gtest/gtest.h>

#include "tests/unit/tables/regex_oracles.hh"

namespace headrace {
namespace {

/// The same matches from teams of every size.
Matches all_teams(const RegexView& view, std::string_view text) {
  const Matches alone = matches_of<1>(view, text);
  EXPECT_EQ(matches_of<2>(view, text), alone);
  EXPECT_EQ(matches_of<7>(view, text), alone);
  EXPECT_EQ(matches_of<32>(view, text), alone);
  return alone;
}

Matches matches_from(const Ends& ends, uint32_t pattern) {
  Matches all;
  for (const uint32_t end : ends) all.emplace(end, pattern);
  return all;
}

RegexTable::Limits generous() {
  RegexTable::Limits limits;
  limits.reports = {100000, 1000};
  return limits;
}

TEST(RegexTable, RandomExpressionsAgainstVectorscanAndPcre2) {
  size_t compiled = 0, refused = 0, not_by_vectorscan = 0, found = 0, missed = 0;
  for (uint64_t seed = 1; seed <= 250; ++seed) {
    RegexMaker maker(seed);
    const std::string expression = maker.expression();
    const RegexFlags flags = maker.flags();
    SCOPED_TRACE("seed " + std::to_string(seed) + ": /" + expression + "/" + regex_flag_letters(flags));
    Pcre2Oracle pcre(expression, flags);
    RegexTable table(generous());
    const RegexProblem problem = table.add(expression, flags, 5);
    ASSERT_EQ(pcre.good(), problem.kind != RegexProblem::Kind::kInvalid) << pcre.why() << problem.text();
    if (problem.kind != RegexProblem::Kind::kNone) {
      ++refused;
      continue;
    }
    table.build();
    ASSERT_EQ(table.expressions()[0].place, RegexTable::Place::kExact) << table.expressions()[0].reason;
    const VectorscanOracle vectorscan(expression, flags);
    if (vectorscan.good()) {
      ++compiled;
    } else {
      ++not_by_vectorscan;
    }
    for (int i = 0; i < 12; ++i) {
      const std::string text = maker.text(i < 8 ? 12 : 90);
      SCOPED_TRACE("in \"" + text + "\"");
      const Matches mine = all_teams(table.view(), text);
      found += mine.size();
      Ends ends;
      ASSERT_TRUE(pcre.ends(text, ends));
      ASSERT_EQ(mine, matches_from(ends, 5)) << "PCRE2";
      if (!vectorscan.good()) continue;
      const Ends theirs = vectorscan.ends(text);
      if (VectorscanOracle::sound()) {
        ASSERT_EQ(theirs, ends) << "Vectorscan";
      } else {
        ASSERT_TRUE(std::includes(ends.begin(), ends.end(), theirs.begin(), theirs.end())) << "Vectorscan";
        missed += ends.size() - theirs.size();
      }
    }
  }
  printf("%zu expressions also by Vectorscan (%s), which missed %zu; %zu only by PCRE2; %zu refused; %zu matches\n",
         compiled, hs_version(), missed, not_by_vectorscan, refused, found);
  EXPECT_GT(compiled, 75u);
  EXPECT_GT(not_by_vectorscan, 60u);
  EXPECT_GT(found, 3500u);
  EXPECT_LE(missed, found / 500);
}

/// PCRE2 and our table take or refuse the same expression, and then find the same in each text.
void expect_as_pcre2(const std::string& expression, const std::vector<std::string>& texts) {
  SCOPED_TRACE(::testing::PrintToString(expression));
  Pcre2Oracle pcre(expression, {});
  RegexTable table(generous());
  const RegexProblem problem = table.add(expression, {}, 5);
  ASSERT_EQ(pcre.good(), problem.kind == RegexProblem::Kind::kNone) << pcre.why() << problem.text();
  if (!pcre.good()) return;
  table.build();
  for (const std::string& text : texts) {
    Ends ends;
    ASSERT_TRUE(pcre.ends(text, ends));
    EXPECT_EQ(all_teams(table.view(), text), matches_from(ends, 5)) << ::testing::PrintToString(text);
  }
}

TEST(RegexTable, HyphensInClassesAgainstPcre2) {
  std::vector<std::string> texts;
  for (unsigned byte = 0; byte < 256; ++byte) texts.push_back({static_cast<char>(byte), 'x', ']'});
  for (const char* const expression :
       {"[b\\E-d]",         "[\\Qb\\E-d]",   "[\\Qb\\E-a]",   "[\\Qb-d\\E]",     "[b-\\Qd\\E]",  "[b-\\Ed]",
        "[\\d\\E-a]",       "[\\Q\\E-a]",    "[b\\Q-\\Ed]",   "[b\\E-]",         "[b\\E-\\d]",   "[b\\Q\\E\\E-d]",
        "[[:digit:]\\E-a]", "[[:digit:]-a]", "[\\d-a]",       "[\\d-]",          "[b-d\\E-f]",   "[b-d-f]",
        "[b-d--f]",         "[b\\Qd\\E-f]",  "[b-\\E]",       "[b-\\Q\\E]",      "[b-\\Q\\E]x]", "[a\\E]b]",
        "[\\E]b]",          "[^\\E]b]",      "[b-\\E-]",      "[]-a]",           "[--/]",        "[-\\E-a]",
        "[!-\\Q-\\E-9]",    "[^b-\\Q\\E]",   "[b-[:digit:]]", "[\\x41\\E-\\x43]"})
    expect_as_pcre2(expression, texts);
}

TEST(RegexTable, BytesThatFlagXIgnoresAgainstPcre2) {
  for (unsigned byte = 1; byte < 256; ++byte) {
    const std::string between(1, static_cast<char>(byte));
    expect_as_pcre2("(?x)a" + between + "b", {"ab", "a" + between + "b", "b"});
  }
}

TEST(RegexTable, SetsReportWhatTheirExpressionsReport) {
  for (uint64_t seed = 1; seed <= 30; ++seed) {
    RegexMaker maker(seed + 5000);
    RegexTable table(generous());
    std::vector<std::pair<uint32_t, Pcre2Oracle>> oracles;
    for (uint32_t number = 0; number < 20; ++number) {
      const std::string expression = maker.expression();
      const RegexFlags flags = maker.flags();
      if (table.add(expression, flags, number * 3).kind == RegexProblem::Kind::kNone) {
        oracles.emplace_back(number * 3, Pcre2Oracle(expression, flags));
      }
    }
    table.build();
    SCOPED_TRACE("seed " + std::to_string(seed) + ": " + table.note());
    std::set<uint32_t> exact;
    for (const RegexTable::Expression& e : table.expressions()) {
      if (e.place == RegexTable::Place::kExact) exact.insert(e.number);
    }
    for (int i = 0; i < 20; ++i) {
      const std::string text = maker.text(60);
      Matches expected;
      for (auto& [number, oracle] : oracles) {
        if (!exact.count(number)) continue;
        Ends ends;
        ASSERT_TRUE(oracle.ends(text, ends));
        expected.merge(matches_from(ends, number));
      }
      Matches mine = all_teams(table.view(), text);
      for (auto at = mine.begin(); at != mine.end();) at = at->second & RegexView::kCandidate ? mine.erase(at) : ++at;
      ASSERT_EQ(mine, expected) << "in \"" << text << "\"";
    }
  }
}

}  // namespace
}  // namespace headrace
