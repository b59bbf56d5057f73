#pragma once
/// \file
/// ClassBench's filter sets and headers for them, for benchmarks of classifiers.

#include <benchmark/benchmark.h>

#include <array>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "tables/acl/rule_file.hh"

namespace headrace::acl_bench {

/// A key of 4 words: addresses, ports, Ethernet type and protocol.
using Key = std::array<uint32_t, 4>;

inline constexpr size_t kKeys = size_t{1} << 16;
inline constexpr size_t kBatch = 256;

inline const char* const kSets[] = {"acl1_10k", "fw1_10k", "ipc1_10k", "acl1_1k", "fw1_1k", "ipc1_1k"};

/// The rules of a set from the folder $HEADRACE_CLASSBENCH, which has the unpacked sets. Empty, with a message in `state`,
/// if they are not there.
inline const std::vector<FlowRule>& rules_of(benchmark::State& state, int64_t set) {
  static std::map<int64_t, std::vector<FlowRule>> all;
  std::vector<FlowRule>& rules = all[set];
  if (!rules.empty()) return rules;
  const char* const folder = std::getenv("HEADRACE_CLASSBENCH");
  std::vector<std::string> problems;
  const std::string fault = folder == nullptr
                                ? "HEADRACE_CLASSBENCH names no folder of filter sets"
                                : read_flow_rules(std::string(folder) + "/" + kSets[set], rules, problems);
  if (!fault.empty()) state.SkipWithError(fault.c_str());
  return rules;
}

/// Headers inside rules: a rule at random, and in it uniform values of all that it leaves open. No locality.
inline std::vector<Key> keys_inside(const std::vector<FlowRule>& rules) {
  std::mt19937 random(1);
  std::vector<Key> keys(kKeys);
  for (Key& key : keys) {
    const KeyMatch& match = rules[random() % rules.size()].match;
    for (uint32_t w = 0; w < 4; ++w) key[w] = match.value[w] | (static_cast<uint32_t>(random()) & ~match.mask[w]);
    key[3] &= 0xffffff00;
    const auto port = [&](int shift) {
      const uint32_t low = match.low >> shift & 0xffff, high = match.high >> shift & 0xffff;
      return (low + static_cast<uint32_t>(random() % (high - low + 1))) << shift;
    };
    key[2] = port(16) | port(0);
  }
  return keys;
}

/// Headers that are uniform in all fields: nearly all of them miss.
inline std::vector<Key> keys_uniform() {
  std::mt19937 random(2);
  std::vector<Key> keys(kKeys);
  for (Key& key : keys)
    key = {static_cast<uint32_t>(random()), static_cast<uint32_t>(random()), static_cast<uint32_t>(random()),
           0x08000000u | (random() % 3 == 0 ? 17u : 6u) << 8};
  return keys;
}

inline std::vector<Key> keys_for(const std::vector<FlowRule>& rules, bool inside) {
  return inside ? keys_inside(rules) : keys_uniform();
}

}  // namespace headrace::acl_bench
