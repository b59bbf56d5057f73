#include "tables/acl/rule_file.hh"

#include <fmt/format.h>

#include <optional>

#include "headrace/addresses.hh"
#include "headrace/text.hh"
#include "tables/files/route_text.hh"
#include "tables/files/text_lines.hh"

namespace headrace {

namespace {

using route_text::shown;

std::string parse_prefix_words(std::string_view word, KeyMatch& match, uint32_t at) {
  IpPrefix prefix;
  if (word.find('/') == std::string_view::npos || !parse(word, prefix) || prefix.length() < 0)
    return fmt::format("bad prefix '{}'", shown(word));
  match.mask[at] = prefix.mask.host_order();
  match.value[at] = prefix.network().host_order();
  return {};
}

/// `LOW : HIGH`, also without blanks.
std::string parse_port_range(std::string_view& text, uint32_t& low, uint32_t& high, int shift) {
  std::string words;
  // Two numbers and the colon between them are up to three words.
  for (int i = 0; i < 3; ++i) {
    const std::string_view before = text;
    const std::string_view word = next_word(text);
    if (i > 0 && words.find(':') != std::string::npos && words.back() != ':') {
      text = before;
      break;
    }
    words += word;
  }
  const size_t colon = words.find(':');
  const auto first = whole_number<uint16_t>(std::string_view(words).substr(0, colon));
  const auto last = colon == std::string::npos ? std::optional<uint16_t>()
                                               : whole_number<uint16_t>(std::string_view(words).substr(colon + 1));
  if (!first || !last) return fmt::format("expected ports as LOW : HIGH, found '{}'", shown(words));
  if (*first > *last) return fmt::format("the range of ports '{}' is empty", shown(words));
  low |= uint32_t{*first} << shift;
  high |= uint32_t{*last} << shift;
  return {};
}

/// `0xV/0xM` of so many bits.
bool parse_hex_pair(std::string_view word, uint32_t most, uint32_t& value, uint32_t& mask) {
  const size_t slash = word.find('/');
  if (slash == std::string_view::npos) return false;
  const auto number = [most](std::string_view digits) {
    return digits.starts_with("0x") || digits.starts_with("0X") ? whole_number<uint32_t>(digits.substr(2), most, 16)
                                                                : std::nullopt;
  };
  const auto v = number(word.substr(0, slash)), m = number(word.substr(slash + 1));
  if (!v || !m) return false;
  value = *v;
  mask = *m;
  return true;
}

std::string parse_class_bench(std::string_view text, FlowRule& rule) {
  KeyMatch& match = rule.match;
  text.remove_prefix(1);
  if (std::string bad = parse_prefix_words(next_word(text), match, key_word::kIp4Src); !bad.empty()) return bad;
  if (std::string bad = parse_prefix_words(next_word(text), match, key_word::kIp4Dst); !bad.empty()) return bad;
  match.low = match.high = 0;
  if (std::string bad = parse_port_range(text, match.low, match.high, 16); !bad.empty()) return bad;
  if (std::string bad = parse_port_range(text, match.low, match.high, 0); !bad.empty()) return bad;
  uint32_t value = 0, mask = 0;
  const std::string_view protocol = next_word(text);
  if (!parse_hex_pair(protocol, 0xff, value, mask))
    return fmt::format("expected the protocol as 0xNN/0xMM, found '{}'", shown(protocol));
  match.value[key_word::kTypes] = 0x0800u << 16 | (value & mask) << 8;
  match.mask[key_word::kTypes] = 0xffffu << 16 | mask << 8;
  const std::string_view flags = next_word(text);
  if (!flags.empty() && !parse_hex_pair(flags, 0xffff, value, mask))
    return fmt::format("expected flags as 0xNNNN/0xMMMM, found '{}'", shown(flags));
  if (const std::string_view rest = next_word(text); !rest.empty())
    return fmt::format("unexpected '{}' after the flags", shown(rest));
  rule.priority = kClassBenchPriority - rule.number;
  rule.output = FlowRule::kUnsaid;
  return {};
}

/// Words that tell nothing about a match.
bool is_ignored(std::string_view word) {
  for (const std::string_view name : {"cookie=", "duration=", "n_packets=", "n_bytes=", "idle_age=", "hard_age="})
    if (word.starts_with(name)) return true;
  return word == "table=0" || word == "idle_timeout=0" || word == "hard_timeout=0";
}

std::string parse_action(std::string_view action, int& output) {
  action = trimmed(action);
  if (action == "drop") {
    output = FlowRule::kDrop;
    return {};
  }
  const std::string_view port = action.starts_with("output:") ? action.substr(7) : action;
  const auto number = whole_number<int>(port);
  if (!number) return fmt::format("expected actions=output:PORT or drop, found '{}'", shown(action));
  output = *number;
  return {};
}

std::string parse_words(std::string_view text, FlowRule& rule) {
  const std::string_view all = text;
  // Words end with a comma or a blank.
  while (!text.empty()) {
    const size_t end = text.find_first_of(", \t");
    const std::string_view word = text.substr(0, end);
    text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
    if (word.empty() || is_ignored(word)) continue;
    if (word.starts_with("priority=")) {
      const auto priority = whole_number<uint32_t>(word.substr(9));
      if (!priority) return fmt::format("bad priority '{}'", shown(word.substr(9)));
      rule.priority = *priority;
      continue;
    }
    if (std::string bad = add_to_match(rule.match, word); !bad.empty()) return bad;
  }
  return check_match(rule.match, all);
}

}  // namespace

std::string parse_flow_match(std::string_view text, FlowRule& rule) {
  text = trimmed(text);
  return text.starts_with('@') ? parse_class_bench(text, rule) : parse_words(text, rule);
}

std::string parse_flow_rule(std::string_view text, FlowRule& rule) {
  text = trimmed(text);
  if (text.starts_with('@')) return parse_class_bench(text, rule);
  const size_t actions = text.find("actions=");
  if (actions == std::string_view::npos) return "expected a ClassBench rule or MATCH actions=ACTION";
  if (std::string bad = parse_action(text.substr(actions + 8), rule.output); !bad.empty()) return bad;
  return parse_words(text.substr(0, actions), rule);
}

std::string unparse_flow_rule(const FlowRule& rule) {
  std::string text = fmt::format("priority={}", rule.priority);
  if (const std::string match = unparse_match(rule.match); !match.empty()) text += "," + match;
  if (rule.output >= 0) return text + fmt::format(" actions=output:{}", rule.output);
  return rule.output == FlowRule::kDrop ? text + " actions=drop" : text;
}

namespace {

/// Reads lines one after the other.
struct FlowRuleReader {
  const std::string& path;
  std::vector<FlowRule>& rules;
  std::vector<std::string>& problems;
  int line = 0;
  uint32_t numbered = 0;

  void read(std::string_view text) {
    ++line;
    const auto bad = [&](std::string_view reason) { problems.push_back(fmt::format("{}:{}: {}", path, line, reason)); };
    if (text.size() > kLongestTextLine) return bad("line is too long");
    text = trimmed(text.substr(0, text.find('#')));
    if (text.empty()) return;
    FlowRule rule;
    rule.line = line;
    rule.number = numbered;
    numbered += text.starts_with('@') ? 1 : 0;
    if (const std::string reason = parse_flow_rule(text, rule); !reason.empty()) return bad(reason);
    rules.push_back(rule);
  }
};

}  // namespace

std::string read_flow_rules(const std::string& path, std::vector<FlowRule>& rules, std::vector<std::string>& problems) {
  FlowRuleReader reader{path, rules, problems};
  return read_text_lines(path, [&](std::string_view line) { reader.read(line); });
}

void read_flow_rules_text(std::string_view text, const std::string& path, std::vector<FlowRule>& rules,
                          std::vector<std::string>& problems) {
  FlowRuleReader reader{path, rules, problems};
  while (!text.empty()) {
    const size_t end = text.find('\n');
    reader.read(text.substr(0, end));
    text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
  }
}

AclRule acl_rule(const FlowRule& rule, uint32_t data) {
  static_assert(AclRule::kMostWords == key_word::kCount && kAclPortWord == key_word::kPorts);
  return {rule.match.value, rule.match.mask, rule.match.low, rule.match.high, rule.priority, data};
}

}  // namespace headrace
