// An expression and a text, held against PCRE2: the first byte chooses flags, a newline-free line is the expression,
// the rest the text. What the parser takes PCRE2 must take, too, and matches must end in the same places.

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "tables/regex/regex_table.hh"

namespace {

using namespace headrace;

void require(bool condition) {
  if (!condition) std::abort();
}

struct FreeCode {
  void operator()(pcre2_code* code) const { pcre2_code_free(code); }
};
using Code = std::unique_ptr<pcre2_code, FreeCode>;

/// Ends by PCRE2; false when it gave up.
bool ends_of(const pcre2_code* code, std::string_view text, std::set<uint32_t>& ends) {
  pcre2_match_data* const data = pcre2_match_data_create(512, nullptr);
  pcre2_match_context* const context = pcre2_match_context_create(nullptr);
  pcre2_set_match_limit(context, 20000);
  pcre2_set_depth_limit(context, 100);
  static std::vector<int> workspace(20000);
  bool good = true;
  for (size_t start = 0; good && start <= text.size(); ++start) {
    const int n = pcre2_dfa_match(code, reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(), start, PCRE2_ANCHORED,
                                  data, context, workspace.data(), workspace.size());
    if (n == PCRE2_ERROR_NOMATCH) continue;
    good = n > 0;
    for (int i = 0; i < n; ++i) ends.insert(static_cast<uint32_t>(pcre2_get_ovector_pointer(data)[2 * i + 1]));
  }
  pcre2_match_context_free(context);
  pcre2_match_data_free(data);
  return good;
}

template <uint32_t Size>
std::set<uint32_t> own_ends(const RegexView& view, std::string_view text, bool& whole) {
  using Team = HostTeam<Size>;
  using Ends = std::vector<uint32_t>;
  const Team team;
  typename Team::template Lanes<Ends> lanes;
  const PayloadBytes bytes{reinterpret_cast<const uint8_t*>(text.data()), static_cast<uint32_t>(text.size())};
  whole = view.template scan<Team, Ends>(team, bytes, lanes,
                                         [](Ends& ends, uint32_t, uint32_t end) { ends.push_back(end); });
  std::set<uint32_t> all;
  size_t reported = 0;
  for (const Ends& ends : lanes.of) {
    all.insert(ends.begin(), ends.end());
    reported += ends.size();
  }
  require(!whole || reported == all.size());  // once each
  return all;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  RegexFlags flags;
  flags.nocase = data[0] & 1;
  flags.dotall = data[0] & 2;
  flags.multiline = data[0] & 4;
  flags.extended = data[0] & 8;
  const std::string_view input(reinterpret_cast<const char*>(data) + 1, size - 1);
  const size_t line = input.find('\n');
  const std::string_view expression = input.substr(0, line);
  const std::string_view text = line == std::string_view::npos ? std::string_view() : input.substr(line + 1, 100);
  if (expression.size() > 100) return 0;

  RegexTable::Limits limits;
  limits.states = 2000;
  limits.work = 300000;
  RegexTable table(limits);
  const RegexProblem problem = table.add(expression, flags, 0);
  require(problem.position <= expression.size());
  if (problem.kind == RegexProblem::Kind::kInvalid) return 0;
  table.build();
  const RegexTable::Expression& added = table.expressions()[0];

  const uint32_t options = PCRE2_NO_AUTO_POSSESS | PCRE2_NEVER_UTF | (flags.nocase ? PCRE2_CASELESS : 0) |
                           (flags.dotall ? PCRE2_DOTALL : 0) | (flags.multiline ? PCRE2_MULTILINE : 0) |
                           (flags.extended ? PCRE2_EXTENDED : 0);
  int fault = 0;
  PCRE2_SIZE at = 0;
  const Code code(
      pcre2_compile(reinterpret_cast<PCRE2_SPTR>(expression.data()), expression.size(), options, &fault, &at, nullptr));
  if (!code) {
    // PCRE2 has limits of its own, and knows whether references lead anywhere.
    require(problem.kind == RegexProblem::Kind::kNotRegular || fault == PCRE2_ERROR_PATTERN_TOO_LARGE ||
            fault == PCRE2_ERROR_PATTERN_TOO_COMPLICATED || fault == PCRE2_ERROR_DUPLICATE_SUBPATTERN_NAME);
    return 0;
  }
  if (added.place == RegexTable::Place::kElsewhere) return 0;
  bool whole = false, whole_team = false;
  const std::set<uint32_t> mine = own_ends<1>(table.view(), text, whole);
  require(own_ends<7>(table.view(), text, whole_team) == mine || !whole);
  require(whole == whole_team);
  std::set<uint32_t> theirs;
  if (!whole || !ends_of(code.get(), text, theirs)) return 0;
  theirs.erase(0);
  if (added.place == RegexTable::Place::kExact) {
    require(mine == theirs);
  } else {
    require(theirs.empty() || !mine.empty());  // a candidate at least
  }
  return 0;
}
