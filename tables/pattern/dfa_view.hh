#pragma once
/// \file
/// How a team walks an automaton over a payload, and what an automaton's states report. Includes no standard header.

#include "tables/pattern/match_view.hh"

namespace headrace {

/// The patterns that are reported where a state is reached: its own, and on along the suffixes that are patterns.
struct DfaOutput {
  uint32_t begin;   ///< of its numbers; they end where those of the next output begin
  uint16_t length;  ///< of its patterns, which are equal but for case
  uint16_t suffix;  ///< the output of the longest suffix that has one, or 0
};

/// The outputs of an automaton; they are numbered from 1.
struct DfaOutputsView {
  /// Beside a pattern's number: its bytes must be compared, since the automaton takes no heed of case.
  static constexpr uint32_t kCompare = uint32_t{1} << 31;

  const DfaOutput* outputs = nullptr;
  const uint32_t* numbers = nullptr;  ///< ascending in each output
  PatternBytesView texts;

  /// Reports what ends at `end` and began before `part_end`. `work` is added to.
  template <typename State, typename F>
  HEADRACE_SHADER void report(const PayloadBytes& bytes, uint32_t output, uint32_t end, uint32_t part_end,
                              uint32_t budget, uint32_t& work, uint32_t& limit, State& state, F& on_match) const {
    while (output != 0) {
      const DfaOutput record = outputs[output];
      const uint32_t begin = end - record.length;
      if (begin >= part_end) return;
      const uint32_t numbers_end = outputs[output + 1].begin;
      for (uint32_t i = record.begin; i < numbers_end; ++i) {
        if (++work > budget) return;
        const uint32_t number = numbers[i];
        const uint32_t pattern = number & ~kCompare;
        if ((number & kCompare) != 0) {
          work += PatternBytesView::cost(record.length);
          if (!texts.equal(bytes, begin, texts.begins[pattern], record.length)) continue;
        }
        pattern_detail::report(on_match, state, pattern, end, limit);
      }
      output = record.suffix;
    }
  }
};

/// Walks an automaton over a payload. Each lane begins at the root where its part begins and goes on behind the part as
/// long as the automaton remembers a byte of it; a match belongs to the lane in whose part it begins. False: cut.
///
/// `Automaton` has `Place start() const`, `void step(Place&, uint32_t byte) const`, `bool reports(const Place&) const`,
/// and, for places that report, `uint32_t output(const Place&) const`; `uint32_t depth(const Place&) const`.
template <typename Automaton, typename Team, typename State, typename F>
HEADRACE_SHADER bool walk_dfa(const Automaton& automaton, const DfaOutputsView& outputs, const ScanBudget& budget,
                              const Team& team, const PayloadBytes& bytes, typename Team::template Lanes<State>& states,
                              F& on_match) {
  const uint32_t most = budget.of(bytes.length);
  const uint32_t all_work = team.sum(team.map([&](uint32_t lane) {
    State& state = Team::own(states, lane);
    const LanePart part = lane_part(lane, Team::size(), bytes.length);
    auto place = automaton.start();
    uint32_t work = 0;
    uint32_t limit = ~0u;
    // True when the lane may stop.
    const auto step = [&](uint32_t byte, uint32_t end) {
      automaton.step(place, byte);
      if (!automaton.reports(place)) return false;
      outputs.report(bytes, automaton.output(place), end, part.end, most, work, limit, state, on_match);
      return work > most || limit <= end;
    };
    uint32_t i = part.begin;
    for (; i + 4 <= part.end; i += 4) {
      const uint32_t word = bytes.word(i);
      if (step(word & 0xff, i + 1) || step(word >> 8 & 0xff, i + 2) || step(word >> 16 & 0xff, i + 3) ||
          step(word >> 24, i + 4))
        return work;
    }
    for (; i < part.end; ++i) {
      if (step(bytes[i], i + 1)) return work;
    }
    for (; i < bytes.length && automaton.depth(place) > i - part.end; ++i) {
      if (step(bytes[i], i + 1)) return work;
    }
    return work;
  }));
  return all_work <= most;
}

}  // namespace headrace
