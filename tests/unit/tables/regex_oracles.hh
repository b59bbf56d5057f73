#pragma once
/// Where the matches of an expression end, by other programs: Vectorscan, and PCRE2's search for all matches.

#define PCRE2_CODE_UNIT_WIDTH 8
#include <hs/hs.h>
#include <pcre2.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tables/regex/regex_table.hh"

namespace headrace {

using Ends = std::set<uint32_t>;
using Matches = std::multiset<std::pair<uint32_t, uint32_t>>;  // end, pattern

class VectorscanOracle {
 public:
  VectorscanOracle(const std::string& text, RegexFlags flags) {
    const unsigned bits = (flags.nocase ? HS_FLAG_CASELESS : 0) | (flags.dotall ? HS_FLAG_DOTALL : 0) |
                          (flags.multiline ? HS_FLAG_MULTILINE : 0);
    const std::string whole = (flags.extended ? "(?x)" : "") + text;
    hs_database_t* database = nullptr;
    hs_compile_error_t* error = nullptr;
    if (hs_compile(whole.c_str(), bits, HS_MODE_BLOCK, nullptr, &database, &error) != HS_SUCCESS) {
      why_ = error->message;
      hs_free_compile_error(error);
      return;
    }
    database_.reset(database);
    hs_scratch_t* scratch = nullptr;
    if (hs_alloc_scratch(database, &scratch) == HS_SUCCESS) scratch_.reset(scratch);
  }
  bool good() const { return scratch_ != nullptr; }
  const std::string& why() const { return why_; }
  /// Vectorscan 5.4.9 on x86, for one, misses matches at the end of a text (VectorCamp/vectorscan issue 317).
  static bool sound() {
    const VectorscanOracle oracle("\\dc+", RegexFlags());
    for (size_t n = 0; n < 130; ++n) {
      if (oracle.ends(std::string(n, 'a') + "1c").empty()) return false;
    }
    return true;
  }

  Ends ends(std::string_view text) const {
    Ends found;
    hs_scan(
        database_.get(), text.data(), static_cast<unsigned>(text.size()), 0, scratch_.get(),
        [](unsigned, unsigned long long, unsigned long long to, unsigned, void* context) {
          static_cast<Ends*>(context)->insert(static_cast<uint32_t>(to));
          return 0;
        },
        &found);
    return found;
  }

 private:
  struct Free {
    void operator()(hs_database_t* p) const { hs_free_database(p); }
    void operator()(hs_scratch_t* p) const { hs_free_scratch(p); }
  };
  std::unique_ptr<hs_database_t, Free> database_;
  std::unique_ptr<hs_scratch_t, Free> scratch_;
  std::string why_;
};

class Pcre2Oracle {
 public:
  Pcre2Oracle(const std::string& text, RegexFlags flags) {
    // Without possessive quantifiers of its own making it finds all matches.
    const uint32_t bits = PCRE2_NO_AUTO_POSSESS | (flags.nocase ? PCRE2_CASELESS : 0) |
                          (flags.dotall ? PCRE2_DOTALL : 0) | (flags.multiline ? PCRE2_MULTILINE : 0) |
                          (flags.extended ? PCRE2_EXTENDED : 0);
    int error = 0;
    PCRE2_SIZE at = 0;
    code_.reset(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(), bits, &error, &at, nullptr));
    if (!code_) {
      PCRE2_UCHAR message[256];
      pcre2_get_error_message(error, message, sizeof message);
      why_ = reinterpret_cast<const char*>(message);
      return;
    }
    data_.reset(pcre2_match_data_create(2048, nullptr));
    workspace_.resize(1 << 16);
  }
  bool good() const { return code_ != nullptr; }
  const std::string& why() const { return why_; }
  /// As Perl would find out.
  bool matches(std::string_view text) {
    return pcre2_match(code_.get(), reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(), 0, 0, data_.get(),
                       nullptr) >= 0;
  }
  /// False when PCRE2 gave up.
  bool ends(std::string_view text, Ends& found) {
    for (size_t start = 0; start <= text.size(); ++start) {
      const int n = pcre2_dfa_match(code_.get(), reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(), start,
                                    PCRE2_ANCHORED, data_.get(), nullptr, workspace_.data(), workspace_.size());
      if (n == PCRE2_ERROR_NOMATCH) continue;
      if (n <= 0) return false;
      const PCRE2_SIZE* const pairs = pcre2_get_ovector_pointer(data_.get());
      for (int i = 0; i < n; ++i) found.insert(static_cast<uint32_t>(pairs[2 * i + 1]));
    }
    return true;
  }

 private:
  struct Free {
    void operator()(pcre2_code* p) const { pcre2_code_free(p); }
    void operator()(pcre2_match_data* p) const { pcre2_match_data_free(p); }
  };
  std::unique_ptr<pcre2_code, Free> code_;
  std::unique_ptr<pcre2_match_data, Free> data_;
  std::vector<int> workspace_;
  std::string why_;
};

/// What a view reports, by a team of some size. The same match reported twice is there twice.
template <uint32_t Size>
Matches matches_of(const RegexView& view, std::string_view text, bool* whole = nullptr) {
  using Team = HostTeam<Size>;
  struct Found {
    std::vector<std::pair<uint32_t, uint32_t>> matches;
  };
  const Team team;
  const PayloadBytes bytes{reinterpret_cast<const uint8_t*>(text.data()), static_cast<uint32_t>(text.size())};
  typename Team::template Lanes<Found> lanes;
  const bool good = view.template scan<Team, Found>(
      team, bytes, lanes,
      [](Found& found, uint32_t pattern, uint32_t end) { found.matches.emplace_back(end, pattern); });
  if (whole) *whole = good;
  Matches all;
  for (const Found& found : lanes.of) all.insert(found.matches.begin(), found.matches.end());
  return all;
}

/// Expressions at random: everything that an automaton can do, over few letters so that they match often.
class RegexMaker {
 public:
  explicit RegexMaker(uint64_t seed) : random_(seed) {}

  std::string expression() { return alternation(3); }
  RegexFlags flags() {
    RegexFlags flags;
    flags.nocase = chance(4);
    flags.dotall = chance(2);
    flags.multiline = chance(3);
    return flags;
  }
  std::string text(size_t most) {
    std::string text;
    for (size_t n = random_() % (most + 1); n > 0; --n) text += "aabbbcA_ \n.1"[random_() % 12];
    return text;
  }

 private:
  bool chance(unsigned n) { return random_() % n == 0; }

  std::string alternation(int depth) {
    std::string all = sequence(depth);
    while (chance(4)) all += '|' + sequence(depth);
    return all;
  }
  std::string sequence(int depth) {
    std::string all;
    do {
      all += item(depth);
    } while (!chance(3));
    return all;
  }
  std::string item(int depth) {
    static constexpr const char* kAssertions[] = {"^", "$", "\\A", "\\z", "\\Z", "\\b", "\\B"};
    if (chance(10)) return kAssertions[random_() % 7];
    std::string one = atom(depth);
    if (!chance(3)) return one;
    static constexpr const char* kQuantifiers[] = {"*", "+", "?", "{2}", "{1,3}", "{2,}", "{0,2}", "{0}", "*?", "+?"};
    return one + kQuantifiers[random_() % 10];
  }
  std::string atom(int depth) {
    static constexpr const char* kAtoms[] = {"a",      "b",           "c",      "A",     ".",      "\\w",
                                             "\\s",    "\\d",         "\\W",    "\\n",   "[ab]",   "[^a]",
                                             "[a-c_]", "[[:alpha:]]", "[^\\n]", "\\x61", "[b\\s]", "\\N"};
    if (depth > 0 && chance(4)) {
      static constexpr const char* kGroups[] = {"(", "(?:", "(?i:", "(?s:", "(?m:", "(?-i:", "(?-s:", "(?P<n>"};
      const bool named = chance(20) && !named_;
      named_ = named_ || named;
      return kGroups[named ? 7 : random_() % 7] + alternation(depth - 1) + ')';
    }
    return kAtoms[chance(2) ? random_() % 4 : random_() % 18];
  }

  std::mt19937_64 random_;
  bool named_ = false;
};

}  // namespace headrace
