#pragma once
/// \file
/// Keys for benchmarks of tables of rules: headers without locality.

#include <array>
#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

#include "tables/acl/rule_file.hh"

namespace headrace::acl_bench {

/// A key of 4 words: addresses, ports, Ethernet type and protocol.
using Key = std::array<uint32_t, 4>;

/// Headers inside rules: a rule at random, and in it uniform values of all that it leaves open.
inline std::vector<Key> keys_inside(const std::vector<FlowRule>& rules, size_t count) {
  std::mt19937 random(1);
  std::vector<Key> keys(count);
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
inline std::vector<Key> keys_uniform(size_t count) {
  std::mt19937 random(2);
  std::vector<Key> keys(count);
  for (Key& key : keys)
    key = {static_cast<uint32_t>(random()), static_cast<uint32_t>(random()), static_cast<uint32_t>(random()),
           0x08000000u | (random() % 3 == 0 ? 17u : 6u) << 8};
  return keys;
}

}  // namespace headrace::acl_bench
