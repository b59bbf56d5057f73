#include "io/memory/rule_draw.hh"

#include <algorithm>
#include <string>

#include "headrace/grouped.hh"
#include "tables/acl/acl_table.hh"
#include "tables/acl/rule_file.hh"

namespace headrace {

namespace {

/// Frames drawn before a rule counts as one without any, or all frames as inside the rules.
constexpr int kTries = 256, kMissTries = 10'000;
/// Bad lines of a file that are named.
constexpr size_t kBadRulesNamed = 100;

TrafficHeaderOptions header_options(const TrafficSpec& spec) {
  return {.ttl = spec.ttl, .protocol = spec.protocol, .shortest = spec.shortest, .payload = spec.payload};
}

KeyMatch match_of(const std::string& words) {
  KeyMatch match;
  for (size_t at = 0; at < words.size();) {
    const size_t end = std::min(words.find(',', at), words.size());
    (void)add_to_match(match, std::string_view(words).substr(at, end - at));
    at = end + 1;
  }
  return match;
}

/// Everything of the same kind of packet.
KeyMatch opened(const KeyMatch& match) {
  KeyMatch open;
  const uint32_t type = match.mask[key_word::kTypes] & 0xffff0000;
  open.mask[key_word::kTypes] = type;
  open.value[key_word::kTypes] = match.value[key_word::kTypes] & type;
  return open;
}

}  // namespace

RuleDraw::RuleDraw(const TrafficSpec& spec, TrafficRandom& random)
    : spec_(spec), random_(random), options_(header_options(spec)), rules_(spec.rules) {
  if (rules_.empty()) {
    for (const Ip6Prefix& prefix : spec.prefixes)
      usual_.push_back(match_of("ipv6,ipv6_src=2001:2::1,tp_dst=53,ipv6_dst=" + prefix.unparse()));
    if (usual_.empty()) usual_.push_back(match_of("ip,nw_src=198.18.1.1,tp_dst=53"));
    rules_ = usual_;
  } else if (spec.kind == TrafficSpec::Kind::kZipf) {
    zipf_.emplace(static_cast<uint32_t>(rules_.size()), spec.skew);
  }
  for (const KeyMatch& match : rules_) narrow_ &= headrace::is_narrow(match);
  if (spec.miss == 0) return;
  AclOptions options;
  for (const KeyMatch& match : rules_)
    for (uint32_t w = options.words; w < key_word::kCount; ++w)
      if (match.mask[w] != 0) options.words = key_word::kCount;
  table_ = std::make_unique<AclTable>(options);
  uint32_t number = 0;
  for (const KeyMatch& match : rules_) {
    const KeyMatch visible = without_context(match);
    if (visible == opened(visible)) continue;
    table_->insert(number, AclTable::tightened({visible.value, visible.mask, visible.low, visible.high, 0, 0}));
    ++number;
  }
  table_->commit();
}

RuleDraw::~RuleDraw() = default;

const KeyMatch& RuleDraw::choose() { return rules_[zipf_ ? zipf_->draw(random_) : random_.next() % rules_.size()]; }

bool RuleDraw::draw_miss(uint32_t length, WideHeader& header) {
  for (int tries = 0; tries < kMissTries; ++tries) {
    if (!draw_header(opened(choose()), options_, length, random_, header)) continue;
    if (table_->view().find(key_of(header).w).number == AclTable::kNone) return true;
  }
  misses_failed_ = true;
  return false;
}

WideHeader RuleDraw::next(uint32_t length) {
  WideHeader header;
  if (table_ && !misses_failed_ && random_.unit() < spec_.miss && draw_miss(length, header)) return header;
  // Each rule has frames.
  while (!draw_header(choose(), options_, length, random_, header)) {
  }
  return header;
}

bool read_traffic_rules(const std::string& path, TrafficSpec& spec, Errors& errors) {
  std::vector<FlowRule> rules;
  std::vector<std::string> problems;
  if (const std::string fault = read_flow_rules(path, rules, problems); !fault.empty())
    return errors.error("RULES: {}: {}", path, fault).ok();
  const TrafficHeaderOptions options = header_options(spec);
  TrafficRandom random(spec.seed);
  WideHeader header;
  for (const FlowRule& rule : rules) {
    int tries = 0;
    while (tries < kTries && !draw_header(rule.match, options, spec.length, random, header)) ++tries;
    if (tries < kTries) {
      spec.rules.push_back(rule.match);
    } else {
      problems.push_back(fmt::format("{}:{}: no frame can be drawn inside this rule", path, rule.line));
    }
  }
  for (size_t i = 0; i < std::min(problems.size(), kBadRulesNamed); ++i) errors.warning("RULES: {}", problems[i]);
  if (problems.size() > kBadRulesNamed)
    errors.warning("RULES: {}: {} more bad lines", path, grouped(problems.size() - kBadRulesNamed));
  return !spec.rules.empty() || errors.error("RULES: {}: no rules", path).ok();
}

}  // namespace headrace
