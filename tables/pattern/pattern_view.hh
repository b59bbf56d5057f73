#pragma once
/// \file
/// The search for a set of patterns, by whichever engine was chosen. Includes no standard header.

#include "tables/pattern/compressed_dfa_view.hh"
#include "tables/pattern/full_dfa_view.hh"
#include "tables/pattern/match_view.hh"
#include "tables/pattern/prefilter_view.hh"

namespace headrace {

/// How a device searches for patterns.
enum class PatternEngine : uint32_t {
  kNone,  ///< there are no patterns
  kDfa,
  kCompressed,
  kPrefilter
};

/// One of the engines. first_match(), candidates() and any_match() of match_view.hh take it as they take the engine's
/// own view.
struct PatternView {
  PatternEngine engine = PatternEngine::kNone;
  union {
    FullDfaView dfa;
    CompressedDfaView compressed;
    PrefilterView prefilter;
  };

  HEADRACE_SHADER PatternView() : dfa() {}

  /// As FullDfaView::scan().
  template <typename Team, typename State, typename F>
  HEADRACE_SHADER bool scan(const Team& team, const PayloadBytes& bytes, typename Team::template Lanes<State>& states,
                            F&& on_match) const {
    switch (engine) {
      case PatternEngine::kDfa:
        return dfa.template scan<Team, State>(team, bytes, states, on_match);
      case PatternEngine::kCompressed:
        return compressed.template scan<Team, State>(team, bytes, states, on_match);
      case PatternEngine::kPrefilter:
        return prefilter.template scan<Team, State>(team, bytes, states, on_match);
      case PatternEngine::kNone:
        break;
    }
    return true;
  }
};

}  // namespace headrace
