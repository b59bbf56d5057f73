/// Fuzzes rule files, and a table made of what they say against a linear list: any text gives rules and reasons, never more
/// of both than lines; what is written is read back as the same; and a table decides as the list, while entries come and go.

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "tables/acl/acl_batch.hh"
#include "tables/acl/acl_table.hh"
#include "tables/acl/rule_file.hh"
#include "unit/tables/acl_naive.hh"

namespace {

using namespace headrace;

void require_acl(bool condition) {
  if (!condition) std::abort();
}

/// Keys at the edges of what the rules match, and the text's own bytes.
std::vector<uint32_t> keys_for(const std::vector<FlowRule>& rules, std::string_view text) {
  std::vector<uint32_t> keys;
  for (size_t i = 0; i < rules.size() && i < 40; ++i) {
    const KeyMatch& match = rules[i].match;
    for (const uint32_t noise : {0u, ~0u}) {
      for (uint32_t word = 0; word < key_word::kCount; ++word) {
        uint32_t value = match.value[word] | (noise & ~match.mask[word]);
        if (word == key_word::kPorts && match.mask[word] == 0) value = noise == 0 ? match.low : match.high;
        keys.push_back(value);
      }
    }
  }
  if (text.size() >= 4 * key_word::kCount) {
    keys.resize(keys.size() + key_word::kCount);
    std::memcpy(&keys[keys.size() - key_word::kCount], text.data(), 4 * key_word::kCount);
  }
  return keys;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  std::vector<FlowRule> rules;
  std::vector<std::string> problems;
  read_flow_rules_text(text, "fuzz.rules", rules, problems);
  size_t lines = 1;
  for (const char c : text) lines += c == '\n';
  require_acl(rules.size() + problems.size() <= lines);
  for (const FlowRule& rule : rules) {
    FlowRule again;
    const std::string written = unparse_flow_rule(rule);
    const std::string bad =
        rule.output == FlowRule::kUnsaid ? parse_flow_match(written, again) : parse_flow_rule(written, again);
    require_acl(bad.empty());
    require_acl(AclTable::tightened(acl_rule(again, 0)) == AclTable::tightened(acl_rule(rule, 0)));
  }

  constexpr uint32_t kWords = key_word::kCount;
  AclOptions options;
  options.words = kWords;
  options.collisions = 1 + static_cast<uint32_t>(size % 5);
  AclTable table(options);
  NaiveAcl list;
  for (uint32_t i = 0; i < rules.size(); ++i) {
    table.insert(i, acl_rule(rules[i], i));
    list.rules[i] = acl_rule(rules[i], i);
  }
  table.commit();
  const std::vector<uint32_t> keys = keys_for(rules, text);
  std::vector<AclMatch> matches(keys.size() / kWords);
  for (int round = 0; round < 2; ++round) {
    acl_find_batch(table.view(), keys.data(), matches.data(), matches.size());
    for (size_t i = 0; i < matches.size(); ++i) {
      const uint32_t expected = list.find(&keys[i * kWords], kWords);
      require_acl(matches[i].number == expected);
      require_acl(table.view().find(&keys[i * kWords]).number == expected);
    }
    for (uint32_t i = 0; i < rules.size(); i += 2) {
      if (list.rules.erase(i) != 0) require_acl(table.remove(i));
    }
    table.commit();
    table.settle();
  }
  return 0;
}
