#include "tables/rules/rule_program.hh"

#include <algorithm>
#include <map>
#include <utility>

#include "tables/rules/literal_search.hh"

namespace headrace::rules {

namespace {

uint32_t size_of(const PortSet& set) {
  uint32_t n = 0;
  for (const auto& i : set.intervals()) n += uint32_t{i.last} - i.first + 1;
  return n;
}

/// Whether a search for the rule's literal would cost more than it saves: one byte is in nearly every payload, two are
/// in many, and a few ports or being ICMP says more than they do.
bool is_found_without_search(const Rule& rule) {
  constexpr uint32_t kFewPorts = 1024;
  if (rule.fast_step < 0 || rule.fast_length == 1) return true;
  if (rule.fast_length > 2 || rule.both_ways) return false;
  switch (rule.protocol) {
    case Protocol::kTcp:
    case Protocol::kUdp:
      return size_of(*rule.sports) <= kFewPorts || size_of(*rule.dports) <= kFewPorts;
    case Protocol::kIcmp:
    case Protocol::kIcmp4:
    case Protocol::kIcmp6:
      return true;
    default:
      return false;
  }
}

/// Adds the values of a field that the rule may match.
void add_values(const Rule& rule, Field field, ByteSetView& to) {
  for (uint32_t v = 0; v < 256; ++v) {
    const auto holds = [&](const FieldTest& t) { return t.field != field || t.holds(v); };
    if (std::all_of(rule.tests.begin(), rule.tests.end(), holds)) to.add(v);
  }
}

}  // namespace

RuleProgram::RuleProgram(std::vector<Rule> rules)
    : rules_(std::move(rules)), look_for_literal_(rules_.size()), port_bits_(kPortBits) {
  std::map<std::pair<std::string, bool>, std::vector<uint32_t>> by_literal;
  for (uint32_t i = 0; i < rules_.size(); ++i) {
    Rule& rule = rules_[i];
    if (is_found_without_search(rule)) {
      look_for_literal_[i] = rule.fast_step >= 0;
      add_always(i);
      continue;
    }
    if (rule.fast_length > kLongestPattern) {
      rule.fast_length = kLongestPattern;
      rule.fast_is_all = false;
    }
    by_literal[{rule.fast_literal(), rule.fast_content().nocase}].push_back(i);
  }
  begins_.push_back(0);
  for (const auto& [literal, numbers] : by_literal) {
    patterns_.push_back({literal.first, literal.second});
    of_pattern_.insert(of_pattern_.end(), numbers.begin(), numbers.end());
    begins_.push_back(static_cast<uint32_t>(of_pattern_.size()));
  }
}

void RuleProgram::add_always(uint32_t number) {
  const Rule& rule = rules_[number];
  ++always_count_;
  always_.any = true;
  if (rule.is_about(kTcp)) add_with_ports(number, kGroupTcp);
  if (rule.is_about(kUdp)) add_with_ports(number, kGroupUdp);
  if (rule.is_about(1) || rule.is_about(58)) {
    groups_[kGroupIcmp].any.push_back(number);
    add_values(rule, Field::kIcmpType, always_.icmp_types);
  }
  // Any other protocol; asking for each of them tells whether ip_proto names one.
  bool about_others = false;
  for (int p = 0; p < 256; ++p)
    about_others |= p != kTcp && p != kUdp && p != kIcmp && p != kIcmp6 && rule.is_about(static_cast<uint8_t>(p));
  // A fragment without its header is looked at as such, whatever it carries.
  if (about_others || (rule.protocol != Protocol::kSctp && rule.sports->is_all() && rule.dports->is_all()))
    always_.other = true;
  if (about_others) groups_[kGroupOther].any.push_back(number);
}

/// Puts a rule where it is found: by the side that names fewer ports, or without ports.
void RuleProgram::add_with_ports(uint32_t number, int group) {
  const Rule& rule = rules_[number];
  Group& to = groups_[group];
  const uint32_t first = group == kGroupTcp ? 0 : 2;
  PortSet sources = *rule.sports, destinations = *rule.dports;
  if (rule.both_ways) {
    // Whichever way a packet goes, its source port is one of either.
    sources.add(destinations);
    destinations = PortSet::all();
  }
  const bool by_src = size_of(sources) < size_of(destinations);
  if (by_src || !destinations.is_all()) {
    (by_src ? to.by_src_port : to.by_dst_port).push_back(number);
    for (const auto& interval : (by_src ? sources : destinations).intervals())
      for (uint32_t port = interval.first; port <= interval.last; ++port)
        port_bits_[(first + (by_src ? 0 : 1)) * AlwaysView::kPortWords + (port >> 5)] |= uint32_t{1} << (port & 31);
    return;
  }
  to.any.push_back(number);
  if (group == kGroupUdp)
    always_.udp = true;
  else
    add_values(rule, Field::kTcpFlags, always_.tcp_flags);
}

Confirmed RuleProgram::confirm(uint32_t rule, const PacketFacts& packet, WorkLimit& limit) const {
  const Rule& r = rules_[rule];
  if (!limit.spend(1)) return Confirmed::kCut;
  if (!packet.meets(r)) return Confirmed::kNoMatch;
  if (look_for_literal_[rule]) {
    const Content& content = r.fast_content();
    const std::string_view literal = std::string_view(content.bytes).substr(r.fast_offset, r.fast_length);
    if (!limit.spend(static_cast<uint32_t>(packet.payload().size()) / 32)) return Confirmed::kCut;
    if (find_literal(packet.payload(), literal, 0, content.nocase) == kNotFound) return Confirmed::kNoMatch;
  }
  return r.fast_is_all ? Confirmed::kMatch : confirm_steps(r, packet.payload(), limit);
}

AlwaysView RuleProgram::always() const {
  AlwaysView view = always_;
  view.ports = port_bits_.data();
  return view;
}

}  // namespace headrace::rules
