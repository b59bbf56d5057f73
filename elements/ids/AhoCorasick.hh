#pragma once
#include "elements/ids/pattern_shader.hh"

namespace headrace {

/// Searches payloads for strings by an Aho-Corasick automaton.
///
///     AhoCorasick(PATTERN1, PATTERN2, ... [, keywords FILE, NOCASE, ENGINE])
///     AhoCorasick(FILE file [, ...])
///
/// Like StringMatcher, but a device runs an automaton, one step per byte (A. Aho, M. Corasick, "Efficient string
/// matching", CACM 1975), so its running time hardly depends on the payload.
///
/// ENGINE: `dfa` (all transitions), `compressed` (the same in less memory) or `auto`. Default auto: `dfa`, or
/// `compressed` if the automaton would be too large.
///
/// Handlers: as StringMatcher.
struct AhoCorasick : PatternShader<AhoCorasick> {
  static constexpr PatternEngines kEngines = PatternEngines::kAutomata;
};

}  // namespace headrace
