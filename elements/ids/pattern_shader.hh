#pragma once
/// \file
/// The shader of elements that search payloads for literal patterns. What it needs on the host is in pattern_table.hh.

#include <headrace/shader.hh>

#include "tables/pattern/pattern_view.hh"

namespace headrace {

class PatternTable;

/// Which engines an element may choose from.
enum class PatternEngines { kAny, kAutomata };

/// Searches the payload: packets that match get the pattern's number as an annotation and leave by output 1.
template <typename Self>
struct PatternShader : Shader<Self> {
  static constexpr Ports kPorts{"1/1-2"};
  static constexpr auto kRegions = regions(Write{anno::pattern});
  enum { kMatched };
  static constexpr auto kCounters = counters(counter("matches"));
  using Owner = PatternTable;
  static constexpr bool kKeepsOwner = true;

  PatternView patterns;
  uint16_t matched_port = 1;  // 0 where output 1 is not connected

  Status configure(Args& args, Owner& owner);
  void add_handlers(Handlers& handlers, Owner& owner, ShaderElementBase& element);
  void refresh(const Owner& owner);
  void mirror(Mirror& mirror, const Owner& owner);

  template <typename Team>
  HEADRACE_SHADER FirstMatch scan(const Team& team, const PayloadBytes& payload) const {
    return first_match(patterns, team, payload);
  }
  FirstMatch scan_on_cpu(const PayloadBytes& payload, const Owner& owner) const;

  HEADRACE_SHADER Next shade(auto& p, const FirstMatch& found) const {
    // A payload made to cost more than a device spends on one packet.
    if (found.cut()) return kEscape;
    if (!found.found()) return 0;
    p.count(kMatched);
    p.set(anno::pattern, found.pattern());
    return matched_port;
  }
  Next escape(Packet*& p, Emitter& emit, Owner& owner) const;
};

}  // namespace headrace
