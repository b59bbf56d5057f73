#include "tables/rules/rule_program.hh"

#include <algorithm>
#include <map>
#include <utility>

namespace headrace::rules {

namespace {

/// A set of more ports than this is as good as all.
constexpr uint32_t kFewPorts = 64;

uint32_t size_of(const PortSet& set) {
  uint32_t n = 0;
  for (const auto& i : set.intervals()) n += uint32_t{i.last} - i.first + 1;
  return n;
}

/// Literals up to this many bytes are in so many payloads that a search for them costs more than it saves.
constexpr uint32_t kShortLiteral = 2;

/// Whether the rule can be found by a port.
bool has_few_ports(const Rule& rule) {
  return !rule.both_ways && (rule.protocol == Protocol::kTcp || rule.protocol == Protocol::kUdp) &&
         (size_of(*rule.sports) <= kFewPorts || size_of(*rule.dports) <= kFewPorts);
}

/// Whether the rule may match packets of a group, as far as it is about protocols.
bool is_about(const Rule& rule, std::initializer_list<uint8_t> protocols) {
  for (const uint8_t protocol : protocols) {
    bool right = false;
    switch (rule.protocol) {
      case Protocol::kIp:
      case Protocol::kIp4:
      case Protocol::kIp6:
        right = true;
        break;
      case Protocol::kTcp:
        right = protocol == 6;
        break;
      case Protocol::kUdp:
        right = protocol == 17;
        break;
      case Protocol::kTcpOrUdp:
        right = protocol == 6 || protocol == 17;
        break;
      case Protocol::kSctp:
        right = protocol == 132;
        break;
      case Protocol::kIcmp:
        right = protocol == 1 || protocol == 58;
        break;
      case Protocol::kIcmp4:
        right = protocol == 1;
        break;
      case Protocol::kIcmp6:
        right = protocol == 58;
        break;
    }
    for (const FieldTest& test : rule.tests) right &= test.field != Field::kIpProtocol || test.holds(protocol);
    if (right) return true;
  }
  return false;
}

/// Adds the values of a field that the rule may match.
void add_values(const Rule& rule, Field field, ByteSetView& to) {
  for (uint32_t v = 0; v < 256; ++v) {
    const auto holds = [&](const FieldTest& t) { return t.field != field || t.holds(v); };
    if (std::all_of(rule.tests.begin(), rule.tests.end(), holds)) to.add(v);
  }
}

}  // namespace

RuleProgram::RuleProgram(std::vector<Rule> rules) : rules_(std::move(rules)), port_bits_(kPortBits) {
  std::map<std::pair<std::string, bool>, std::vector<uint32_t>> by_literal;
  for (uint32_t i = 0; i < rules_.size(); ++i) {
    Rule& rule = rules_[i];
    const bool by_port = rule.fast_length <= kShortLiteral && has_few_ports(rule);
    if (rule.fast_step < 0 || by_port) {
      rule.fast_is_all = false;
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
  if (is_about(rule, {kTcp})) add_with_ports(number, kGroupTcp);
  if (is_about(rule, {kUdp})) add_with_ports(number, kGroupUdp);
  if (is_about(rule, {1, 58})) {
    groups_[kGroupIcmp].any.push_back(number);
    add_values(rule, Field::kIcmpType, always_.icmp_types);
  }
  // Any other protocol; asking for each of them tells whether ip_proto names one.
  bool about_others = false;
  for (int p = 0; p < 256; ++p)
    about_others |= p != kTcp && p != kUdp && p != 1 && p != 58 && is_about(rule, {static_cast<uint8_t>(p)});
  // A fragment without its header is looked at as such, whatever it carries.
  if (about_others || (rule.protocol != Protocol::kSctp && rule.sports->is_all() && rule.dports->is_all()))
    always_.other = true;
  if (about_others) groups_[kGroupOther].any.push_back(number);
}

/// Puts a rule where it is found: by the side that has few ports, or without ports.
void RuleProgram::add_with_ports(uint32_t number, int group) {
  const Rule& rule = rules_[number];
  Group& to = groups_[group];
  const uint32_t first = group == kGroupTcp ? 0 : 2;
  const uint32_t sources = size_of(*rule.sports), destinations = size_of(*rule.dports);
  const bool by_src = sources <= kFewPorts && sources < destinations;
  if (!rule.both_ways && (by_src || destinations <= kFewPorts)) {
    (by_src ? to.by_src_port : to.by_dst_port).push_back(number);
    for (const auto& interval : (by_src ? rule.sports : rule.dports)->intervals())
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

AlwaysView RuleProgram::always() const {
  AlwaysView view = always_;
  view.ports = port_bits_.data();
  return view;
}

}  // namespace headrace::rules
