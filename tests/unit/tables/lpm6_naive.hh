#pragma once
/// \file
/// IPv6 longest-prefix match by the definition, to hold the table against.

#include <algorithm>
#include <array>
#include <cstdint>
#include <random>
#include <unordered_map>
#include <vector>

#include "tables/lpm6/lpm6.hh"

namespace headrace {

/// One hash map for each length, asked from the longest to the shortest.
class NaiveLpm6 {
 public:
  void set(Lpm6Key prefix, int length, uint32_t next_hop) { maps_[length][lpm6_clean(prefix, length)] = next_hop; }
  bool remove(Lpm6Key prefix, int length) { return maps_[length].erase(lpm6_clean(prefix, length)) != 0; }

  uint32_t lookup(Lpm6Key key) const {
    for (int length = 128; length >= 0; --length) {
      if (maps_[length].empty()) continue;
      const auto found = maps_[length].find(lpm6_clean(key, length));
      if (found != maps_[length].end()) return found->second;
    }
    return Lpm6::kMiss;
  }

  /// By prefix and then by length, as Lpm6::routes().
  std::vector<Lpm6::Route> routes() const {
    std::vector<Lpm6::Route> all;
    for (int length = 0; length <= 128; ++length) {
      for (const auto& [prefix, next_hop] : maps_[length]) all.push_back({prefix, length, next_hop});
    }
    std::sort(all.begin(), all.end(), [](const Lpm6::Route& a, const Lpm6::Route& b) {
      return a.prefix == b.prefix ? a.length < b.length : a.prefix < b.prefix;
    });
    return all;
  }

 private:
  struct Hash {
    size_t operator()(Lpm6Key key) const { return (key.high * 31 + key.low) * 0x9e3779b97f4a7c15u >> 16; }
  };
  std::array<std::unordered_map<Lpm6Key, uint32_t, Hash>, 129> maps_;
};

inline Lpm6Key plus_one(Lpm6Key key) { return {key.high + (key.low == ~uint64_t{0}), key.low + 1}; }
inline Lpm6Key minus_one(Lpm6Key key) { return {key.high - (key.low == 0), key.low - 1}; }
inline Lpm6Key last_of(Lpm6Key prefix, int length) {
  const Lpm6Key mask = lpm6_mask(length);
  return {prefix.high | ~mask.high, prefix.low | ~mask.low};
}
/// A random address of a prefix.
inline Lpm6Key inside(Lpm6Key prefix, int length, std::mt19937_64& random) {
  const Lpm6Key mask = lpm6_mask(length);
  return {prefix.high | (random() & ~mask.high), prefix.low | (random() & ~mask.low)};
}

/// Compares the table, asked singly and in a batch, with the definition: at both ends of each route, just outside, and
/// at a random address within. Returns how many answers are wrong.
inline size_t count_wrong(const Lpm6View& view, const NaiveLpm6& naive, const std::vector<Lpm6::Route>& routes,
                          uint64_t seed = 1) {
  std::mt19937_64 random(seed);
  std::vector<Lpm6Key> keys = {
      {0, 0}, {~uint64_t{0}, ~uint64_t{0}}, {uint64_t{1} << 61, 0}, {(uint64_t{1} << 62) - 1, 5}};
  for (const Lpm6::Route& route : routes) {
    const Lpm6Key last = last_of(route.prefix, route.length);
    for (const Lpm6Key key :
         {route.prefix, last, minus_one(route.prefix), plus_one(last), inside(route.prefix, route.length, random)}) {
      keys.push_back(key);
    }
  }
  std::vector<uint32_t> answers(keys.size());
  view.lookup_batch(keys.data(), answers.data(), keys.size());
  size_t wrong = 0;
  for (size_t i = 0; i < keys.size(); ++i) {
    const uint32_t truth = naive.lookup(keys[i]);
    wrong += answers[i] != truth;
    wrong += view.lookup(keys[i]) != truth;
  }
  return wrong;
}

}  // namespace headrace
