#pragma once
/// \file
/// Longest-prefix match by the definition, to hold the table against.

#include <algorithm>
#include <array>
#include <cstdint>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "tables/lpm4/lpm4.hh"

namespace headrace {

/// One hash map for each length, asked from the longest to the shortest.
class NaiveLpm4 {
 public:
  void set(uint32_t prefix, int length, uint32_t next_hop) { maps_[length][prefix & mask(length)] = next_hop; }
  bool remove(uint32_t prefix, int length) { return maps_[length].erase(prefix & mask(length)) != 0; }

  uint32_t lookup(uint32_t address) const {
    for (int length = 32; length >= 0; --length) {
      if (maps_[length].empty()) continue;
      const auto found = maps_[length].find(address & mask(length));
      if (found != maps_[length].end()) return found->second;
    }
    return Lpm4::kMiss;
  }

  /// By prefix and then by length, as Lpm4::routes().
  std::vector<Lpm4::Route> routes() const {
    std::vector<Lpm4::Route> all;
    for (int length = 0; length <= 32; ++length) {
      for (const auto& [prefix, next_hop] : maps_[length]) all.push_back({prefix, length, next_hop});
    }
    std::sort(all.begin(), all.end(), [](const Lpm4::Route& a, const Lpm4::Route& b) {
      return std::tie(a.prefix, a.length) < std::tie(b.prefix, b.length);
    });
    return all;
  }

  static uint32_t mask(int length) { return length == 0 ? 0 : ~uint32_t{0} << (32 - length); }

 private:
  std::array<std::unordered_map<uint32_t, uint32_t>, 33> maps_;
};

/// Addresses from `begin` up to the next segment that have the same answer.
struct Lpm4Segment {
  uint64_t begin;
  uint32_t next_hop;
};

/// Cuts the whole address space into segments, by a sweep over routes that are sorted by prefix and then by length.
inline std::vector<Lpm4Segment> segments(const std::vector<Lpm4::Route>& sorted) {
  struct Open {
    uint64_t end;
    uint32_t next_hop;
  };
  std::vector<Lpm4Segment> result{{0, Lpm4::kMiss}};
  std::vector<Open> open{{uint64_t{1} << 32, Lpm4::kMiss}};
  const auto begin_segment = [&](uint64_t begin, uint32_t next_hop) {
    if (result.back().begin == begin) result.pop_back();
    result.push_back({begin, next_hop});
  };
  const auto close_until = [&](uint64_t address) {
    while (open.size() > 1 && open.back().end <= address) {
      const uint64_t end = open.back().end;
      open.pop_back();
      begin_segment(end, open.back().next_hop);
    }
  };
  for (const Lpm4::Route& route : sorted) {
    close_until(route.prefix);
    begin_segment(route.prefix, route.next_hop);
    open.push_back({uint64_t{route.prefix} + (uint64_t{1} << (32 - route.length)), route.next_hop});
  }
  close_until(uint64_t{1} << 32);
  if (result.back().begin == uint64_t{1} << 32) result.pop_back();
  return result;
}

/// Compares the table with the segments at every address that could differ: both ends of each segment, one address of
/// each block of 256, and every address of a block in which a segment begins. Returns how many are wrong.
inline size_t count_wrong(const Lpm4View& view, const std::vector<Lpm4Segment>& truth) {
  size_t wrong = 0;
  for (size_t i = 0; i < truth.size(); ++i) {
    const uint64_t begin = truth[i].begin;
    const uint64_t end = i + 1 < truth.size() ? truth[i + 1].begin : uint64_t{1} << 32;
    const auto check = [&](uint64_t address) {
      wrong += view.lookup(static_cast<uint32_t>(address)) != truth[i].next_hop;
    };
    uint64_t address = begin;
    while (address < end && address % 256 != 0) check(address++);
    while (address + 256 <= end) {
      check(address);
      address += 256;
    }
    while (address < end) check(address++);
    check(begin);
    check(end - 1);
  }
  return wrong;
}

}  // namespace headrace
