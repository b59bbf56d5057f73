#pragma once
/// \file
/// A set of rules, arranged by what a search for their fast patterns finds.

#include <cstdint>
#include <string>
#include <vector>

#include "tables/pattern/pattern_set.hh"
#include "tables/rules/always_view.hh"
#include "tables/rules/confirm.hh"
#include "tables/rules/packet_facts.hh"
#include "tables/rules/rule.hh"

namespace headrace::rules {

class RuleProgram {
 public:
  /// \param rules as RuleReader gives them
  explicit RuleProgram(std::vector<Rule> rules);

  const std::vector<Rule>& rules() const { return rules_; }
  /// The literals to search for, each once.
  const std::vector<Pattern>& patterns() const { return patterns_; }
  /// Rules that are tried on every packet that may be theirs: those without a literal, and those whose literal is
  /// so short that a search for it would not pay.
  uint32_t always_count() const { return always_count_; }
  /// For shaders. Points into this object.
  AlwaysView always() const;
  static constexpr size_t kPortBits = size_t{4} * AlwaysView::kPortWords;

  /// Calls `f(rule)` with the number of each rule that has the pattern as its literal.
  template <typename F>
  void each_of_pattern(uint32_t pattern, F&& f) const {
    for (uint32_t i = begins_[pattern]; i < begins_[pattern + 1]; ++i) f(of_pattern_[i]);
  }
  /// Calls `f(rule)` with the number of each such rule that the packet may be of.
  template <typename F>
  void each_always(const PacketFacts& packet, F&& f) const {
    if (always_count_ == 0 || !packet.is_ip()) return;
    const Group& group = groups_[group_of(packet)];
    for (const uint32_t rule : group.any) f(rule);
    if (!packet.has_ports() || packet.protocol() == kSctp) return;
    const uint32_t first = packet.protocol() == kTcp ? 0 : 2;
    if (has_port(first, packet.src_port()))
      for (const uint32_t rule : group.by_src_port) f(rule);
    if (has_port(first + 1, packet.dst_port()))
      for (const uint32_t rule : group.by_dst_port) f(rule);
  }

  /// Whether a rule whose literal was found, or that is always tried, matches the packet.
  Confirmed confirm(uint32_t rule, const PacketFacts& packet, WorkLimit& limit) const;

 private:
  enum { kGroupTcp, kGroupUdp, kGroupIcmp, kGroupOther, kGroups };
  struct Group {
    std::vector<uint32_t> any, by_src_port, by_dst_port;
  };
  static int group_of(const PacketFacts& packet) {
    if (packet.protocol() == kTcp) return kGroupTcp;
    if (packet.protocol() == kUdp) return kGroupUdp;
    return packet.is_icmp() ? kGroupIcmp : kGroupOther;
  }
  bool has_port(uint32_t which, uint32_t port) const {
    return (port_bits_[which * AlwaysView::kPortWords + (port >> 5)] >> (port & 31) & 1) != 0;
  }
  void add_always(uint32_t number);
  void add_with_ports(uint32_t number, int group);

  std::vector<Rule> rules_;
  std::vector<uint8_t> look_for_literal_;  // by rule: its literal has not been searched for
  std::vector<Pattern> patterns_;
  std::vector<uint32_t> begins_;  // by pattern, into of_pattern_
  std::vector<uint32_t> of_pattern_;
  Group groups_[kGroups];
  uint32_t always_count_ = 0;
  AlwaysView always_;
  std::vector<uint32_t> port_bits_;
};

}  // namespace headrace::rules
