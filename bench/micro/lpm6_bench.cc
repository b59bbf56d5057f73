/// \file
/// What the IPv6 longest-prefix table costs: to build, to ask, to change.
///
/// The full table of the Internet comes from ../shared/data/bgp (or $HEADRACE_ROUTES6); next hops are a hash of the
/// prefix. Keys lie inside prefixes: a random prefix of the table with random bits behind it. Uniform keys would nearly
/// all miss at the first level.

#include <benchmark/benchmark.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <random>
#include <string>
#include <unordered_map>
#include <vector>

#include "headrace/error.hh"
#include "tables/lpm6/lpm6.hh"
#include "tables/lpm6/route_file6.hh"
#include "tables/memory/huge_array.hh"

namespace headrace {
namespace {

constexpr size_t kKeys = size_t{1} << 22;
constexpr size_t kBatch = 256;

using Route = Lpm6::Route;

uint32_t next_hop_of(Lpm6Key key) { return static_cast<uint32_t>(key.high * 0x9e3779b97f4a7c15u >> 40) % 64; }

std::string route_path() {
  const char* const given = std::getenv("HEADRACE_ROUTES6");
  return given != nullptr ? given : "../shared/data/bgp/full-table-v6_bart-v0.30.0.txt.xz";
}

/// The routes of the file.
std::vector<Route> real(benchmark::State& state) {
  std::vector<TextRoute6> lines;
  Errors errors;
  if (!read_routes6(route_path(), lines, errors)) {
    state.SkipWithError(errors.str().c_str());
    return {};
  }
  std::vector<Route> routes;
  for (const TextRoute6& line : lines) {
    Lpm6Key key;
    for (size_t i = 0; i < 8; ++i) {
      key.high = key.high << 8 | line.prefix.address.bytes()[i];
      key.low = key.low << 8 | line.prefix.address.bytes()[8 + i];
    }
    routes.push_back({key, line.prefix.length, next_hop_of(key)});
  }
  return routes;
}

/// A million routes of /32 to /48 in the shape of today's: allocations of which most are cut into smaller ones.
std::vector<Route> million() {
  std::mt19937_64 random(6);
  std::vector<Route> routes;
  // Some come twice.
  while (routes.size() < 1500000) {
    const uint64_t block = uint64_t{0x2400 + (random() % 0xa00)} << 48 | (random() & 0x0ff8'0000'0000);
    routes.push_back({{block, 0}, 32, next_hop_of({block, 0})});
    uint64_t cut = block | (random() & 0xffff'0000);
    for (uint64_t n = random() % 40; n > 0; --n) {
      constexpr int kLengths[] = {36, 40, 44, 48, 48, 48};
      const int length = kLengths[random() % 6];
      const Lpm6Key key = lpm6_clean({cut, 0}, length);
      cut = block | ((cut + 0x1'0000) & 0xffff'0000);
      routes.push_back({key, length, next_hop_of(key)});
    }
  }
  return routes;
}

std::vector<Route> read(benchmark::State& state) { return state.range(0) == 0 ? real(state) : million(); }

std::vector<Lpm6Key> keys_in(const std::vector<Route>& routes) {
  std::mt19937_64 random(1);
  std::vector<Lpm6Key> keys(kKeys);
  for (Lpm6Key& key : keys) {
    const Route& route = routes[random() % routes.size()];
    const Lpm6Key mask = lpm6_mask(route.length);
    key = {route.prefix.high | (random() & ~mask.high), route.prefix.low | (random() & ~mask.low)};
  }
  return keys;
}

void lpm6_build(benchmark::State& state) {
  const std::vector<Route> routes = read(state);
  if (routes.empty()) return;
  Lpm6 table;
  for (auto _ : state) table.build(routes);
  state.counters["routes"] = static_cast<double>(table.route_count());
  state.counters["nodes"] = static_cast<double>(table.node_count());
  state.counters["table_MB"] = static_cast<double>(table.table_bytes()) / 1e6;
  state.counters["MB"] = static_cast<double>(table.memory_bytes()) / 1e6;
}
BENCHMARK(lpm6_build)->ArgName("million")->Arg(0)->Arg(1)->Unit(benchmark::kMillisecond);

void lpm6_lookup(benchmark::State& state) {
  const std::vector<Route> routes = read(state);
  if (routes.empty()) return;
  Lpm6 table;
  table.build(routes);
  const std::vector<Lpm6Key> keys = keys_in(routes);
  const Lpm6View view = table.view();
  for (auto _ : state) {
    uint32_t sum = 0;
    for (const Lpm6Key key : keys) sum += view.lookup(key);
    benchmark::DoNotOptimize(sum);
  }
  state.SetItemsProcessed(static_cast<int64_t>(state.iterations() * keys.size()));
}
BENCHMARK(lpm6_lookup)->ArgName("million")->Arg(0)->Arg(1);

void lpm6_lookup_batch(benchmark::State& state) {
  const std::vector<Route> routes = read(state);
  if (routes.empty()) return;
  Lpm6 table;
  table.build(routes);
  const std::vector<Lpm6Key> keys = keys_in(routes);
  const Lpm6View view = table.view();
  uint32_t next_hops[kBatch];
  for (auto _ : state) {
    for (size_t i = 0; i < keys.size(); i += kBatch) {
      view.lookup_batch(&keys[i], next_hops, kBatch);
      benchmark::DoNotOptimize(next_hops);
      benchmark::ClobberMemory();
    }
  }
  state.SetItemsProcessed(static_cast<int64_t>(state.iterations() * keys.size()));
}
BENCHMARK(lpm6_lookup_batch)->ArgName("million")->Arg(0)->Arg(1);

/// One hash map, asked for each length that occurs, the longest first.
class ByLength {
 public:
  explicit ByLength(const std::vector<Route>& routes) {
    for (const Route& route : routes) {
      lengths_[route.length] = true;
      map_[{route.prefix, route.length}] = route.next_hop;
    }
  }
  uint32_t lookup(Lpm6Key key) const {
    for (int length = 128; length >= 0; --length) {
      if (!lengths_[length]) continue;
      const auto found = map_.find({lpm6_clean(key, length), length});
      if (found != map_.end()) return found->second;
    }
    return Lpm6::kMiss;
  }

 private:
  struct Prefix {
    Lpm6Key key;
    int length;
    bool operator==(const Prefix&) const = default;
  };
  struct Hash {
    size_t operator()(const Prefix& p) const {
      return (p.key.high ^ std::rotl(p.key.low, 29) ^ static_cast<uint64_t>(p.length)) * 0x9e3779b97f4a7c15u >> 20;
    }
  };
  bool lengths_[129] = {};
  std::unordered_map<Prefix, uint32_t, Hash> map_;
};

void lpm6_by_length(benchmark::State& state) {
  const std::vector<Route> routes = read(state);
  if (routes.empty()) return;
  const ByLength table(routes);
  const std::vector<Lpm6Key> keys = keys_in(routes);
  constexpr size_t kFew = size_t{1} << 18;
  for (auto _ : state) {
    uint32_t sum = 0;
    for (size_t i = 0; i < kFew; ++i) sum += table.lookup(keys[i]);
    benchmark::DoNotOptimize(sum);
  }
  state.SetItemsProcessed(static_cast<int64_t>(state.iterations() * kFew));
}
BENCHMARK(lpm6_by_length)->ArgName("million")->Arg(0);

/// Binary search on prefix lengths (M. Waldvogel, G. Varghese, J. Turner, B. Plattner, "Scalable high speed IP routing
/// lookups", SIGCOMM 1997): a hash table of prefixes and markers, in which a hit tells to look for longer ones. A
/// marker carries the answer of the longest route that holds it.
class BinaryOnLengths {
 public:
  explicit BinaryOnLengths(std::vector<Route> routes) {
    std::sort(routes.begin(), routes.end(), [](const Route& a, const Route& b) { return a.length < b.length; });
    for (const Route& route : routes) {
      if (route.length == 0) {
        shortest_ = route.next_hop;
      } else if (lengths_.empty() || lengths_.back() != route.length) {
        lengths_.push_back(static_cast<int16_t>(route.length));
      }
    }
    slots_ = HugeArray<Slot>(std::bit_ceil(8 * routes.size()));
    shift_ = 64 - std::countr_zero(slots_.size());
    // Shorter routes come first, so that a marker finds what holds it.
    for (const Route& route : routes) {
      size_t begin = 0, end = lengths_.size();
      while (begin < end && route.length != 0) {
        const size_t middle = (begin + end) / 2;
        const int16_t length = lengths_[middle];
        if (length == route.length) {
          place(route.prefix, length) = {route.prefix, length, 1, route.next_hop};
          break;
        }
        if (length > route.length) {
          end = middle;
          continue;
        }
        const Lpm6Key key = lpm6_clean(route.prefix, length);
        Slot& marker = place(key, length);
        if (!marker.used) marker = {key, length, 1, lookup(key)};
        begin = middle + 1;
      }
    }
  }

  uint32_t lookup(Lpm6Key key) const {
    uint32_t best = shortest_;
    size_t begin = 0, end = lengths_.size();
    while (begin < end) {
      const size_t middle = (begin + end) / 2;
      const int16_t length = lengths_[middle];
      const Lpm6Key prefix = lpm6_clean(key, length);
      const Slot& slot = const_cast<BinaryOnLengths*>(this)->place(prefix, length);
      if (!slot.used) {
        end = middle;
      } else {
        best = slot.next_hop;
        begin = middle + 1;
      }
    }
    return best;
  }

 private:
  struct Slot {
    Lpm6Key key;
    int16_t length = 0;
    int16_t used = 0;
    uint32_t next_hop = 0;
  };
  Slot& place(Lpm6Key key, int16_t length) {
    const uint64_t hash = (key.high ^ std::rotl(key.low, 29) ^ static_cast<uint64_t>(length)) * 0x9e3779b97f4a7c15u;
    for (size_t at = hash >> shift_;; at = (at + 1) & (slots_.size() - 1)) {
      Slot& slot = slots_[at];
      if (!slot.used || (slot.length == length && slot.key == key)) return slot;
    }
  }

  std::vector<int16_t> lengths_;
  HugeArray<Slot> slots_;
  int shift_ = 0;
  uint32_t shortest_ = Lpm6::kMiss;
};

void lpm6_binary_on_lengths(benchmark::State& state) {
  const std::vector<Route> routes = read(state);
  if (routes.empty()) return;
  const BinaryOnLengths table(routes);
  Lpm6 truth;
  truth.build(routes);
  const std::vector<Lpm6Key> keys = keys_in(routes);
  for (size_t i = 0; i < 100000; ++i) {
    if (table.lookup(keys[i]) != truth.lookup(keys[i])) state.SkipWithError("the answers differ");
  }
  for (auto _ : state) {
    uint32_t sum = 0;
    for (const Lpm6Key key : keys) sum += table.lookup(key);
    benchmark::DoNotOptimize(sum);
  }
  state.SetItemsProcessed(static_cast<int64_t>(state.iterations() * keys.size()));
}
BENCHMARK(lpm6_binary_on_lengths)->ArgName("million")->Arg(0)->Arg(1);

/// Withdraws and announces real routes, one by one, of every length (0) or of one length.
void lpm6_update(benchmark::State& state) {
  const std::vector<Route> routes = real(state);
  if (routes.empty()) return;
  Lpm6 table;
  table.build(routes);
  std::vector<Route> changing;
  for (const Route& route : routes) {
    if (state.range(0) == 0 || route.length == state.range(0)) changing.push_back(route);
  }
  std::mt19937 random(1);
  for (auto _ : state) {
    const Route& route = changing[random() % changing.size()];
    table.remove(route.prefix, route.length);
    table.add(route.prefix, route.length, route.next_hop);
  }
  state.SetItemsProcessed(static_cast<int64_t>(2 * state.iterations()));
}
BENCHMARK(lpm6_update)->ArgName("length")->Arg(0)->Arg(20)->Arg(32)->Arg(48)->Arg(128);

/// Replaces the default route: the whole first level and much of the rest is written.
void lpm6_update_default(benchmark::State& state) {
  const std::vector<Route> routes = real(state);
  if (routes.empty()) return;
  Lpm6 table;
  table.build(routes);
  uint32_t next_hop = 0;
  for (auto _ : state) table.set({}, 0, next_hop ^= 1);
}
BENCHMARK(lpm6_update_default)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace headrace
