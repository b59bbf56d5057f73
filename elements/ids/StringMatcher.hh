#pragma once
#include "elements/ids/pattern_shader.hh"

namespace headrace {

/// Searches payloads for strings.
///
///     StringMatcher(PATTERN1, PATTERN2, ... [, keywords FILE, NOCASE, ENGINE])
///
/// Input: packets with a marked network header, or Ethernet frames (VLAN tags are skipped). The payload is everything
/// behind the headers of IPv4 or IPv6 and of TCP, UDP, ICMP or SCTP, options and extension headers included; without
/// such headers, all that is left. Output 0: packets in which no pattern was found. Output 1 (optional): packets with a
/// pattern; their PATTERN annotation (4 bytes at 40) is the number, from 0, of the pattern whose match ends first or,
/// if several end there, the lowest. Without output 1 they also leave by output 0.
///
/// A pattern consists of literal bytes, hexadecimal bytes between bars, or escapes: `GET /cmd.exe|3f 2f|`, `\x90\x90`;
/// use quotes to keep spaces, commas and parentheses. The prefix `i:` ignores case. Each packet is searched on its own:
/// a pattern split across two packets is not found.
///
/// FILE (repeatable): a file of patterns, one per line, `#` for comments, plain, .gz, .xz, .bz2 or .zst. They are
/// numbered before the arguments.
/// NOCASE true: all patterns ignore case. Default false.
/// ENGINE: how a device searches: `prefilter` (a quick test of each position, then a comparison where it passes), `dfa`
/// (an Aho-Corasick automaton with all transitions), `compressed` (the same in less memory) or `auto`. Default auto.
/// The CPU searches with Vectorscan, with the same results.
///
/// Handlers: `matches` (r) packets with a pattern; `patterns` (r) number of patterns; `list` (r) the patterns; `table`
/// (r) engines, their memory and the time to build them.
struct StringMatcher : PatternShader<StringMatcher> {
  static constexpr PatternEngines kEngines = PatternEngines::kAny;
};

}  // namespace headrace
