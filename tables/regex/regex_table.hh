#pragma once
/// \file
/// A set of regular expressions as automata for either processor.

#include <headrace/mirror.hh>
#include <string>
#include <string_view>
#include <vector>

#include "tables/regex/regex_dfa.hh"
#include "tables/regex/regex_syntax.hh"
#include "tables/regex/regex_view.hh"

namespace headrace {

/// Finds where expressions match, with one pass over the bytes for each of a few automata.
///
/// Not every expression can be done so: some are not regular, some would take too many states. For those the automata
/// look for something wider, a candidate, and it is for the caller to confirm it. Where not even that is possible, the
/// caller has to try the expression on every text. A match is reported at each place where one ends, without regard to
/// where it began, as Vectorscan does.
class RegexTable {
 public:
  struct Limits {
    size_t states = 32768;  ///< in all automata together
    size_t bytes = size_t{64} << 20;
    size_t automata = 8;         ///< each of them is a pass over the bytes
    uint64_t work = 50'000'000;  ///< steps of the construction for one expression
    ScanBudget reports;          ///< what a scan may report
  };

  enum class Place : uint8_t {
    kExact,      ///< matches are reported
    kCandidate,  ///< candidates are reported, with RegexView::kCandidate in the number
    kElsewhere   ///< nothing is reported
  };
  struct Expression {
    std::string text;
    RegexFlags flags;
    uint32_t number = 0;
    Place place = Place::kElsewhere;
    std::string reason;  ///< why it is not exact
    size_t states = 0;   ///< of its own automaton, 0 without one
  };

  RegexTable();
  explicit RegexTable(const Limits& limits);

  /// Adds an expression, before build(). `number`, below 2^29, is what is reported; two expressions may not have the
  /// same. The result says why it is not an expression, or why it cannot be exact; in the second case it has been
  /// added. An expression that can match without a byte is none for an automaton: it is `kElsewhere`.
  RegexProblem add(std::string_view text, RegexFlags flags, uint32_t number);
  /// The same, but what is not understood is added as `kElsewhere`.
  void add_anyhow(std::string_view text, RegexFlags flags, uint32_t number);
  /// Makes the automata. Every expression gets its place.
  void build();

  const std::vector<Expression>& expressions() const { return expressions_; }
  RegexView view() const;
  RegexView mirror(Mirror& mirror) const;

  size_t automata() const { return automata_.size(); }
  size_t states() const { return states_; }
  size_t bytes() const;
  /// Expressions in a place.
  size_t count(Place place) const;
  /// "N automata, N states, N bytes; N expressions exact, N to confirm, N elsewhere".
  std::string note() const;

 private:
  struct Group {
    RegexDfa dfa;
    std::vector<size_t> members;  // indices of expressions_
  };

  std::optional<RegexDfa> make_one(size_t index, const RegexBudget& budget);
  /// The automaton of the texts of which every match contains one.
  std::optional<RegexDfa> make_literals(size_t index, const RegexBudget& budget);
  /// Few automata that do what the given ones do.
  std::vector<Group> merged(std::vector<Group> groups);
  void join(std::vector<Group>& all, Group group);
  /// Moves groups to `kept` as long as there is room; the members of the others come to `left`.
  void choose(std::vector<Group> groups, std::vector<Group>& kept, std::vector<size_t>& left);
  void pack(const std::vector<Group>& groups);

  Limits limits_;
  std::vector<Expression> expressions_;
  std::vector<RegexSyntax> trees_;
  RegexReports found_;
  size_t states_ = 0;
  std::vector<RegexAutomaton> automata_;
  std::vector<uint32_t> rows_;
  std::vector<uint8_t> class_of_;
  std::vector<uint32_t> report_begins_, reports_;
};

}  // namespace headrace
