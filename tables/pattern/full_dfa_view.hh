#pragma once
/// \file
/// The view of an Aho-Corasick automaton with all of its transitions. Includes no standard header.

#include "tables/pattern/dfa_view.hh"

namespace headrace {

/// One load for a byte that depends on the byte before (A. Aho, M. Corasick, "Efficient string matching", CACM 1975).
///
/// A state is a row of `stride` words: an entry for each class of bytes, and a last word with the state's depth in its
/// upper and its output in its lower half. An entry is the index of the next row's first word; its highest bit is set
/// when that state has an output.
class FullDfaView {
 public:
  static constexpr uint32_t kReports = uint32_t{1} << 31;

  struct Place {
    uint32_t entry;
  };

  const uint32_t* rows = nullptr;
  const uint8_t* class_of = nullptr;
  uint32_t stride = 0;
  DfaOutputsView outputs;
  ScanBudget budget;

  HEADRACE_SHADER Place start() const { return {0}; }
  HEADRACE_SHADER void step(Place& place, uint32_t byte) const {
    place.entry = rows[(place.entry & ~kReports) + class_of[byte]];
  }
  HEADRACE_SHADER bool reports(const Place& place) const { return (place.entry & kReports) != 0; }
  HEADRACE_SHADER uint32_t output(const Place& place) const { return note(place) & 0xffff; }
  HEADRACE_SHADER uint32_t depth(const Place& place) const { return note(place) >> 16; }

  /// Calls `on_match(State&, pattern, end)` in the lane that finds a match, once for each; what it returns, if it is a
  /// uint32_t, is an end behind which this lane's matches are of no interest. Returns false in all lanes when the
  /// budget did not suffice.
  template <typename Team, typename State, typename F>
  HEADRACE_SHADER bool scan(const Team& team, const PayloadBytes& bytes, typename Team::template Lanes<State>& states,
                            F&& on_match) const {
    return walk_dfa<FullDfaView, Team, State>(*this, outputs, budget, team, bytes, states, on_match);
  }

 private:
  HEADRACE_SHADER uint32_t note(const Place& place) const { return rows[(place.entry & ~kReports) + stride - 1]; }
};

}  // namespace headrace
