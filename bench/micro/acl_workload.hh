#pragma once
/// \file
/// ClassBench's filter sets, for benchmarks of classifiers.

#include <benchmark/benchmark.h>

#include <cstdint>
#include <cstdlib>
#include <map>
#include <string>
#include <vector>

#include "bench/device/acl_keys.hh"
#include "tables/acl/rule_file.hh"

namespace headrace::acl_bench {

inline constexpr size_t kKeys = size_t{1} << 16;
inline constexpr size_t kBatch = 256;

inline const char* const kSets[] = {"acl1_10k", "fw1_10k", "ipc1_10k", "acl1_1k", "fw1_1k", "ipc1_1k"};

/// The file of a set in the folder $HEADRACE_CLASSBENCH, which has the unpacked sets. Empty if that names none.
inline std::string path_of(int64_t set) {
  const char* const folder = std::getenv("HEADRACE_CLASSBENCH");
  return folder == nullptr ? std::string() : std::string(folder) + "/" + kSets[set];
}

/// The rules of a set. Empty, with a message in `state`, if they are not there.
inline const std::vector<FlowRule>& rules_of(benchmark::State& state, int64_t set) {
  static std::map<int64_t, std::vector<FlowRule>> all;
  std::vector<FlowRule>& rules = all[set];
  if (!rules.empty()) return rules;
  const std::string path = path_of(set);
  std::vector<std::string> problems;
  const std::string fault =
      path.empty() ? "HEADRACE_CLASSBENCH names no folder of filter sets" : read_flow_rules(path, rules, problems);
  if (!fault.empty()) state.SkipWithError(fault.c_str());
  return rules;
}

inline std::vector<Key> keys_for(const std::vector<FlowRule>& rules, bool inside) {
  return inside ? keys_inside(rules, kKeys) : keys_uniform(kKeys);
}

}  // namespace headrace::acl_bench
