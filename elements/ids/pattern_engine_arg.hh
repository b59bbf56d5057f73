#pragma once
/// \file
/// The argument ENGINE of elements that search for patterns.

#include <headrace/args.hh>
#include <optional>
#include <string_view>

#include "tables/pattern/pattern_matcher.hh"

namespace headrace {

struct PatternEngineArg {
  bool automaton = false;  ///< of these only

  bool parse(std::string_view text, PatternEngine& engine, const ArgContext& context) const {
    const std::optional<PatternEngine> wanted = parse_engine(text);
    if (!wanted || (automaton && *wanted == PatternEngine::kPrefilter))
      return context.error("expected auto, dfa{} compressed", automaton ? " or" : ", prefilter or");
    engine = *wanted;
    return true;
  }
};

}  // namespace headrace
