/// \file
/// DPDK's rte_acl on the packets of acl_bench.cc. Left out without DPDK.

#include <benchmark/benchmark.h>
#include <rte_acl.h>
#include <rte_eal.h>

#include <cstring>
#include <vector>

#include "bench/micro/acl_workload.hh"

namespace headrace::acl_bench {
namespace {

constexpr uint32_t kFields = 5;
RTE_ACL_RULE_DEF(PeerRule, kFields);

/// A packet's fields as the definition below has them, in network order.
struct PeerPacket {
  uint8_t protocol;
  uint8_t pad[3];
  uint32_t src, dst;
  uint16_t ports[2];
};

bool start_dpdk() {
  static const bool started = [] {
    char name[] = "headrace_micro", huge[] = "--no-huge", memory[] = "-m", megabytes[] = "3000", pci[] = "--no-pci",
         telemetry[] = "--no-telemetry", cores[] = "-l", core[] = "0", level[] = "--log-level=4",
         simd[] = "--force-max-simd-bitwidth=512";
    char* arguments[] = {name, huge, memory, megabytes, pci, telemetry, cores, core, level, simd};
    return rte_eal_init(static_cast<int>(std::size(arguments)), arguments) >= 0;
  }();
  return started;
}

rte_acl_ctx* build(const std::vector<FlowRule>& rules) {
  rte_acl_param param{};
  param.name = "peer";
  param.rule_size = RTE_ACL_RULE_SZ(kFields);
  param.max_rule_num = static_cast<uint32_t>(rules.size());
  rte_acl_ctx* const table = rte_acl_create(&param);
  if (table == nullptr) return nullptr;
  std::vector<PeerRule> peers(rules.size());
  for (uint32_t i = 0; i < rules.size(); ++i) {
    const KeyMatch& match = rules[i].match;
    PeerRule& peer = peers[i];
    std::memset(&peer, 0, sizeof peer);
    peer.data.category_mask = 1;
    peer.data.priority = static_cast<int32_t>(rules.size() - i);
    peer.data.userdata = i + 1;
    peer.field[0].value.u8 = static_cast<uint8_t>(match.value[3] >> 8);
    peer.field[0].mask_range.u8 = static_cast<uint8_t>(match.mask[3] >> 8);
    for (uint32_t side = 0; side < 2; ++side) {
      peer.field[1 + side].value.u32 = match.value[side];
      peer.field[1 + side].mask_range.u32 = static_cast<uint32_t>(__builtin_popcount(match.mask[side]));
      peer.field[3 + side].value.u16 = static_cast<uint16_t>(match.low >> (side == 0 ? 16 : 0));
      peer.field[3 + side].mask_range.u16 = static_cast<uint16_t>(match.high >> (side == 0 ? 16 : 0));
    }
  }
  rte_acl_config config{};
  config.num_categories = 1;
  config.num_fields = kFields;
  config.defs[0] = {RTE_ACL_FIELD_TYPE_BITMASK, 1, 0, 0, offsetof(PeerPacket, protocol)};
  config.defs[1] = {RTE_ACL_FIELD_TYPE_MASK, 4, 1, 1, offsetof(PeerPacket, src)};
  config.defs[2] = {RTE_ACL_FIELD_TYPE_MASK, 4, 2, 2, offsetof(PeerPacket, dst)};
  config.defs[3] = {RTE_ACL_FIELD_TYPE_RANGE, 2, 3, 3, offsetof(PeerPacket, ports)};
  config.defs[4] = {RTE_ACL_FIELD_TYPE_RANGE, 2, 4, 3, offsetof(PeerPacket, ports) + 2};
  if (rte_acl_add_rules(table, reinterpret_cast<const rte_acl_rule*>(peers.data()), param.max_rule_num) != 0 ||
      rte_acl_build(table, &config) != 0) {
    rte_acl_free(table);
    return nullptr;
  }
  return table;
}

/// With the method that DPDK would choose (0), or one that the benchmark names.
void acl_rte(benchmark::State& state) {
  const std::vector<FlowRule>& rules = rules_of(state, state.range(0));
  if (rules.empty()) return;
  rte_acl_ctx* const table = start_dpdk() ? build(rules) : nullptr;
  if (table == nullptr) return state.SkipWithError("rte_acl has no table");
  if (rte_acl_set_ctx_classify(table, static_cast<enum rte_acl_classify_alg>(state.range(2))) != 0) {
    rte_acl_free(table);
    return state.SkipWithError("this processor does not have the method");
  }
  std::vector<PeerPacket> packets;
  for (const Key& key : keys_for(rules, state.range(1) != 0))
    packets.push_back(
        {static_cast<uint8_t>(key[3] >> 8),
         {},
         __builtin_bswap32(key[0]),
         __builtin_bswap32(key[1]),
         {__builtin_bswap16(static_cast<uint16_t>(key[2] >> 16)), __builtin_bswap16(static_cast<uint16_t>(key[2]))}});
  const uint8_t* data[kBatch];
  uint32_t results[kBatch];
  for (auto _ : state) {
    for (size_t i = 0; i < packets.size(); i += kBatch) {
      for (size_t j = 0; j < kBatch; ++j) data[j] = reinterpret_cast<const uint8_t*>(&packets[i + j]);
      rte_acl_classify(table, data, results, kBatch, 1);
      benchmark::DoNotOptimize(results);
      benchmark::ClobberMemory();
    }
  }
  rte_acl_free(table);
  state.SetItemsProcessed(static_cast<int64_t>(state.iterations() * packets.size()));
  state.SetLabel(kSets[state.range(0)]);
}
BENCHMARK(acl_rte)
    ->ArgNames({"set", "inside", "method"})
    ->ArgsProduct({{0, 1, 2}, {1, 0}, {RTE_ACL_CLASSIFY_AVX2, RTE_ACL_CLASSIFY_AVX512X16, RTE_ACL_CLASSIFY_AVX512X32}});

}  // namespace
}  // namespace headrace::acl_bench
