#pragma once
/// \file
/// Deterministic automata for regular expressions: subset construction, minimization and products.

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tables/regex/regex_syntax.hh"

namespace headrace {

/// Sets of reports, each known by a number; 0 is the empty set. A report is `pattern << 1 | delay`: the match ends
/// `delay` bytes (0 or 1) before the place where the automaton stands.
class RegexReports {
 public:
  RegexReports() { number({}); }
  /// The number of a set; `reports` ascends.
  uint32_t number(const std::vector<uint32_t>& reports);
  uint32_t united(uint32_t a, uint32_t b);
  const std::vector<uint32_t>& operator[](uint32_t number) const { return *sets_[number]; }
  size_t size() const { return sets_.size(); }

 private:
  std::map<std::vector<uint32_t>, uint32_t> numbers_;
  std::vector<const std::vector<uint32_t>*> sets_;  // keys of numbers_, which stay where they are
  std::map<std::pair<uint32_t, uint32_t>, uint32_t> unions_;
};

/// An automaton that finds all places where matches end, wherever they begin.
struct RegexDfa {
  struct State {
    uint32_t reports = 0;      ///< on arrival
    uint32_t end_reports = 0;  ///< if the text ends here; of these none has been made on arrival
    bool operator==(const State&) const = default;
  };
  std::array<uint8_t, 256> class_of{};
  uint32_t classes = 1;
  uint32_t start = 0;
  /// Most bytes that a match can have, ~0 if there is no bound.
  uint32_t longest = 0;
  std::vector<State> states;
  std::vector<uint32_t> next;  ///< [state * classes + class]

  size_t size() const { return states.size(); }
};

/// Bounds of a construction. Work is counted in steps of some nanoseconds.
struct RegexBudget {
  size_t states = 32768;
  uint64_t work = 50'000'000;
};

/// The minimal automaton of one expression, which reports `pattern`. Nothing if it would pass the budget.
std::optional<RegexDfa> make_regex_dfa(const RegexSyntax& syntax, uint32_t pattern, RegexReports& reports,
                                       const RegexBudget& budget);

/// The automaton that reports what either one does. If they report different patterns and are minimal, so is this one.
std::optional<RegexDfa> merge_regex_dfas(const RegexDfa& a, const RegexDfa& b, RegexReports& reports,
                                         size_t most_states);

/// The fewest states that make the same reports.
RegexDfa minimized(const RegexDfa& dfa);

}  // namespace headrace
