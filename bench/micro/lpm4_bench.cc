/// \file
/// What the IPv4 longest-prefix table costs: to build, to ask, to change.
///
/// The full table of the Internet comes from ../shared/data/bgp (or $HEADRACE_ROUTES); next hops are a hash of the
/// prefix. Keys are uniform over unicast space.

#include <benchmark/benchmark.h>

#include <cstdint>
#include <cstdlib>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "headrace/error.hh"
#include "headrace/shader_types.hh"
#include "tables/lpm4/lpm4.hh"
#include "tables/lpm4/route_file.hh"
#include "tables/memory/huge_array.hh"

namespace headrace {
namespace {

constexpr size_t kKeys = size_t{4} << 20;
constexpr size_t kBatch = 256;

std::string route_path() {
  const char* const given = std::getenv("HEADRACE_ROUTES");
  return given != nullptr ? given : "../shared/data/bgp/full-table-v4_bart-v0.30.0.txt.xz";
}

/// The routes of the file with `next_hops` different next hops; empty, with a message in `state`, if it cannot be read.
std::vector<Lpm4::Route> read(benchmark::State& state, uint32_t next_hops) {
  std::vector<TextRoute> lines;
  Errors errors;
  if (!read_routes(route_path(), lines, errors)) {
    state.SkipWithError(errors.str().c_str());
    return {};
  }
  std::vector<Lpm4::Route> routes;
  routes.reserve(lines.size());
  for (const TextRoute& line : lines) {
    routes.push_back({line.prefix, line.length, (line.prefix * 2654435761u >> 8) % next_hops});
  }
  return routes;
}

const std::vector<uint32_t>& keys() {
  static const std::vector<uint32_t> all = [] {
    std::mt19937 random(1);
    std::vector<uint32_t> made(kKeys);
    for (uint32_t& key : made) {
      do {
        key = static_cast<uint32_t>(random());
      } while (key >> 24 < 1 || key >> 24 > 223);
    }
    return made;
  }();
  return all;
}

/// Next hops for the form of the table: 16-bit entries, or 32-bit ones.
constexpr int64_t kNarrow = 64;
constexpr int64_t kWide = 100000;

void lpm4_build(benchmark::State& state) {
  const std::vector<Lpm4::Route> routes = read(state, static_cast<uint32_t>(state.range(0)));
  if (routes.empty()) return;
  Lpm4 table;
  for (auto _ : state) table.build(routes);
  state.counters["routes"] = static_cast<double>(table.route_count());
  state.counters["MB"] = static_cast<double>(table.memory_bytes()) / 1e6;
}
BENCHMARK(lpm4_build)->Arg(kNarrow)->Arg(kWide)->Unit(benchmark::kMillisecond);

void lpm4_read_file(benchmark::State& state) {
  for (auto _ : state) {
    if (read(state, 1).empty()) return;
  }
}
BENCHMARK(lpm4_read_file)->Unit(benchmark::kMillisecond);

/// What the machine can do at most: the loads of lpm4_lookup_batch from an array as large as a first level, and nothing
/// else.
template <typename Entry>
void lpm4_random_loads(benchmark::State& state) {
  HugeArray<Entry> first(size_t{1} << 24);
  for (size_t i = 0; i < first.size(); ++i) first[i] = static_cast<Entry>(i);
  const std::vector<uint32_t>& all = keys();
  Entry entries[kBatch];
  for (auto _ : state) {
    for (size_t i = 0; i < all.size(); i += kBatch) {
      for (size_t j = 0; j < kBatch; ++j) entries[j] = load_shared(&first[all[i + j] >> 8]);
      benchmark::DoNotOptimize(entries);
      benchmark::ClobberMemory();
    }
  }
  state.SetItemsProcessed(static_cast<int64_t>(state.iterations() * all.size()));
}
BENCHMARK(lpm4_random_loads<uint16_t>);
BENCHMARK(lpm4_random_loads<uint32_t>);

void lpm4_lookup(benchmark::State& state) {
  const std::vector<Lpm4::Route> routes = read(state, static_cast<uint32_t>(state.range(0)));
  if (routes.empty()) return;
  Lpm4 table;
  table.build(routes);
  if (state.range(1) != 0) table.set(0, 0, 1);
  const std::vector<uint32_t>& all = keys();
  const Lpm4View view = table.view();
  for (auto _ : state) {
    uint32_t sum = 0;
    for (const uint32_t key : all) sum += view.lookup(key);
    benchmark::DoNotOptimize(sum);
  }
  state.SetItemsProcessed(static_cast<int64_t>(state.iterations() * all.size()));
}
BENCHMARK(lpm4_lookup)->ArgNames({"next_hops", "default"})->ArgsProduct({{kNarrow, kWide}, {0, 1}});

void lpm4_lookup_batch(benchmark::State& state) {
  const std::vector<Lpm4::Route> routes = read(state, static_cast<uint32_t>(state.range(0)));
  if (routes.empty()) return;
  Lpm4 table;
  table.build(routes);
  if (state.range(1) != 0) table.set(0, 0, 1);
  const std::vector<uint32_t>& all = keys();
  const Lpm4View view = table.view();
  uint32_t next_hops[kBatch];
  for (auto _ : state) {
    for (size_t i = 0; i < all.size(); i += kBatch) {
      view.lookup_batch(&all[i], next_hops, kBatch);
      benchmark::DoNotOptimize(next_hops);
      benchmark::ClobberMemory();
    }
  }
  state.SetItemsProcessed(static_cast<int64_t>(state.iterations() * all.size()));
}
BENCHMARK(lpm4_lookup_batch)->ArgNames({"next_hops", "default"})->ArgsProduct({{kNarrow, kWide}, {0, 1}});

/// Withdraws and announces real routes, one by one, of every length (0) or of one length.
void lpm4_update(benchmark::State& state) {
  const std::vector<Lpm4::Route> routes = read(state, kNarrow);
  if (routes.empty()) return;
  Lpm4 table;
  table.build(routes);
  std::vector<Lpm4::Route> changing;
  for (const Lpm4::Route& route : routes) {
    if (state.range(0) == 0 || route.length == state.range(0)) changing.push_back(route);
  }
  std::mt19937 random(1);
  for (auto _ : state) {
    const Lpm4::Route& route = changing[random() % changing.size()];
    table.remove(route.prefix, route.length);
    table.add(route.prefix, route.length, route.next_hop);
  }
  state.SetItemsProcessed(static_cast<int64_t>(2 * state.iterations()));
}
BENCHMARK(lpm4_update)->ArgName("length")->Arg(0)->Arg(8)->Arg(16)->Arg(24)->Arg(32);

/// Replaces the default route: the whole first level is written.
void lpm4_update_default(benchmark::State& state) {
  const std::vector<Lpm4::Route> routes = read(state, kNarrow);
  if (routes.empty()) return;
  Lpm4 table;
  table.build(routes);
  uint32_t next_hop = 0;
  for (auto _ : state) table.set(0, 0, next_hop ^= 1);
}
BENCHMARK(lpm4_update_default)->Unit(benchmark::kMillisecond);

/// The change from 16-bit to 32-bit entries.
void lpm4_widen(benchmark::State& state) {
  const std::vector<Lpm4::Route> routes = read(state, kNarrow);
  if (routes.empty()) return;
  Lpm4 table;
  for (auto _ : state) {
    state.PauseTiming();
    table.build(routes);
    state.ResumeTiming();
    table.set(routes.front().prefix, routes.front().length, kWide);
  }
}
BENCHMARK(lpm4_widen)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace headrace
