#pragma once
/// \file
/// The view of an Aho-Corasick automaton without the transitions that the last two bytes tell. Includes no standard
/// header.

#include "tables/pattern/dfa_view.hh"

namespace headrace {

/// A state, as transitions name it.
struct alignas(8) CompressedState {
  uint32_t row;   ///< where its row begins in `entries`; in an entry, the class of its byte in the upper 8 bits
  uint32_t note;  ///< depth << 16 | output
};

/// Most transitions of the full automaton lead to states of at most two bytes, which are known from the last two bytes
/// alone: those are in `defaults`. Those to states of three bytes are kept once, with the state that the last two bytes
/// tell, and only the others with each state. What is kept lies in `entries`, rows laid over each other so that they do
/// not touch (R. Tarjan, A. Yao, "Storing a sparse table", CACM 1979): a row's transition at byte class c, if the entry
/// at row + c is of class c. No two rows begin at the same place, so no entry is taken for another row's. One load for
/// a byte depends on the byte before, as in the full automaton, but in a small part of its memory.
///
/// Class 0 is that of bytes in no pattern. An unused entry is 0: class 0, the root.
class CompressedDfaView {
 public:
  static constexpr uint32_t kClassShift = 24;
  static constexpr uint32_t kRow = (uint32_t{1} << kClassShift) - 1;

  struct Place {
    CompressedState state;
    uint32_t context;   ///< the row of the state that the last two bytes tell
    uint32_t previous;  ///< where the defaults behind the last byte begin
  };

  const CompressedState* entries = nullptr;
  const CompressedState* defaults = nullptr;  ///< [class of the last byte][class]; a last row for none
  const uint8_t* class_of = nullptr;
  uint32_t classes = 0;
  DfaOutputsView outputs;
  ScanBudget budget;

  HEADRACE_SHADER Place start() const { return {{0, 0}, 0, classes * classes}; }
  HEADRACE_SHADER void step(Place& place, uint32_t byte) const {
    const uint32_t c = class_of[byte];
    const CompressedState own = entries[(place.state.row & kRow) + c];
    const CompressedState three = entries[place.context + c];
    const CompressedState two = defaults[place.previous + c];
    const bool is_own = own.row >> kClassShift == c;
    const bool is_three = three.row >> kClassShift == c;
    place.state.row = is_own ? own.row : is_three ? three.row : two.row;
    place.state.note = is_own ? own.note : is_three ? three.note : two.note;
    place.context = two.row;
    place.previous = c * classes;
  }
  HEADRACE_SHADER bool reports(const Place& place) const { return (place.state.note & 0xffff) != 0; }
  HEADRACE_SHADER uint32_t output(const Place& place) const { return place.state.note & 0xffff; }
  HEADRACE_SHADER uint32_t depth(const Place& place) const { return place.state.note >> 16; }

  /// As FullDfaView::scan().
  template <typename Team, typename State, typename F>
  HEADRACE_SHADER bool scan(const Team& team, const PayloadBytes& bytes, typename Team::template Lanes<State>& states,
                            F&& on_match) const {
    return walk_dfa<CompressedDfaView, Team, State>(*this, outputs, budget, team, bytes, states, on_match);
  }
};

}  // namespace headrace
