#include "elements/ids/ids_rules.hh"

#include <fmt/format.h>

#include <algorithm>
#include <headrace/router.hh>
#include <numeric>

#include "elements/ids/pattern_engine_arg.hh"

namespace headrace {

namespace {

/// Wrong rules that are named when a configuration is read; the handler `refused` has all.
constexpr size_t kMostWarnings = 20;

}  // namespace

struct IDSRules::Matches {
  static constexpr uint32_t kMost = 64;

  rules::WorkLimit limit;
  uint32_t rules[kMost];
  uint32_t count = 0;
  bool passed = false;
  bool cut = false;
};

Status IDSRules::configure(Args& args) {
  std::vector<std::string> files, classification;
  std::vector<std::vector<std::string>> variables;
  std::string home, external;
  rules::RuleReader::Options options;
  bool strict = false;
  PatternEngine engine = PatternEngine::kNone;
  log_options_.file = "eve.json";
  log_options_.rate = 100;
  args.read_all("RULES", files, InputFile{}).read_all("CLASSIFICATION", classification, InputFile{});
  args.read("HOME_NET", home).read("EXTERNAL_NET", external).read_all("VAR", variables);
  args.read("DISABLED", options.disabled).read("APPLICATIONS", options.applications).read("STRICT", strict);
  args.read("ALERTS", log_options_.file, FileName{}).read("RATE", log_options_.rate, Between{0, 1000000000});
  args.read("QUEUE", log_options_.queue, Between{1, 1 << 20});
  args.read("ENGINE", engine, PatternEngineArg{});
  if (!args.complete()) return Status::failed();
  Errors& errors = args.errors();
  if (files.empty()) return errors.error("RULES: required argument missing");
  Status status;
  for (const std::vector<std::string>& variable : variables) {
    if (variable.size() != 2 || variable[0].empty())
      status = errors.error("VAR: expected a name and a value");
    else
      options.variables[variable[0].substr(variable[0][0] == '$')] = variable[1];
  }
  if (!home.empty()) options.variables["HOME_NET"] = home;
  if (!external.empty()) options.variables["EXTERNAL_NET"] = external;
  status &= read(files, classification, options, strict, errors);
  return status ? build(engine, errors) : status;
}

Status IDSRules::read(const std::vector<std::string>& files, const std::vector<std::string>& classification,
                      const rules::RuleReader::Options& options, bool strict, Errors& errors) {
  Status status;
  rules::RuleReader reader(options);
  for (const std::string& variable : reader.bad_variables()) status = errors.error("{}", variable);
  for (const bool classes : {false, true}) {
    for (const std::string& file : classes ? classification : files) {
      files_.push_back(FileStamp::of(file));
      const std::string error = classes ? reader.read_classification(file) : reader.read_rules(file);
      if (!error.empty()) status = errors.error("{}: {}", file, error);
    }
  }
  set_ = reader.finish();
  size_t warnings = 0;
  for (const rules::RefusedRule& refused : set_.refused) {
    if (strict)
      status = errors.error("{}", refused.text());
    else if (!refused.unsupported && ++warnings <= kMostWarnings)
      errors.warning("{}", refused.text());
  }
  if (warnings > kMostWarnings)
    errors.warning("{} more rules are wrong: see the handler 'refused'", warnings - kMostWarnings);
  summary_ = set_.summary();
  flow_ignored_ = set_.flow_ignored();
  return status;
}

Status IDSRules::build(PatternEngine engine, Errors& errors) {
  program_.emplace(std::move(set_.rules));
  set_.rules.clear();
  port_groups_ = rules::PortGroups(*program_);
  alerts_.resize(static_cast<int>(program_->rules().size()));
  for (int i = 0; i < seen_.size(); ++i) {
    seen_[i].bits.assign((program_->patterns().size() + 63) / 64, 0);
    seen_[i].patterns.reserve(program_->patterns().size());
  }
  PatternSet patterns;
  Status status;
  for (const Pattern& pattern : program_->patterns()) status &= patterns.add(pattern, errors);
  PatternMatcherOptions options;
  options.engine = engine;
  return status ? matcher_.build(std::move(patterns), options, errors) : status;
}

Status IDSRules::initialize(Errors& errors, const Element& element) {
  // A new configuration may have taken the rules over as they are; and who only checks one wants no file.
  return log_.is_open() || element.router().look_only() ? Status() : log_.open(log_options_, program_->rules(), errors);
}

bool IDSRules::current() const {
  return std::all_of(files_.begin(), files_.end(), [](const FileStamp& file) { return file.unchanged(); });
}

std::string IDSRules::note() const { return summary_; }

void IDSRules::check(uint32_t rule, const rules::PacketFacts& facts, Matches& matches) {
  if (matches.limit.exhausted()) return;
  switch (program_->confirm(rule, facts, matches.limit)) {
    case rules::Confirmed::kNoMatch:
      return;
    case rules::Confirmed::kCut:
      matches.cut = true;
      return;
    case rules::Confirmed::kMatch:
      break;
  }
  if (program_->rules()[rule].action == rules::Action::kPass)
    matches.passed = true;
  else if (matches.count < Matches::kMost)
    matches.rules[matches.count++] = rule;
  else
    matches.cut = true;
}

/// Finds all patterns of the payload, not only the four that a device tells.
void IDSRules::look_for_all(const rules::PacketFacts& facts, const PacketBytes& packet, Matches& matches) {
  Seen& seen = seen_.local();
  const PortGroupsView groups = port_groups_.view();
  const PortPair ports = groups.of(packet);
  const std::string_view payload = facts.payload();
  const PayloadBytes bytes{reinterpret_cast<const uint8_t*>(payload.data()), static_cast<uint32_t>(payload.size())};
  const bool whole = matcher_.scan(bytes, [&](uint32_t pattern, uint32_t) {
    if (!groups.admits(ports, pattern)) return;
    uint64_t& word = seen.bits[pattern >> 6];
    const uint64_t bit = uint64_t{1} << (pattern & 63);
    if ((word & bit) != 0) return;
    word |= bit;
    seen.patterns.push_back(pattern);
  });
  // The order of the patterns is not that of the search, so that a cut does not depend on who searched.
  std::sort(seen.patterns.begin(), seen.patterns.end());
  for (const uint32_t pattern : seen.patterns) {
    seen.bits[pattern >> 6] = 0;
    program_->each_of_pattern(pattern, [&](uint32_t rule) { check(rule, facts, matches); });
  }
  seen.patterns.clear();
  matches.cut |= !whole;
}

bool IDSRules::look_at(const Packet& p, Candidates candidates) {
  const PacketBytes bytes{p.data(), p.length(),
                          p.has_network_header() ? p.network_header_offset() : PacketBytes::kNone};
  const rules::PacketFacts facts(bytes);
  if (!facts.is_ip()) return false;
  Matches matches;
  program_->each_always(facts, [&](uint32_t rule) { check(rule, facts, matches); });
  if (candidates.more() || candidates.cut()) {
    events_.add(kRescans, 1);
    look_for_all(facts, bytes, matches);
  } else {
    for (uint32_t i = 0; i < candidates.count(); ++i)
      program_->each_of_pattern(candidates.pattern(i), [&](uint32_t rule) { check(rule, facts, matches); });
  }
  if (matches.cut) events_.add(kCut, 1);
  if (matches.passed) {
    events_.add(kPassed, 1);
    return false;
  }
  if (matches.count == 0) return false;
  events_.add(kConfirmed, 1);
  for (uint32_t i = 0; i < matches.count; ++i) {
    alerts_.add(static_cast<int>(matches.rules[i]), 1);
    log_.add(matches.rules[i], facts, p);
  }
  return true;
}

std::string IDSRules::rules_text() const {
  std::string text = summary_ + "\n";
  const uint64_t other = set_.refused_unsupported();
  text += fmt::format("read: {}\nrunning: {}\nnot supported: {}\nwrong: {}\ncommented out: {}\n", set_.read,
                      program_->rules().size(), other, set_.refused.size() - other, set_.disabled);
  text += fmt::format("tried without a search: {}\nwith flow: {}\n", program_->always_count(), flow_ignored_);
  for (const auto& [name, count] : set_.unsupported) text += fmt::format("not supported, {}: {}\n", name, count);
  return text + matcher_.text() + port_groups_.description() + "\n";
}

std::string IDSRules::refused_text() const {
  std::string text;
  for (const rules::RefusedRule& refused : set_.refused) text += refused.text() + "\n";
  return text;
}

/// Lines "sid count msg" of rules that matched: by sid, or the ten that did most often.
std::string IDSRules::alerts_text(bool top) const {
  struct Line {
    uint32_t rule;
    uint64_t count;
  };
  std::vector<Line> lines;
  const std::vector<rules::Rule>& all = program_->rules();
  for (uint32_t i = 0; i < all.size(); ++i)
    if (const uint64_t count = alerts_.sum(static_cast<int>(i)); count > 0) lines.push_back({i, count});
  std::sort(lines.begin(), lines.end(), [&](const Line& a, const Line& b) {
    if (top && a.count != b.count) return a.count > b.count;
    return std::tuple(all[a.rule].sid, all[a.rule].gid) < std::tuple(all[b.rule].sid, all[b.rule].gid);
  });
  if (top && lines.size() > 10) lines.resize(10);
  std::string text;
  for (const Line& line : lines) text += fmt::format("{} {} {}\n", all[line.rule].sid, line.count, all[line.rule].msg);
  return text;
}

void IDSRules::add_handlers(Handlers& handlers, ShaderElementBase& element) {
  const auto count = [&](const char* name, auto value) {
    handlers.read(name, [value] { return std::to_string(value()); });
  };
  handlers.read(
      "rules", [this] { return rules_text(); }, Handler::kCalm);
  handlers.read(
      "refused", [this] { return refused_text(); }, Handler::kCalm);
  handlers.read("alerts", [this] { return alerts_text(false); });
  handlers.read("top", [this] { return alerts_text(true); });
  count("candidates", [&element] { return element.counter(kCandidateCounter); });
  count("confirmed", [this] { return events_.sum(kConfirmed); });
  count("passed", [this] { return events_.sum(kPassed); });
  count("cut", [this] { return events_.sum(kCut); });
  count("rescans", [this] { return events_.sum(kRescans); });
  count("lost_alerts", [this] { return log_.lost(); });
  count("suppressed", [this] { return log_.suppressed(); });
  count("written", [this] { return log_.written(); });
  handlers.button(
      "flush", [this] { write_out(); }, Handler::kButton | Handler::kThreadSafe);
  handlers.button("reset", [this, &element] {
    alerts_.reset();
    events_.reset();
    log_.reset();
    element.reset_counters();
  });
}

}  // namespace headrace
