#include "elements/ip/flow_rules.hh"

#include <fmt/format.h>

#include <algorithm>
#include <headrace/batch.hh>
#include <headrace/grouped.hh>
#include <headrace/text.hh>
#include <random>

namespace headrace {

namespace {

/// Bad lines of a file that are named.
constexpr size_t kBadLinesNamed = 100;

}  // namespace

void FlowRules::count(Results<FlowClassifier::Result> results, int n) const {
  counts_.visit_ahead(
      n, AclMatch::kNone, [&](int i) { return results[i].number; },
      [&](int i, RuleCount* count) {
        if (count == nullptr) return;
        counts_.set(count->packets, count->packets + 1);
        counts_.set(count->bytes, count->bytes + results[i].length);
      });
}

uint32_t FlowRules::words_for(const FlowRule& rule) {
  uint32_t last = 0;
  for (uint32_t word = 0; word < key_word::kCount; ++word)
    if (rule.match.mask[word] != 0) last = word;
  return last < 4 ? 4 : last < 12 ? 12 : 32;
}

std::string FlowRules::why_not(const FlowRule& rule) const {
  if (rule.output >= outputs_)
    return fmt::format("output {}: this element has {} output{}", rule.output, outputs_, outputs_ == 1 ? "" : "s");
  if (words_for(rule) > words_) return fmt::format("needs FIELDS {}", words_for(rule) == 12 ? "openflow10" : "all");
  return {};
}

Status FlowRules::configure(Args& args) {
  Errors& errors = args.errors();
  outputs_ = args.scope() ? args.scope()->noutputs() : 0;
  std::string path;
  std::string fields;
  bool strict = false;
  int spread = outputs_;
  Status status = args.read_p("FILE", path, InputFile{})
                      .read("STRICT", strict)
                      .read("SPREAD", spread, Between{1, std::max(outputs_, 1)})
                      .read("FIELDS", fields)
                      .complete();
  if (!fields.empty() && fields != "ip" && fields != "openflow10" && fields != "all")
    status &= errors.error("FIELDS: expected ip, openflow10 or all, got '{}'", fields);
  if (!status.ok()) return status;

  std::vector<FlowRule> rules;
  std::vector<std::string> problems;
  if (!path.empty()) {
    file_ = FileStamp::of(path);  // before it is read
    if (const std::string fault = read_flow_rules(path, rules, problems); !fault.empty())
      return errors.error("FILE: {}: {}", path, fault);
  }
  words_ = fields == "all" ? 32 : fields == "openflow10" ? 12 : 4;
  if (fields.empty())
    for (const FlowRule& rule : rules) words_ = std::max(words_, words_for(rule));

  AclOptions options;
  options.words = words_;
  // So that nobody outside can choose packets and rules that share a bucket.
  std::random_device seed;
  options.seed = uint64_t{seed()} << 32 | seed();
  table_ = std::make_unique<AclTable>(options);
  for (FlowRule& rule : rules) {
    if (rule.output == FlowRule::kUnsaid) rule.output = static_cast<int>(rule.number) % std::max(spread, 1);
    std::string bad = why_not(rule);
    if (bad.empty() && find(AclTable::tightened(acl_rule(rule, 0))) != AclTable::kNone)
      bad = "the same match and priority as a rule before it";
    if (bad.empty()) {
      insert(rule);
    } else {
      problems.push_back(fmt::format("{}:{}: {}", path, rule.line, bad));
    }
  }
  table_->commit();
  bad_lines_ = problems.size();
  for (size_t i = 0; i < std::min(problems.size(), kBadLinesNamed); ++i) {
    if (strict) {
      status &= errors.error("FILE: {}", problems[i]);
    } else {
      errors.warning("FILE: {}", problems[i]);
    }
  }
  if (problems.size() > kBadLinesNamed)
    errors.warning("FILE: {}: {} more bad lines", path, problems.size() - kBadLinesNamed);
  return status;
}

uint64_t FlowRules::name_of(const AclRule& rule) {
  uint64_t h = uint64_t{rule.priority} << 32 ^ rule.low;
  for (uint32_t i = 0; i < AclRule::kMostWords; ++i)
    h = fold_multiply(h ^ (uint64_t{rule.value[i]} << 32 | rule.mask[i]), 0x9e3779b97f4a7c15ull + i);
  return fold_multiply(h ^ rule.high, 0xe7037ed1a0b428dbull);
}

uint32_t FlowRules::find(const AclRule& rule) const {
  const auto [begin, end] = numbers_.equal_range(name_of(rule));
  for (auto it = begin; it != end; ++it) {
    auto known = table_->rule(it->second);
    if (!known) continue;
    known->data = rule.data;
    if (*known == rule) return it->second;
  }
  return AclTable::kNone;
}

uint32_t FlowRules::take_number() {
  if (free_.empty()) {
    free_ = table_->settle();
    // In the order in which they were removed: a successor's count is still there.
    for (const uint32_t number : free_) {
      const auto next = successors_.find(number);
      (next == successors_.end() ? removed_ : carried_.at(next->second)) += sum(number);
      if (next != successors_.end()) successors_.erase(next);
      carried_.erase(number);
      counts_.clear(number);
    }
  }
  if (!free_.empty()) {
    const uint32_t number = free_.back();
    free_.pop_back();
    return number;
  }
  if (next_number_ == counts_.kMost) throw std::bad_alloc();
  counts_.reserve(next_number_ + 1);
  return next_number_++;
}

RuleCount FlowRules::sum(uint32_t number) const {
  RuleCount sum = counts_.sum(number);
  if (const auto carried = carried_.find(number); carried != carried_.end()) sum += carried->second;
  return sum;
}

uint32_t FlowRules::newest(uint32_t number) const {
  for (auto it = successors_.find(number); it != successors_.end(); it = successors_.find(number)) number = it->second;
  return number;
}

uint32_t FlowRules::data_of(const FlowRule& rule) {
  return rule.output == FlowRule::kDrop ? FlowClassifier::kDropPort : static_cast<uint32_t>(rule.output);
}

uint32_t FlowRules::insert(const FlowRule& rule) {
  const AclRule tight = AclTable::tightened(acl_rule(rule, data_of(rule)));
  const uint32_t number = take_number();
  table_->insert(number, tight);
  numbers_.emplace(name_of(tight), number);
  return number;
}

void FlowRules::forget(uint32_t number) {
  const auto rule = table_->rule(number);
  if (!rule) return;
  const auto [begin, end] = numbers_.equal_range(name_of(*rule));
  const auto it = std::find_if(begin, end, [number](const auto& entry) { return entry.second == number; });
  if (it != end) numbers_.erase(it);
}

Status FlowRules::parse(std::string_view text, Command command, std::vector<Change>& changes, Errors& errors) const {
  FlowRule rule;
  const std::string bad = command == Command::kRemove ? parse_flow_match(text, rule) : parse_flow_rule(text, rule);
  if (!bad.empty()) return errors.error("'{}': {}", text, bad);
  if (command != Command::kRemove) {
    if (rule.output == FlowRule::kUnsaid) return errors.error("'{}': expected actions=ACTION", text);
    if (const std::string reason = why_not(rule); !reason.empty()) return errors.error("'{}': {}", text, reason);
  }
  changes.push_back({command, rule});
  return {};
}

Status FlowRules::apply(const std::vector<Change>& changes, Errors& errors) {
  std::vector<uint32_t> added, removed;
  const auto undo = [&] {
    for (const uint32_t number : added) {
      forget(number);
      carried_.erase(number);
    }
    for (const uint32_t number : removed) successors_.erase(number);
    table_->take_back();
    for (const uint32_t number : removed)
      if (const auto rule = table_->rule(number)) numbers_.emplace(name_of(*rule), number);
    return Status::failed();
  };
  try {
    for (const Change& change : changes) {
      const uint32_t number = find(AclTable::tightened(acl_rule(change.rule, 0)));
      const bool there = number != AclTable::kNone;
      if (there == (change.command == Command::kAdd)) {
        const std::string text = unparse_flow_rule(change.rule);
        (void)(there ? errors.error("'{}' is there already", text) : errors.error("no rule '{}'", text));
        return undo();
      }
      if (change.command != Command::kAdd) {
        removed.push_back(number);
        forget(number);
        table_->remove(number);
      }
      if (change.command != Command::kRemove) added.push_back(insert(change.rule));
      // Another entry, so that packets see the new output together with all else.
      if (change.command == Command::kModify) {
        successors_[number] = added.back();
        carried_[added.back()] = {};
      }
    }
    table_->commit();
  } catch (const std::bad_alloc&) {
    (void)errors.error("no memory for more rules");
    return undo();
  }
  return {};
}

std::string FlowRules::text_of(uint32_t number) const {
  const AclRule rule = *table_->rule(number);
  FlowRule flow;
  flow.match = {rule.value, rule.mask, rule.low, rule.high};
  flow.priority = rule.priority;
  flow.output = rule.data == FlowClassifier::kDropPort ? FlowRule::kDrop : static_cast<int>(rule.data);
  return unparse_flow_rule(flow);
}

std::string FlowRules::lookup(std::string_view text, Errors& errors) const {
  FlowRule packet;
  if (const std::string bad = parse_flow_match(text, packet); !bad.empty()) {
    (void)errors.error("{}", bad);
    return {};
  }
  PacketKey key{};
  std::copy(packet.match.value.begin(), packet.match.value.end(), key.w);
  const AclMatch match = table_->view().find(key.w);
  return match.number == AclMatch::kNone ? "none" : text_of(match.number);
}

std::string FlowRules::list_counts() const {
  std::unordered_map<uint32_t, RuleCount> before;  // what rules have counted under older numbers
  for (const auto& [number, next] : successors_) before[newest(next)] += sum(number);
  std::vector<std::pair<uint32_t, uint32_t>> order;  // by priority, then by number
  for (const auto& [name, number] : numbers_) order.emplace_back(~table_->rule(number)->priority, number);
  std::sort(order.begin(), order.end());
  std::string text;
  for (const auto& [priority, number] : order) {
    RuleCount total = sum(number);
    if (const auto older = before.find(number); older != before.end()) total += older->second;
    text += fmt::format("{}\t{}\t{}\n", total.packets, total.bytes, text_of(number));
  }
  return text;
}

std::string FlowRules::removed_counts() const {
  RuleCount total = removed_;
  for (uint32_t number = 0; number < next_number_; ++number)
    if (!table_->rule(newest(number))) total += sum(number);
  return fmt::format("{}\t{}", total.packets, total.bytes);
}

std::string FlowRules::describe() const {
  const AclGroups& groups = table_->groups();
  std::string text = fmt::format("{} rules in {} tuples, {:.1f} MB\n", grouped(table_->size()), groups.tuple_count(),
                                 static_cast<double>(table_->memory_bytes()) * 1e-6);
  text += fmt::format("{} numbers, {} of them of removed rules that packets may still bring back\n",
                      grouped(next_number_), grouped(table_->resting()));
  for (uint32_t tuple = 0; tuple < groups.tuple_count(); ++tuple) {
    const AclGroups::TupleFigures figures = groups.figures(tuple);
    text += fmt::format("tuple {}: {} rules in {} groups, at most {} in one; mask", tuple, grouped(figures.entries),
                        grouped(figures.groups), grouped(figures.largest_group));
    for (uint32_t i = 0; i < words_; ++i) text += fmt::format(" {:08x}", groups.tuple_mask(tuple)[i]);
    text += '\n';
  }
  return text;
}

std::string FlowRules::note() const {
  const std::lock_guard guard(lock_);
  std::string text = fmt::format("{} rules in {} tuples, {:.1f} MB", grouped(table_->size()),
                                 table_->groups().tuple_count(), static_cast<double>(table_->memory_bytes()) * 1e-6);
  if (bad_lines_ != 0) text += fmt::format("; {} bad lines were left out", grouped(bad_lines_));
  return text;
}

void FlowRules::add_handlers(Handlers& handlers, Element&) {
  // Readers never wait for a change, so these need no quiescent point.
  const auto change = [&](const char* name, std::optional<Command> command) {
    handlers.write(
        name,
        [this, command](const std::string& value, Errors& errors) {
          const std::lock_guard guard(lock_);
          std::vector<Change> changes;
          Status status;
          // Quotation marks only keep commas from parting arguments of a script.
          std::string plain = value;
          std::erase(plain, '"');
          for (std::string_view text = plain; !text.empty();) {
            const size_t end = text.find('\n');
            std::string_view line = trimmed(text.substr(0, end));
            text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
            if (line.empty()) continue;
            Command what = command.value_or(Command::kAdd);
            if (!command) {
              const std::string_view word = next_word(line);
              if (word != "add" && word != "modify" && word != "remove") {
                status &= errors.error("bad command '{}', expected add, modify or remove", word);
                continue;
              }
              what = word == "add" ? Command::kAdd : word == "modify" ? Command::kModify : Command::kRemove;
            }
            status &= parse(trimmed(line), what, changes, errors);
          }
          return status.ok() ? apply(changes, errors) : status;
        },
        Handler::kThreadSafe);
  };
  change("add", Command::kAdd);
  change("modify", Command::kModify);
  change("remove", Command::kRemove);
  change("ctrl", std::nullopt);
  handlers.read_with("lookup", [this](const std::string& text, std::string& value, Errors& errors) {
    const std::lock_guard guard(lock_);
    const int before = errors.error_count();
    std::string plain = text;
    std::erase(plain, '"');
    value = lookup(plain, errors);
    return errors.error_count() == before ? Status() : Status::failed();
  });
  handlers.read(
      "counts",
      [this] {
        const std::lock_guard guard(lock_);
        return list_counts();
      },
      Handler::kExpensive);
  handlers.read(
      "removed_counts",
      [this] {
        const std::lock_guard guard(lock_);
        return removed_counts();
      },
      Handler::kExpensive);
  handlers.read("count", [this] {
    const std::lock_guard guard(lock_);
    return std::to_string(table_->size());
  });
  handlers.read(
      "table",
      [this] {
        const std::lock_guard guard(lock_);
        return describe();
      },
      Handler::kExpensive);
}

}  // namespace headrace
