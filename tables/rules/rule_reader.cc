#include "tables/rules/rule_reader.hh"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "tables/files/text_lines.hh"
#include "tables/rules/rule_options.hh"
#include "tables/rules/rule_text.hh"

namespace headrace::rules {

namespace {

struct ActionName {
  std::string_view name;
  Action action;
};
constexpr ActionName kActions[] = {
    {"alert", Action::kAlert},      {"log", Action::kLog},          {"pass", Action::kPass},
    {"drop", Action::kDrop},        {"block", Action::kDrop},       {"reject", Action::kReject},
    {"rejectsrc", Action::kReject}, {"rejectdst", Action::kReject}, {"rejectboth", Action::kReject},
};
constexpr std::string_view kOtherActions[] = {"sdrop", "activate", "dynamic", "rewrite",
                                              "react", "file_id",  "config",  "accept"};

struct ProtocolName {
  std::string_view name;
  Protocol protocol;
};
constexpr ProtocolName kProtocols[] = {
    {"ip", Protocol::kIp},        {"pkthdr", Protocol::kIp}, {"ipv4", Protocol::kIp4},  {"ip4", Protocol::kIp4},
    {"ipv6", Protocol::kIp6},     {"ip6", Protocol::kIp6},   {"tcp", Protocol::kTcp},   {"tcp-pkt", Protocol::kTcp},
    {"udp", Protocol::kUdp},      {"sctp", Protocol::kSctp}, {"icmp", Protocol::kIcmp}, {"icmpv4", Protocol::kIcmp4},
    {"icmpv6", Protocol::kIcmp6},
};
/// Those of Suricata and Snort 3 that are found out by looking into the stream, and what carries them.
constexpr ProtocolName kApplications[] = {
    {"http", Protocol::kTcp},       {"http1", Protocol::kTcp},
    {"http2", Protocol::kTcp},      {"http3", Protocol::kUdp},
    {"tls", Protocol::kTcp},        {"ssl", Protocol::kTcp},
    {"ssh", Protocol::kTcp},        {"smtp", Protocol::kTcp},
    {"imap", Protocol::kTcp},       {"pop3", Protocol::kTcp},
    {"ftp", Protocol::kTcp},        {"ftp-data", Protocol::kTcp},
    {"smb", Protocol::kTcp},        {"dcerpc", Protocol::kTcpOrUdp},
    {"dns", Protocol::kTcpOrUdp},   {"doh2", Protocol::kTcp},
    {"mdns", Protocol::kUdp},       {"nfs", Protocol::kTcpOrUdp},
    {"ntp", Protocol::kUdp},        {"tftp", Protocol::kUdp},
    {"ike", Protocol::kUdp},        {"ikev2", Protocol::kUdp},
    {"krb5", Protocol::kTcpOrUdp},  {"dhcp", Protocol::kUdp},
    {"snmp", Protocol::kUdp},       {"sip", Protocol::kTcpOrUdp},
    {"rfb", Protocol::kTcp},        {"mqtt", Protocol::kTcp},
    {"rdp", Protocol::kTcp},        {"modbus", Protocol::kTcp},
    {"dnp3", Protocol::kTcp},       {"enip", Protocol::kTcpOrUdp},
    {"pgsql", Protocol::kTcp},      {"telnet", Protocol::kTcp},
    {"quic", Protocol::kUdp},       {"ldap", Protocol::kTcpOrUdp},
    {"websocket", Protocol::kTcp},  {"bittorrent-dht", Protocol::kUdp},
    {"tcp-stream", Protocol::kTcp},
};
constexpr std::string_view kOtherProtocols[] = {"file", "user", "arp", "ether", "netbios-ssn"};

template <typename Table>
auto find_name(const Table& table, std::string_view name) -> decltype(&table[0]) {
  for (const auto& entry : table)
    if (entry.name == name) return &entry;
  return nullptr;
}
template <size_t N>
bool contains(const std::string_view (&names)[N], std::string_view name) {
  return std::find(std::begin(names), std::end(names), name) != std::end(names);
}

/// Takes a word off the front of `text`; blanks within brackets are part of it.
std::string_view take_word(std::string_view& text) {
  text = trimmed(text);
  size_t i = 0;
  int brackets = 0;
  for (; i < text.size(); ++i) {
    if (text[i] == '[') ++brackets;
    if (text[i] == ']') --brackets;
    if (is_blank(text[i]) && brackets <= 0) break;
    if (text[i] == '(') break;
  }
  const std::string_view word = text.substr(0, i);
  text.remove_prefix(i);
  return word;
}

/// Whether a comment is a disabled rule, not a sentence.
bool looks_like_rule(std::string_view text) {
  const std::string_view action = take_word(text);
  const std::string_view protocol = take_word(text);
  if (!find_name(kActions, action) && !contains(kOtherActions, action)) return false;
  if (!find_name(kProtocols, protocol) && !find_name(kApplications, protocol) && !contains(kOtherProtocols, protocol))
    return false;
  const size_t options = text.find('(');
  const std::string_view header = text.substr(0, options);
  return options != std::string_view::npos &&
         (header.find("->") != std::string_view::npos || header.find("<>") != std::string_view::npos);
}

std::string with_commas(uint64_t n) {
  std::string text = std::to_string(n);
  for (size_t at = text.size(); at > 3; at -= 3) text.insert(at - 3, ",");
  return text;
}

}  // namespace

uint64_t RuleSet::refused_unsupported() const {
  return static_cast<uint64_t>(
      std::count_if(refused.begin(), refused.end(), [](const auto& r) { return r.unsupported; }));
}

uint64_t RuleSet::without_fast_pattern() const {
  return static_cast<uint64_t>(
      std::count_if(rules.begin(), rules.end(), [](const auto& r) { return r.fast_step < 0; }));
}

uint64_t RuleSet::flow_ignored() const {
  return static_cast<uint64_t>(std::count_if(rules.begin(), rules.end(), [](const auto& r) { return r.flow_ignored; }));
}

std::string RuleSet::summary(size_t most_reasons) const {
  std::string text = fmt::format("{} rules: {} run", with_commas(read), with_commas(rules.size()));
  const uint64_t other = refused_unsupported();
  if (other > 0) {
    text += fmt::format(", {} ask for what is not supported (", with_commas(other));
    std::vector<std::pair<uint64_t, std::string>> reasons;
    for (const auto& [name, count] : unsupported) reasons.emplace_back(count, name);
    std::stable_sort(reasons.begin(), reasons.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
    for (size_t i = 0; i < reasons.size() && i < most_reasons; ++i)
      text += fmt::format("{}{} {}", i == 0 ? "" : ", ", reasons[i].second, with_commas(reasons[i].first));
    text += reasons.size() > most_reasons ? ", ...)" : ")";
  }
  if (refused.size() > other) text += fmt::format(", {} are wrong", with_commas(refused.size() - other));
  if (disabled > 0) text += fmt::format("; {} more are commented out", with_commas(disabled));
  return text;
}

RuleReader::RuleReader(Options options) : options_(std::move(options)), sets_(options_.variables) {}

std::vector<std::string> RuleReader::bad_variables() {
  std::vector<std::string> bad;
  for (const auto& [name, value] : options_.variables) {
    // The name does not tell whether it stands for addresses or ports.
    std::string as_addresses, as_ports;
    if (!sets_.addresses("$" + name, as_addresses) && !sets_.ports("$" + name, as_ports))
      bad.push_back(name + ": " + (name.ends_with("PORTS") ? as_ports : as_addresses));
  }
  return bad;
}

std::string RuleReader::read_rules(const std::string& path) {
  Lines lines;
  const std::string error = read_text_lines(
      path, [&](std::string_view text) { line(lines, text, path); }, kLongestLine);
  end(lines, path);
  return error;
}

void RuleReader::read_text(std::string_view text, const std::string& file) {
  Lines lines;
  while (!text.empty()) {
    const size_t newline = text.find('\n');
    line(lines, text.substr(0, newline), file);
    text.remove_prefix(newline == std::string_view::npos ? text.size() : newline + 1);
  }
  end(lines, file);
}

void RuleReader::line(Lines& lines, std::string_view text, const std::string& file) {
  ++lines.number;
  if (text.ends_with('\r')) text.remove_suffix(1);
  if (!lines.open) {
    lines.text.clear();
    lines.first = lines.number;
  } else if (lines.text.starts_with('#')) {
    // The next line of a rule that is commented out may be so by itself.
    while (text.starts_with('#')) text.remove_prefix(1);
  }
  std::string_view part = text;
  while (!part.empty() && is_blank(part.back())) part.remove_suffix(1);
  lines.open = part.ends_with('\\');
  if (lines.open) part.remove_suffix(1);
  // A byte above the bound is kept, to see that it is too long.
  lines.text.append(part.substr(0, kLongestLine + 1 - std::min(lines.text.size(), kLongestLine + 1)));
  if (!lines.open) statement(lines.text, file, lines.first);
}

void RuleReader::end(Lines& lines, const std::string& file) {
  if (lines.open) statement(lines.text, file, lines.first);
  lines.open = false;
}

void RuleReader::statement(std::string_view text, const std::string& file, int line) {
  text = trimmed(text);
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);  // a mark that some editors put before a text
  if (text.starts_with('#')) {
    while (text.starts_with('#')) text = trimmed(text.substr(1));
    if (!looks_like_rule(text)) return;
    if (!options_.disabled) {
      ++set_.disabled;
      return;
    }
  }
  if (text.empty()) return;
  if (text.starts_with("config classification:")) {
    if (const std::string error = classification(text); !error.empty()) set_.refused.push_back({file, line, 0, error});
    return;
  }
  ++set_.read;
  rule(text, file, line);
}

void RuleReader::refuse(const Rule& rule, std::string reason, bool unsupported) {
  set_.refused.push_back({rule.file, rule.line, rule.sid, std::move(reason), unsupported});
}

void RuleReader::rule(std::string_view text, const std::string& file, int line) {
  Rule rule;
  rule.file = file;
  rule.line = line;
  if (text.size() > kLongestLine) return refuse(rule, fmt::format("longer than {} bytes", kLongestLine));
  rule.priority = 0;  // not given

  std::string error;
  const size_t open = text.find('(');
  const std::string_view options = open == std::string_view::npos ? std::string_view() : text.substr(open + 1);
  OptionReader reader(rule);
  std::vector<std::string> unsupported;
  const bool good_header = header(text.substr(0, open), rule, error);
  if (good_header && !error.empty()) {
    unsupported.push_back(error);
    error.clear();
  }
  // The sid of a rule is worth knowing even if its header is wrong.
  bool good_options = false;
  std::string option_error;
  if (open == std::string_view::npos) {
    option_error = "expected '(' and options";
  } else if (!options.ends_with(')')) {
    option_error = "the closing ')' is missing";
  } else {
    good_options = reader.read(options.substr(0, options.size() - 1));
    option_error = reader.error();
  }
  if (!good_header) return refuse(rule, error);
  if (!good_options) return refuse(rule, option_error);
  unsupported.insert(unsupported.end(), reader.unsupported().begin(), reader.unsupported().end());
  if (!unsupported.empty()) {
    std::string list;
    for (const std::string& name : unsupported) {
      ++set_.unsupported[name];
      list += (list.empty() ? "" : ", ") + name;
    }
    return refuse(rule, "not supported: " + list, true);
  }
  keep(std::move(rule));
}

/// False with `error` set when it is wrong; true with `error` set when it is right but not supported.
bool RuleReader::header(std::string_view text, Rule& rule, std::string& error) {
  const auto fail = [&](std::string why) {
    error = std::move(why);
    return false;
  };
  std::string other;
  const std::string_view action = take_word(text);
  if (const ActionName* known = find_name(kActions, action)) {
    rule.action = known->action;
  } else if (contains(kOtherActions, action)) {
    other = fmt::format("action {}", action);
  } else {
    return fail(fmt::format("unknown action '{}', expected alert, log, pass, drop or reject", action.substr(0, 40)));
  }
  const std::string_view protocol = take_word(text);
  if (const ProtocolName* known = find_name(kProtocols, protocol)) {
    rule.protocol = known->protocol;
  } else if (known = find_name(kApplications, protocol); known && options_.applications) {
    rule.protocol = known->protocol;
  } else if (known || contains(kOtherProtocols, protocol)) {
    if (other.empty()) other = fmt::format("protocol {}", protocol);
  } else {
    return fail(fmt::format("unknown protocol '{}'", protocol.substr(0, 40)));
  }
  const std::string_view src = take_word(text), sports = take_word(text), direction = take_word(text);
  const std::string_view dst = take_word(text), dports = take_word(text);
  if (!other.empty() && src.empty()) {
    // Snort 3 leaves addresses out where it knows the application.
    error = other;
    return true;
  }
  if (dports.empty()) return fail("expected 'action protocol address ports -> address ports (options)'");
  if (direction != "->" && direction != "<>")
    return fail(fmt::format("bad direction '{}', expected '->' or '<>'", direction));
  rule.both_ways = direction == "<>";
  if (!trimmed(text).empty()) return fail(fmt::format("expected '(' before '{}'", trimmed(text).substr(0, 40)));
  rule.src = sets_.addresses(src, error);
  if (rule.src) rule.sports = sets_.ports(sports, error);
  if (rule.sports) rule.dst = sets_.addresses(dst, error);
  if (rule.dst) rule.dports = sets_.ports(dports, error);
  if (!rule.dports) return false;
  error = other;
  return true;
}

void RuleReader::keep(Rule rule) {
  const uint64_t key = uint64_t{rule.gid} << 32 | rule.sid;
  const auto [at, fresh] = by_sid_.try_emplace(key, set_.rules.size());
  if (!fresh) {
    const Rule& before = set_.rules[at->second];
    if (rule.rev <= before.rev)
      return refuse(
          rule, fmt::format("sid {} is there already: {}:{}, rev {}", rule.sid, before.file, before.line, before.rev));
    refuse(before, fmt::format("replaced by rev {} of sid {}: {}:{}", rule.rev, rule.sid, rule.file, rule.line));
    replaced_[at->second] = true;
    at->second = set_.rules.size();
  }
  for (Step& step : rule.steps)
    if (auto* regex = std::get_if<Regex>(&step)) regex->expression.translate();
  set_.rules.push_back(std::move(rule));
  replaced_.push_back(false);
}

/// "config classification: name,description,priority"; what is wrong with it, or an empty text.
std::string RuleReader::classification(std::string_view text) {
  text = trimmed(text.substr(text.find(':') + 1));
  const std::string_view name = take_until(text, ',');
  const size_t comma = text.rfind(',');
  const std::optional<uint32_t> priority =
      comma == std::string_view::npos ? std::nullopt : whole_number<uint32_t>(trimmed(text.substr(comma + 1)), 255);
  if (name.empty() || !priority || *priority == 0) return "expected 'config classification: name,description,priority'";
  classes_[std::string(name)] = {std::string(trimmed(text.substr(0, comma))), *priority};
  return {};
}

std::string RuleReader::read_classification(const std::string& path) {
  int number = 0;
  return read_text_lines(path, [&](std::string_view text) {
    ++number;
    text = trimmed(text);
    if (text.empty() || text.starts_with('#')) return;
    const std::string error = text.starts_with("config classification:")
                                  ? classification(text)
                                  : "expected 'config classification: name,description,priority'";
    if (!error.empty()) set_.refused.push_back({path, number, 0, error});
  });
}

RuleSet RuleReader::finish() {
  std::vector<Rule> kept;
  for (size_t i = 0; i < set_.rules.size(); ++i) {
    if (replaced_[i]) continue;
    Rule& rule = set_.rules[i];
    const auto at = classes_.find(rule.classtype);
    rule.category = at != classes_.end() ? at->second.description : rule.classtype;
    if (rule.priority == 0) rule.priority = at != classes_.end() ? at->second.priority : 3;
    kept.push_back(std::move(rule));
  }
  set_.rules = std::move(kept);
  by_sid_.clear();
  replaced_.clear();
  return std::move(set_);
}

}  // namespace headrace::rules
