#pragma once
#include <headrace/shader.hh>

#include "tables/regex/regex_view.hh"

namespace headrace {

struct RegexMatcherOwner;

template <int First, uint32_t Counted>
HEADRACE_SHADER constexpr auto regex_matcher_counters() {
  CounterList<First + static_cast<int>(Counted)> list{};
  for (CounterInfo& info : list.info) info = counter("packets of an expression");
  list.info[0] = counter("matched");
  list.info[1] = counter("looked at on the host");
  list.info[2] = counter("given up");
  return list;
}

/// Searches payloads for regular expressions.
///
///     RegexMatcher(EXPR0, EXPR1, ... [, keywords FILE, ANNO, STATES, STRICT])
///
/// Output 0: packets whose payload matches no expression. Output 1 (optional): packets whose payload matches; the
/// annotation ANNO holds the number of the expression, from 0: the one whose match ends first or, if several end there,
/// the lowest. If output 1 is not connected, all packets leave by output 0; those that match have the annotation.
///
/// The payload is what TCP, UDP, ICMP or SCTP carry in IPv4 or IPv6, behind Ethernet with or without VLAN tags, or from
/// the marked network header on. Each packet is searched on its own.
///
/// Expressions are Perl-compatible and match bytes: `/EXPR/FLAGS` or EXPR alone. FLAGS: i ignores case, s lets a dot
/// match newlines, m lets `^` and `$` match at lines, x extended syntax. Use single quotes, which protect commas and
/// backslashes: `RegexMatcher('/^GET [^\r\n]{200,}/', '/cmd\.exe/i')`.
///
/// Regular expressions that are not too large are compiled to automata, which run on a device. For the others the
/// automata find candidates, and the host confirms them with PCRE2; an expression without a text of at least two bytes
/// that every match contains is tried on the host for every packet. The handler `patterns` shows the method of each.
/// For an expression that PCRE2 confirms, the match is the one that Perl would find. PCRE2 gives up on packets that
/// cost too much: they count as `cut`, and the expression counts as not matching.
///
/// FILE (repeatable): a text file of expressions, one per line, plain, .gz, .xz, .bz2 or .zst. Empty lines, and those
/// that begin with `#`, are skipped.
/// ANNO: the four-byte annotation that is set. Default PATTERN.
/// STATES: maximum number of states of all automata together. Default 32768.
/// STRICT true: a line of a FILE that is not an expression is an error. Default false: a warning names it, and the
/// other lines are used.
///
/// Handlers: `matches` (r) packets that matched; `confirmed` (r) packets that the host confirmed; `cut` (r) packets
/// given up; `counts` (r) packets per expression, with those from number 31 on combined; `patterns` (r) the expressions
/// and their methods; `table` (r) the automata; `states` (r) their number of states; `reset` (w) sets all counts to 0.
struct RegexMatcher : Shader<RegexMatcher> {
  static constexpr Ports kPorts{"1/1-2"};
  static constexpr auto kRegions = regions(ReadWrite{anno::any});
  enum { kMatched, kConfirmed, kCut, kByNumber };
  /// Expressions with a counter of their own; the last one counts all others, too.
  static constexpr uint32_t kCounted = 32;
  static constexpr auto kCounters = regex_matcher_counters<kByNumber, kCounted>();
  using Owner = RegexMatcherOwner;
  static constexpr bool kKeepsOwner = true;

  RegexView view;
  int32_t offset = anno::pattern.kOffset;
  uint16_t matched_port = 1;
  uint16_t asks_always = 0;

  Status configure(Args& args, Owner& owner);
  void add_handlers(Handlers& handlers, Owner& owner, ShaderElement<RegexMatcher>& element);
  auto note(const Owner& owner) const;
  void refresh(const Owner& owner);
  void mirror(Mirror& mirror, const Owner& owner);
  Next escape(Packet*& p, Emitter& emit, Owner& owner) const;

  Extent extent(Anchor) const { return {offset, offset + 4}; }

  template <typename Team>
  HEADRACE_SHADER RegexFound scan(const Team& team, const PayloadBytes& payload) const {
    if (asks_always != 0) return {FirstMatch::kNone, 1};
    return find_first(view, team, payload);
  }
  RegexFound scan_on_cpu(const PayloadBytes& payload, const Owner& owner) const;

  HEADRACE_SHADER Next shade(auto& p, const RegexFound& found) const {
    if (found.ask != 0) return kEscape;
    if (found.key == FirstMatch::kNone) return 0;
    const uint32_t number = static_cast<uint32_t>(found.key);
    for (int32_t i = 0; i < 4; ++i) p.store8(Anchor::kAnno, offset + i, static_cast<uint8_t>(number >> (8 * i)));
    p.count(kMatched);
    p.count(kByNumber + static_cast<int>(number < kCounted ? number : kCounted - 1));
    return matched_port;
  }
};

}  // namespace headrace
