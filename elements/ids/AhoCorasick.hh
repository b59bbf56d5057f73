#pragma once
#include "elements/ids/pattern_shader.hh"

namespace headrace {

/// Searches payloads for strings by an Aho-Corasick automaton.
///
///     AhoCorasick(PATTERN1, PATTERN2, ... [, keywords FILE, NOCASE, ENGINE])
///     AhoCorasick(FILE file [, ...])
///
/// As StringMatcher, but a device walks an automaton, one step a byte (A. Aho, M. Corasick, "Efficient string
/// matching", CACM 1975), so that its time hardly depends on what payloads hold.
///
/// ENGINE: `dfa` (all transitions), `compressed` (the same in less memory) or `auto`. Default auto: the first one, or
/// the second for a set whose automaton would be too large.
///
/// Handlers: as StringMatcher.
struct AhoCorasick : PatternShader<AhoCorasick> {
  static constexpr bool kAutomaton = true;
};

}  // namespace headrace
