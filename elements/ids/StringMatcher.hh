#pragma once
#include "elements/ids/pattern_shader.hh"

namespace headrace {

/// Searches payloads for strings.
///
///     StringMatcher(PATTERN1, PATTERN2, ... [, keywords FILE, NOCASE, ENGINE])
///
/// Input: packets with a marked network header, or Ethernet frames (VLAN tags are skipped). The payload is what lies
/// behind the headers of IPv4 or IPv6 and of TCP, UDP, ICMP or SCTP, options and extension headers included; without
/// such headers, all that is left. Output 0: packets in which no pattern was found. Output 1 (optional): packets with a
/// pattern; their PATTERN annotation (4 bytes at 40) is the number, from 0, of the match that ends first, and of those
/// that end there the lowest. Without output 1 they leave by output 0, too.
///
/// A pattern is bytes as they are, hexadecimal between bars, or escapes: `GET /cmd.exe|3f 2f|`, `\x90\x90`; in quotes
/// to keep blanks, commas and parentheses. `i:` in front: letters match in both cases. Packets are searched one by one:
/// a pattern that is spread over two is not found.
///
/// FILE (repeatable): a file of patterns, one a line, `#` for comments, plain or compressed by xz or gzip. They are
/// numbered in front of the arguments.
/// NOCASE true: all patterns match in both cases. Default false.
/// ENGINE: how a device searches: `prefilter` (a test of each position and a look at those that pass), `dfa` (an
/// Aho-Corasick automaton with all transitions), `compressed` (the same in less memory) or `auto`. Default auto. The
/// CPU searches with Vectorscan; the answers are the same.
///
/// Handlers: `matches` (r) packets with a pattern; `patterns` (r) how many there are; `list` (r) the patterns; `table`
/// (r) engines, their memory and the time to build them.
struct StringMatcher : PatternShader<StringMatcher> {
  static constexpr bool kAutomaton = false;
};

}  // namespace headrace
