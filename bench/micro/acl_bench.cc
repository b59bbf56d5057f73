/// \file
/// What the table of masked entries costs: to build, to ask, to change. rte_acl_bench.cc has DPDK's on the same packets.
///
///     mkdir sets && tar -C sets -xJf ../shared/data/classbench/classbench-acl1-fw1-ipc1_1k_10k_neurocuts.tar.xz
///     HEADRACE_CLASSBENCH=sets build/headrace_micro --benchmark_filter='acl' --benchmark_repetitions=9
///         --benchmark_enable_random_interleaving=true

#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <random>
#include <unordered_map>
#include <vector>

#include "bench/micro/acl_workload.hh"
#include "tables/acl/acl_batch.hh"
#include "tables/acl/acl_table.hh"

namespace headrace::acl_bench {
namespace {

AclOptions with_collisions(int64_t collisions) {
  AclOptions options;
  options.collisions = static_cast<uint32_t>(collisions);
  return options;
}

void fill(AclTable& table, const std::vector<FlowRule>& rules) {
  for (uint32_t i = 0; i < rules.size(); ++i) table.insert(i, acl_rule(rules[i], i));
  table.commit();
}

/// How tables are searched.
enum class How { kBatch, kSingle };

template <How kHow>
void acl_lookup(benchmark::State& state) {
  const std::vector<FlowRule>& rules = rules_of(state, state.range(0));
  if (rules.empty()) return;
  AclTable table(with_collisions(state.range(1)));
  fill(table, rules);
  const std::vector<Key> keys = keys_for(rules, state.range(2) != 0);
  const AclView view = table.view();
  AclMatch matches[kBatch];
  for (auto _ : state) {
    for (size_t i = 0; i < keys.size(); i += kBatch) {
      if constexpr (kHow == How::kBatch) {
        acl_find_batch(view, keys[i].data(), matches, kBatch);
      } else {
        for (size_t j = 0; j < kBatch; ++j) matches[j] = view.find(keys[i + j].data());
      }
      benchmark::DoNotOptimize(matches);
      benchmark::ClobberMemory();
    }
  }
  state.SetItemsProcessed(static_cast<int64_t>(state.iterations() * keys.size()));
  state.SetLabel(kSets[state.range(0)]);
  state.counters["tuples"] = table.groups().tuple_count();
}
BENCHMARK(acl_lookup<How::kBatch>)->ArgNames({"set", "c", "inside"})->ArgsProduct({{0, 1, 2}, {8, 40}, {1, 0}});
BENCHMARK(acl_lookup<How::kSingle>)->ArgNames({"set", "c", "inside"})->ArgsProduct({{0, 1, 2}, {40}, {1, 0}});

/// Plain tuple space: a table for each mask, as many as there are, under an unordered map each; asked in the order of
/// their best priorities until none can be better.
struct TupleSpace {
  struct KeyHash {
    size_t operator()(const Key& key) const {
      return fold_multiply((uint64_t{key[0]} << 32 | key[1]) ^ 0x9e3779b97f4a7c15ull,
                           (uint64_t{key[2]} << 32 | key[3]) ^ 0xe7037ed1a0b428dbull);
    }
  };
  struct Tuple {
    Key mask;
    uint32_t best = 0;
    std::unordered_map<Key, std::vector<uint32_t>, KeyHash> groups;
  };

  explicit TupleSpace(const std::vector<FlowRule>& flows) {
    std::map<Key, size_t> places;
    for (uint32_t i = 0; i < flows.size(); ++i) {
      rules.push_back(AclTable::tightened(acl_rule(flows[i], i)));
      const AclRule& rule = rules.back();
      const Key mask = {rule.mask[0], rule.mask[1], rule.mask[2], rule.mask[3]};
      const auto [at, added] = places.try_emplace(mask, tuples.size());
      if (added) tuples.push_back({mask, 0, {}});
      Tuple& tuple = tuples[at->second];
      tuple.best = std::max(tuple.best, rule.priority);
      tuple.groups[{rule.value[0], rule.value[1], rule.value[2], rule.value[3]}].push_back(i);
    }
    std::sort(tuples.begin(), tuples.end(), [](const Tuple& a, const Tuple& b) { return a.best > b.best; });
  }
  uint32_t find(const Key& key) const {
    uint32_t found = AclMatch::kNone, priority = 0;
    for (const Tuple& tuple : tuples) {
      if (tuple.best < priority) break;
      const auto group = tuple.groups.find(
          {key[0] & tuple.mask[0], key[1] & tuple.mask[1], key[2] & tuple.mask[2], key[3] & tuple.mask[3]});
      if (group == tuple.groups.end()) continue;
      for (const uint32_t i : group->second) {
        const AclRule& rule = rules[i];
        if (rule.priority < priority || key[2] >> 16 < rule.low >> 16 || key[2] >> 16 > rule.high >> 16 ||
            (key[2] & 0xffff) < (rule.low & 0xffff) || (key[2] & 0xffff) > (rule.high & 0xffff))
          continue;
        found = i;
        priority = rule.priority;
      }
    }
    return found;
  }

  std::vector<AclRule> rules;
  std::vector<Tuple> tuples;
};

void acl_tuple_space(benchmark::State& state) {
  const std::vector<FlowRule>& rules = rules_of(state, state.range(0));
  if (rules.empty()) return;
  const TupleSpace space(rules);
  const std::vector<Key> keys = keys_for(rules, state.range(1) != 0);
  for (auto _ : state) {
    for (const Key& key : keys) benchmark::DoNotOptimize(space.find(key));
  }
  state.SetItemsProcessed(static_cast<int64_t>(state.iterations() * keys.size()));
  state.SetLabel(kSets[state.range(0)]);
  state.counters["tuples"] = static_cast<double>(space.tuples.size());
}
BENCHMARK(acl_tuple_space)->ArgNames({"set", "inside"})->ArgsProduct({{0, 1, 2}, {1, 0}});

void acl_linear_scan(benchmark::State& state) {
  const std::vector<FlowRule>& flows = rules_of(state, state.range(0));
  if (flows.empty()) return;
  std::vector<AclRule> rules;
  for (const FlowRule& flow : flows) rules.push_back(acl_rule(flow, 0));
  const std::vector<Key> keys = keys_for(flows, state.range(1) != 0);
  constexpr size_t kFew = 2048;
  for (auto _ : state) {
    for (size_t i = 0; i < kFew; ++i) {
      const Key& key = keys[i];
      uint32_t found = AclMatch::kNone;
      for (uint32_t r = 0; r < rules.size(); ++r) {
        const AclRule& rule = rules[r];
        uint32_t different = 0;
        for (uint32_t w = 0; w < 4; ++w) different |= (key[w] & rule.mask[w]) ^ rule.value[w];
        if (different != 0 || key[2] >> 16 < rule.low >> 16 || key[2] >> 16 > rule.high >> 16 ||
            (key[2] & 0xffff) < (rule.low & 0xffff) || (key[2] & 0xffff) > (rule.high & 0xffff))
          continue;
        found = r;
        break;
      }
      benchmark::DoNotOptimize(found);
    }
  }
  state.SetItemsProcessed(static_cast<int64_t>(state.iterations() * kFew));
  state.SetLabel(kSets[state.range(0)]);
}
BENCHMARK(acl_linear_scan)->ArgNames({"set", "inside"})->ArgsProduct({{0, 1, 2}, {1, 0}});

void acl_build(benchmark::State& state) {
  const std::vector<FlowRule>& rules = rules_of(state, state.range(0));
  if (rules.empty()) return;
  size_t bytes = 0;
  for (auto _ : state) {
    AclTable table(AclOptions{});
    fill(table, rules);
    bytes = table.memory_bytes();
  }
  state.SetLabel(kSets[state.range(0)]);
  state.counters["MB"] = static_cast<double>(bytes) / 1e6;
}
BENCHMARK(acl_build)->ArgName("set")->Arg(0)->Arg(1)->Arg(2)->Unit(benchmark::kMillisecond);

/// Rules with the prefixes of acl1_10k at random places.
std::vector<AclRule> random_rules(const std::vector<FlowRule>& like, size_t count) {
  std::mt19937 random(3);
  std::vector<AclRule> rules;
  rules.reserve(count);
  for (uint32_t i = 0; i < count; ++i) {
    AclRule rule = acl_rule(like[random() % like.size()], i);
    rule.value[0] = static_cast<uint32_t>(random()) & rule.mask[0];
    rule.value[1] = static_cast<uint32_t>(random()) & rule.mask[1];
    rule.priority = static_cast<uint32_t>(count - i);
    rules.push_back(rule);
  }
  return rules;
}

void acl_build_random(benchmark::State& state) {
  const std::vector<FlowRule>& like = rules_of(state, 0);
  if (like.empty()) return;
  const std::vector<AclRule> rules = random_rules(like, static_cast<size_t>(state.range(0)));
  size_t bytes = 0;
  for (auto _ : state) {
    AclTable table(AclOptions{});
    for (uint32_t i = 0; i < rules.size(); ++i) table.insert(i, rules[i]);
    table.commit();
    bytes = table.memory_bytes();
  }
  state.counters["MB"] = static_cast<double>(bytes) / 1e6;
}
BENCHMARK(acl_build_random)->ArgName("rules")->Arg(100000)->Arg(1000000)->Unit(benchmark::kMillisecond);

/// Takes entries out and puts them in again, one by one, each with a commit of its own.
void acl_update(benchmark::State& state) {
  const std::vector<FlowRule>& like = rules_of(state, 0);
  if (like.empty()) return;
  const std::vector<AclRule> rules = random_rules(like, static_cast<size_t>(state.range(0)));
  AclTable table(AclOptions{});
  for (uint32_t i = 0; i < rules.size(); ++i) table.insert(i, rules[i]);
  table.commit();
  std::vector<uint32_t> rule_of(rules.size());
  for (uint32_t i = 0; i < rule_of.size(); ++i) rule_of[i] = i;
  std::mt19937 random(4);
  auto next = static_cast<uint32_t>(rules.size());
  for (auto _ : state) {
    // Under a new number each time: the old one is free only when it has settled.
    const uint32_t rule = static_cast<uint32_t>(random() % rules.size());
    table.remove(rule_of[rule]);
    table.insert(rule_of[rule] = next++, rules[rule]);
    table.commit();
  }
  state.SetItemsProcessed(static_cast<int64_t>(2 * state.iterations()));
}
BENCHMARK(acl_update)->ArgName("rules")->Arg(10000)->Arg(1000000)->Iterations(200000);

}  // namespace
}  // namespace headrace::acl_bench
