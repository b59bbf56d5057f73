#pragma once
/// \file
/// The search for regular expressions on either processor. Includes no standard header.

#include "tables/pattern/match_view.hh"

namespace headrace {

/// One automaton among those of a RegexView.
struct RegexAutomaton {
  uint32_t start;      ///< the state before the first byte
  uint32_t elsewhere;  ///< a state that is likely in the middle of a text
  uint32_t stride;     ///< words of a row
  uint32_t warm;       ///< how many bytes make the state likely right
  uint32_t classes;    ///< its first entry in class_of
};

/// Deterministic automata, each for some of a set's expressions.
///
/// A state is a row: the next state for each class of bytes, then the number of the set of reports that is due on
/// arrival, then that of the reports that are due if the text ends here. It is known by the index of the row's first
/// word, with two marks in the highest bits.
///
/// An automaton has to know where it stands before a lane can begin in the middle. Lanes guess: they walk some bytes
/// before their part from a likely state, then their part. Where the lane before arrives elsewhere the guess was wrong,
/// and the part is walked again from the right state, until all fit (D. Mytkowicz, M. Musuvathi, W. Schulte,
/// "Data-parallel finite-state machines", ASPLOS 2014, go on from there). Each round makes at least one more lane
/// right, so that text made to mislead costs as much as one lane alone. Only lanes that came through reporting states
/// walk once more, to report.
class RegexView {
 public:
  static constexpr uint32_t kReports = uint32_t{1} << 31;
  static constexpr uint32_t kDead = uint32_t{1} << 30;  ///< nothing can be reported any more
  static constexpr uint32_t kRow = kDead - 1;
  /// In the number of a report: a wider expression matched, and the host has to look.
  static constexpr uint32_t kCandidate = uint32_t{1} << 30;

  const RegexAutomaton* automata = nullptr;
  uint32_t count = 0;
  const uint32_t* rows = nullptr;
  const uint8_t* class_of = nullptr;
  const uint32_t* report_begins = nullptr;  ///< by number of a set: its first one in reports; one more at the end
  const uint32_t* reports = nullptr;        ///< pattern << 1 | delay: the match ended `delay` bytes before
  ScanBudget budget;

  /// Calls `on_match(State&, pattern, end)` in the lane that finds a match, once for each pattern and end; what it
  /// returns, if it is a uint32_t, is an end behind which this lane's matches are of no interest. Returns false in all
  /// lanes when the budget did not suffice. A unit of it is a report.
  template <typename Team, typename State, typename F>
  HEADRACE_SHADER bool scan(const Team& team, const PayloadBytes& bytes, typename Team::template Lanes<State>& states,
                            F&& on_match) const {
    typename Team::template Lanes<uint32_t> costs = team.map([](uint32_t) { return 0u; });
    const uint32_t affordable = budget.of(bytes.length);
    for (uint32_t a = 0; a < count && bytes.length > 0; ++a) {
      const RegexAutomaton automaton = automata[a];
      typename Team::template Lanes<Part> parts = walk_parts(team, automaton, bytes);
      team.each(states, [&](uint32_t lane, State& state) {
        const Part& part = Team::own(parts, lane);
        if (part.reports) report_part(automaton, bytes, part, state, on_match, affordable, Team::own(costs, lane));
      });
      if (team.sum(costs) > affordable) return false;
    }
    return true;
  }

 private:
  struct Part {
    uint32_t begin, end;
    uint32_t first, last;  // the states there
    bool reports;
  };

  HEADRACE_SHADER uint32_t end_reports(const RegexAutomaton& automaton, uint32_t state) const {
    return rows[(state & kRow) + automaton.stride - 1];
  }

  /// The state after bytes [begin, end); adds the marks of all states on the way to `seen`.
  HEADRACE_SHADER uint32_t walk(const RegexAutomaton& automaton, const PayloadBytes& bytes, uint32_t state,
                                uint32_t begin, uint32_t end, uint32_t& seen) const {
    const uint8_t* const classes = class_of + automaton.classes;
    uint32_t at = begin;
    for (; at + 4 <= end && (state & kDead) == 0; at += 4) {
      const uint32_t word = bytes.word(at);
      const uint32_t class0 = classes[word & 0xff], class1 = classes[word >> 8 & 0xff];
      const uint32_t class2 = classes[word >> 16 & 0xff], class3 = classes[word >> 24];
      state = rows[(state & kRow) + class0];
      seen |= state;
      state = rows[(state & kRow) + class1];
      seen |= state;
      state = rows[(state & kRow) + class2];
      seen |= state;
      state = rows[(state & kRow) + class3];
      seen |= state;
    }
    for (; at < end && (state & kDead) == 0; ++at) {
      state = rows[(state & kRow) + classes[bytes[at]]];
      seen |= state;
    }
    return state;
  }

  HEADRACE_SHADER void walk_part(const RegexAutomaton& automaton, const PayloadBytes& bytes, Part& part) const {
    uint32_t seen = 0;
    part.last = walk(automaton, bytes, part.first, part.begin, part.end, seen);
    part.reports = (seen & kReports) != 0;
    if (part.end == bytes.length && part.begin < part.end && end_reports(automaton, part.last) != 0) {
      part.reports = true;
    }
  }

  /// Every lane's part, from the right state on.
  template <typename Team>
  HEADRACE_SHADER auto walk_parts(const Team& team, const RegexAutomaton& automaton, const PayloadBytes& bytes) const {
    typename Team::template Lanes<Part> parts = team.map([&](uint32_t lane) {
      const LanePart mine = lane_part(lane, Team::size(), bytes.length);
      Part part = {mine.begin, mine.end, automaton.start, automaton.start, false};
      if (mine.begin == mine.end) return part;
      const uint32_t from = mine.begin > automaton.warm ? mine.begin - automaton.warm : 0;
      uint32_t ignored = 0;
      part.first = walk(automaton, bytes, from == 0 ? automaton.start : automaton.elsewhere, from, mine.begin, ignored);
      walk_part(automaton, bytes, part);
      return part;
    });
    if constexpr (Team::size() > 1) {
      for (;;) {
        typename Team::template Lanes<uint32_t> lasts =
            team.map([&](uint32_t lane) { return Team::own(parts, lane).last; });
        typename Team::template Lanes<uint32_t> truths = team.previous(lasts, automaton.start);
        // Empty parts are behind all others, where no state matters.
        const bool wrong = team.any(team.map([&](uint32_t lane) {
          const Part& part = Team::own(parts, lane);
          return part.begin < part.end && part.first != Team::own(truths, lane);
        }));
        if (!wrong) break;
        team.each(parts, [&](uint32_t lane, Part& part) {
          const uint32_t truth = Team::own(truths, lane);
          if (part.begin == part.end || part.first == truth) return;
          part.first = truth;
          walk_part(automaton, bytes, part);
        });
      }
    }
    return parts;
  }

  template <typename F, typename State>
  HEADRACE_SHADER void report_set(uint32_t set, uint32_t place, State& state, F& on_match, uint32_t& limit,
                                  uint32_t& cost) const {
    for (uint32_t i = report_begins[set]; i < report_begins[set + 1]; ++i) {
      const uint32_t report = reports[i];
      pattern_detail::report(on_match, state, report >> 1, place - (report & 1), limit);
      ++cost;
    }
  }

  template <typename F, typename State>
  HEADRACE_SHADER void report_part(const RegexAutomaton& automaton, const PayloadBytes& bytes, const Part& part,
                                   State& state, F& on_match, uint32_t affordable, uint32_t& cost) const {
    const uint8_t* const classes = class_of + automaton.classes;
    uint32_t limit = ~0u;
    uint32_t place = part.first;
    for (uint32_t at = part.begin; at < part.end; ++at) {
      // What is reported behind this byte ends at it or behind it.
      if (at > limit || cost > affordable || (place & kDead) != 0) return;
      place = rows[(place & kRow) + classes[bytes[at]]];
      if ((place & kReports) != 0) {
        report_set(rows[(place & kRow) + automaton.stride - 2], at + 1, state, on_match, limit, cost);
      }
    }
    if (part.end == bytes.length) {
      report_set(end_reports(automaton, place), part.end, state, on_match, limit, cost);
    }
  }
};

/// What a device knows of the first match.
struct RegexFound {
  uint64_t key = FirstMatch::kNone;  ///< as FirstMatch
  uint32_t ask = 0;                  ///< not 0: only the host can tell

  HEADRACE_SHADER bool operator==(const RegexFound& other) const { return key == other.key && ask == other.ask; }
};

/// The match that ends first, unless there is a candidate, which might end before it.
template <class Team>
HEADRACE_SHADER RegexFound find_first(const RegexView& view, const Team& team, const PayloadBytes& bytes) {
  typename Team::template Lanes<RegexFound> lanes = team.map([](uint32_t) { return RegexFound(); });
  const bool whole =
      view.template scan<Team, RegexFound>(team, bytes, lanes, [](RegexFound& found, uint32_t pattern, uint32_t end) {
        if ((pattern & RegexView::kCandidate) != 0) {
          found.ask = 1;
        } else {
          const uint64_t mine = uint64_t{end} << 32 | pattern;
          if (mine < found.key) found.key = mine;
        }
        return static_cast<uint32_t>(found.key >> 32);
      });
  typename Team::template Lanes<uint64_t> keys =
      team.map([&](uint32_t lane) -> uint64_t { return Team::own(lanes, lane).key; });
  const bool candidate = team.any(team.map([&](uint32_t lane) -> bool { return Team::own(lanes, lane).ask != 0; }));
  RegexFound found;
  found.key = team.min(keys);
  if (candidate || !whole) found = {FirstMatch::kNone, 1};
  return found;
}

}  // namespace headrace
