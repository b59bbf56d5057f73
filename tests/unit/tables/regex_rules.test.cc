/// The pcre options of real rule sets, against PCRE2 and Vectorscan.

#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <map>

#include "tables/files/text_lines.hh"
#include "tests/support/source_dir.hh"
#include "tests/unit/tables/regex_oracles.hh"

namespace headrace {
namespace {

namespace fs = std::filesystem;

struct Pcre {
  std::string text;
  RegexFlags flags;
  bool operator<(const Pcre& other) const {
    return std::tuple(text, regex_flag_letters(flags)) < std::tuple(other.text, regex_flag_letters(other.flags));
  }
};

/// Each different expression of the rules in a text; the letters that name buffers are left out.
void read_pcres(std::string_view text, std::set<Pcre>& all) {
  static constexpr std::string_view kOption = "pcre:";
  for (size_t at = text.find(kOption); at != std::string_view::npos; at = text.find(kOption, at + 1)) {
    size_t begin = at + kOption.size();
    while (begin < text.size() && (text[begin] == ' ' || text[begin] == '!')) ++begin;
    if (begin + 1 >= text.size() || text[begin] != '"' || text[begin + 1] != '/') continue;
    size_t end = begin + 2;
    while (end < text.size() && text[end] != '"' && text[end] != '\n') end += text[end] == '\\' ? 2 : 1;
    if (end >= text.size() || text[end] != '"') continue;
    const std::string_view body = text.substr(begin + 2, end - begin - 2);
    const size_t slash = body.rfind('/');
    if (slash == std::string_view::npos) continue;
    Pcre pcre{std::string(body.substr(0, slash)), {}};
    for (const char c : body.substr(slash + 1)) parse_regex_flags({&c, 1}, pcre.flags);
    all.insert(std::move(pcre));
  }
}

/// Texts that come near to an expression: its own characters, in its order, with some changed.
class TextMaker {
 public:
  explicit TextMaker(uint64_t seed) : random_(seed) {}
  std::string text(const Pcre& pcre) {
    std::string text;
    if (random_() % 2) text += "GET /index.php?id=1 HTTP/1.1\r\nHost: ";
    for (size_t i = 0; i < pcre.text.size() && text.size() < 300; ++i) {
      const char c = pcre.text[i];
      if (c == '\\' && i + 3 < pcre.text.size() && pcre.text[i + 1] == 'x') {
        text += static_cast<char>(strtol(pcre.text.substr(i + 2, 2).c_str(), nullptr, 16));
        i += 3;
      } else if (c == '\\' && i + 1 < pcre.text.size()) {
        static const std::map<char, char> kFor = {{'d', '7'}, {'s', ' '}, {'w', 'k'}, {'r', '\r'}, {'n', '\n'}};
        const char next = pcre.text[++i];
        text += kFor.count(next) ? kFor.at(next) : next;
      } else if (std::string_view("()?*+^$|[]{}").find(c) == std::string_view::npos) {
        text += c == '.' ? 'x' : c;
      }
      if (random_() % 40 == 0) text += static_cast<char>(random_());
      if (random_() % 40 == 0 && !text.empty()) text.append(random_() % 20, text.back());
    }
    return text;
  }

 private:
  std::mt19937_64 random_;
};

class RegexRules : public ::testing::TestWithParam<const char*> {};

TEST_P(RegexRules, ExpressionsAgainstPcre2AndVectorscan) {
  const fs::path archive = fs::path(kSourceDir).parent_path() / "shared" / "data" / "rules" / GetParam();
  if (!fs::exists(archive)) GTEST_SKIP() << archive << " is not there";
  std::set<Pcre> all;
  {
    const std::string command = "tar -xJOf '" + archive.string() + "'";
    FILE* const pipe = popen(command.c_str(), "r");
    ASSERT_NE(pipe, nullptr);
    std::string text;
    char some[65536];
    for (size_t n; (n = fread(some, 1, sizeof some, pipe)) > 0;) text.append(some, n);
    ASSERT_EQ(pclose(pipe), 0) << command;
    read_pcres(text, all);
  }
  ASSERT_GT(all.size(), 300u);

  std::map<std::string, size_t> reasons;
  size_t exact = 0, candidates = 0, elsewhere = 0, matches = 0, by_vectorscan = 0, vectorscan_missed = 0, unlike = 0;
  const bool sound = VectorscanOracle::sound();
  RegexTable::Limits limits;
  limits.reports = {100000, 1000};
  limits.work = 500'000;
  std::vector<std::pair<size_t, std::string>> largest;
  size_t nth = 0;
  for (const Pcre& pcre : all) {
    SCOPED_TRACE("/" + pcre.text + "/" + regex_flag_letters(pcre.flags));
    Pcre2Oracle oracle(pcre.text, pcre.flags);
    RegexTable table(limits);
    const RegexProblem problem = table.add(pcre.text, pcre.flags, 1);
    // Some expressions are good for older versions of PCRE only.
    if (problem.kind == RegexProblem::Kind::kInvalid || !oracle.good()) {
      ++reasons["invalid: " + (oracle.good() ? problem.reason : oracle.why())];
      if (oracle.good() != (problem.kind != RegexProblem::Kind::kInvalid)) ++unlike;
      continue;
    }
    if (problem.kind == RegexProblem::Kind::kNotRegular) ++reasons[problem.reason];
    table.build();
    const RegexTable::Expression& expression = table.expressions()[0];
    largest.emplace_back(expression.states, pcre.text);
    if (expression.place == RegexTable::Place::kCandidate) ++candidates;
    if (expression.place == RegexTable::Place::kElsewhere) ++elsewhere;
    if (expression.place == RegexTable::Place::kExact) ++exact;
    if (expression.place != RegexTable::Place::kExact && problem.kind == RegexProblem::Kind::kNone) {
      ++reasons["too large"];
    }
    if (++nth % 8 != 0) continue;  // the others would take too long
    TextMaker maker(nth);
    std::unique_ptr<VectorscanOracle> vectorscan;
    if (expression.place == RegexTable::Place::kExact && nth % 32 == 0) {
      vectorscan = std::make_unique<VectorscanOracle>(pcre.text, pcre.flags);
      if (vectorscan->good()) ++by_vectorscan;
    }
    for (int i = 0; i < 4; ++i) {
      const std::string text = maker.text(pcre);
      const Matches mine = matches_of<1>(table.view(), text);
      ASSERT_EQ(matches_of<32>(table.view(), text), mine);
      Ends ends, own;
      if (expression.place == RegexTable::Place::kExact) {
        for (const auto& [end, pattern] : mine) own.insert(end);
        if (oracle.ends(text, ends)) {
          ASSERT_EQ(own, ends);
        }
        if (vectorscan && vectorscan->good()) {
          const Ends theirs = vectorscan->ends(text);
          ASSERT_TRUE(std::includes(own.begin(), own.end(), theirs.begin(), theirs.end()));
          if (sound) {
            ASSERT_EQ(theirs, own);
          }
          vectorscan_missed += own.size() - theirs.size();
        }
        matches += mine.size();
      } else if (expression.place == RegexTable::Place::kCandidate && mine.empty()) {
        // No match is lost: what matches was a candidate.
        ASSERT_FALSE(oracle.matches(text));
      }
    }
  }
  printf(
      "%s: %zu expressions: %zu exact, %zu to confirm, %zu elsewhere; %zu matches; %zu by Vectorscan, which missed "
      "%zu\n",
      GetParam(), all.size(), exact, candidates, elsewhere, matches, by_vectorscan, vectorscan_missed);
  for (const auto& [reason, n] : reasons) printf("  %5zu %s\n", n, reason.c_str());
  std::sort(largest.rbegin(), largest.rend());
  printf("  states: most %zu, median %zu\n", largest.front().first, largest[largest.size() / 2].first);
  EXPECT_GT(exact, all.size() * 7 / 10);
  EXPECT_GT(matches, all.size() / 10);
  EXPECT_EQ(unlike, 0u);
}

INSTANTIATE_TEST_SUITE_P(All, RegexRules, ::testing::Values("et-open-2019-04.tar.xz", "snort-community-2022-02.tar.xz"),
                         [](const auto& info) {
                           return std::string(info.param).substr(0, 2) == "et" ? "ET" : "Snort";
                         });

}  // namespace
}  // namespace headrace
