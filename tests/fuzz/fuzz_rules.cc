/// Fuzzes the reader of rules, and the confirmation of what it read: any text gives rules and reasons, never more of
/// both than lines; a rule that runs has a fast pattern within its content; confirming it on some bytes ends.

#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "tables/rules/rule_program.hh"
#include "tables/rules/rule_reader.hh"

namespace {

using namespace headrace;

void require(bool condition) {
  if (!condition) std::abort();
}

void check(const rules::Rule& rule) {
  require(rule.sid != 0 && rule.src && rule.dst && rule.sports && rule.dports);
  require(!rule.src->empty() && !rule.dst->empty() && !rule.sports->empty() && !rule.dports->empty());
  if (rule.fast_step < 0) return;
  require(rule.fast_length > 0 && rule.fast_offset + rule.fast_length <= rule.fast_content().bytes.size());
  require(!rule.fast_content().negated);
}

/// A payload that has what the rules look for somewhere.
std::string payload_for(const std::vector<rules::Rule>& all, std::string_view text) {
  std::string payload(text.substr(0, 200));
  for (const rules::Rule& rule : all)
    for (const rules::Step& step : rule.steps)
      if (const auto* content = std::get_if<rules::Content>(&step)) payload += content->bytes + "..";
  payload.resize(payload.size() < 1460 ? payload.size() : 1460);
  return payload;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  rules::RuleReader reader({{{"HOME_NET", "10.0.0.0/8"}}, size % 2 == 1, size % 3 == 1});
  reader.read_text(text, "fuzz.rules");
  rules::RuleSet set = reader.finish();
  size_t lines = 1;
  for (const char c : text) lines += c == '\n';
  require(set.rules.size() + set.refused.size() <= lines);
  require(set.rules.size() <= set.read);
  (void)set.summary();
  for (const rules::RefusedRule& refused : set.refused) {
    require(!refused.reason.empty());
    require(refused.line >= 1 && static_cast<size_t>(refused.line) <= lines);
  }
  for (const rules::Rule& rule : set.rules) check(rule);
  const std::string payload = payload_for(set.rules, text);
  rules::WorkLimit limit;
  for (const rules::Rule& rule : set.rules) (void)rules::confirm_steps(rule, payload, limit);
  const rules::RuleProgram program(std::move(set.rules));
  for (uint32_t i = 0; i < program.patterns().size(); ++i)
    program.each_of_pattern(i, [&](uint32_t rule) { require(rule < program.rules().size()); });
  return 0;
}
