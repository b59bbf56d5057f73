#pragma once
/// \file
/// What a search for patterns reports, and what all of its engines share. Includes no standard header.

#include <headrace/team.hh>

namespace headrace {

/// Most patterns of a set: their numbers and two marks fit 16 bits.
inline constexpr uint32_t kMostPatterns = 65534;
/// Most bytes of a pattern.
inline constexpr uint32_t kLongestPattern = 2047;

/// The match that ends first in a payload, and of those that end there the one of the lowest pattern number.
struct FirstMatch {
  static constexpr uint64_t kNone = ~uint64_t{0};
  static constexpr uint64_t kCut = kNone - 1;

  uint64_t key = kNone;  ///< end << 32 | pattern; kNone: no match; kCut: given up, see ScanBudget

  HEADRACE_SHADER bool found() const { return key < kCut; }
  HEADRACE_SHADER bool cut() const { return key == kCut; }
  HEADRACE_SHADER uint32_t pattern() const { return static_cast<uint32_t>(key); }
  /// Bytes of the payload up to and with the match's last one.
  HEADRACE_SHADER uint32_t end() const { return static_cast<uint32_t>(key >> 32); }
  HEADRACE_SHADER bool operator==(const FirstMatch& other) const { return key == other.key; }
};

/// Which patterns match a payload: the four lowest numbers of different ones.
struct Candidates {
  static constexpr uint64_t kCut = ~uint64_t{0};

  /// Ascending, 16 bits each, the lowest one lowest: number + 1, or 0 for none. The last is 0xffff when more than four
  /// patterns match, so that three are known then.
  uint64_t packed = 0;

  HEADRACE_SHADER bool none() const { return packed == 0; }
  HEADRACE_SHADER bool more() const { return packed >> 48 == 0xffff && !cut(); }
  /// Given up, see ScanBudget.
  HEADRACE_SHADER bool cut() const { return packed == kCut; }
  /// How many numbers are known: 0 to 4.
  HEADRACE_SHADER uint32_t count() const {
    if (cut()) return 0;
    uint32_t n = 0;
    while (n < 4 && (packed >> (16 * n) & 0xffff) != 0) ++n;
    return n == 4 && packed >> 48 == 0xffff ? 3 : n;
  }
  HEADRACE_SHADER uint32_t pattern(uint32_t i) const { return static_cast<uint32_t>(packed >> (16 * i) & 0xffff) - 1; }
  HEADRACE_SHADER bool operator==(const Candidates& other) const { return packed == other.packed; }
};

/// How much one payload may cost an engine: a unit is a match reported, an entry of a bucket looked at, or four bytes
/// of a pattern compared. A scan that would need more is cut: it says so, and reports nothing that may be used. The sum
/// is the same for every size of the team, unless a lane stops early (first_match).
struct ScanBudget {
  uint32_t base = 32;
  uint32_t per_byte = 4;

  HEADRACE_SHADER uint32_t of(uint32_t length) const { return base + per_byte * length; }
};

/// Four bytes of a pattern.
struct PatternWord {
  uint32_t bytes;        ///< the first lowest; letters of a pattern for both cases are small
  uint32_t either_case;  ///< 0x20 at letters that match in both cases
};

/// The bytes of all patterns.
struct PatternBytesView {
  const PatternWord* words = nullptr;
  const uint32_t* begins = nullptr;  ///< by pattern: its first word

  /// The `length` bytes of a payload from `at` on, which it has, are the pattern that begins at `word`.
  HEADRACE_SHADER bool equal(const PayloadBytes& bytes, uint32_t at, uint32_t word, uint32_t length) const {
    uint32_t i = 0;
    for (; i + 4 <= length; i += 4, ++word) {
      const PatternWord pattern = words[word];
      if ((bytes.word(at + i) | pattern.either_case) != pattern.bytes) return false;
    }
    if (i == length) return true;
    const PatternWord pattern = words[word];
    const uint32_t mask = ~0u >> (32 - 8 * (length - i));
    return (((bytes.word(at + i) | pattern.either_case) ^ pattern.bytes) & mask) == 0;
  }
  /// What equal() costs, see ScanBudget.
  HEADRACE_SHADER static uint32_t cost(uint32_t length) { return (length + 3) / 4; }
};

namespace pattern_detail {

template <typename A, typename B>
inline constexpr bool kSame = false;
template <typename A>
inline constexpr bool kSame<A, A> = true;

/// Reports a match. What is said about matches that end later is kept in `limit`.
template <typename F, typename State>
HEADRACE_SHADER void report(F& on_match, State& state, uint32_t pattern, uint32_t end, uint32_t& limit) {
  if constexpr (kSame<decltype(on_match(state, pattern, end)), void>) {
    on_match(state, pattern, end);
  } else {
    limit = on_match(state, pattern, end);
  }
}

/// The four lowest different numbers that a lane has seen; 0xffff stands for none.
struct LowestNumbers {
  uint32_t first = 0xffff, second = 0xffff, third = 0xffff, fourth = 0xffff;
  bool more = false;

  HEADRACE_SHADER void add(uint32_t number) {
    if (number >= fourth) {
      more = more || number != fourth;
      return;
    }
    if (number == first || number == second || number == third) return;
    more = more || fourth != 0xffff;
    fourth = number > third ? number : third;
    if (number > third) return;
    third = number > second ? number : second;
    if (number > second) return;
    second = number > first ? number : first;
    if (number < first) first = number;
  }
  /// The lowest number above `bound`.
  HEADRACE_SHADER uint32_t above(uint32_t bound) const {
    uint32_t least = fourth > bound ? fourth : 0xffff;
    least = third > bound ? third : least;
    least = second > bound ? second : least;
    return first > bound ? first : least;
  }
};

}  // namespace pattern_detail

/// The first match, by an engine's view: exact for every size of the team. A lane stops where its matches can no longer
/// be the first; which of two payloads that are near the budget are cut may therefore depend on the size of the team.
template <class View, class Team>
HEADRACE_SHADER FirstMatch first_match(const View& view, const Team& team, const PayloadBytes& bytes) {
  typename Team::template Lanes<uint64_t> keys = team.map([](uint32_t) { return FirstMatch::kNone; });
  const bool whole =
      view.template scan<Team, uint64_t>(team, bytes, keys, [](uint64_t& key, uint32_t pattern, uint32_t end) {
        const uint64_t mine = uint64_t{end} << 32 | pattern;
        if (mine < key) key = mine;
        return static_cast<uint32_t>(key >> 32);
      });
  FirstMatch first;
  first.key = whole ? team.min(keys) : FirstMatch::kCut;
  return first;
}

struct EveryPattern {
  HEADRACE_SHADER bool operator()(uint32_t) const { return true; }
};

/// The patterns that match, by an engine's view: the same for every size of the team. Those of which `admits`
/// is false do not count. What a scan costs does not depend on that.
template <class View, class Team, class Admits = EveryPattern>
HEADRACE_SHADER Candidates candidates(const View& view, const Team& team, const PayloadBytes& bytes,
                                      const Admits& admits = {}) {
  using Lowest = pattern_detail::LowestNumbers;
  typename Team::template Lanes<Lowest> lanes = team.map([](uint32_t) { return Lowest(); });
  const bool whole =
      view.template scan<Team, Lowest>(team, bytes, lanes, [&](Lowest& lowest, uint32_t pattern, uint32_t) {
        if (admits(pattern)) lowest.add(pattern + 1);
      });
  Candidates found;
  if (!whole) {
    found.packed = Candidates::kCut;
    return found;
  }
  uint32_t bound = 0;
  for (uint32_t i = 0; i < 4; ++i) {
    bound = team.min(team.map([&](uint32_t lane) { return Team::own(lanes, lane).above(bound); }));
    if (bound == 0xffff) return found;
    found.packed |= uint64_t{bound} << (16 * i);
  }
  // A fifth number in a lane, or between them.
  const bool more = team.any(team.map([&](uint32_t lane) {
    const Lowest& mine = Team::own(lanes, lane);
    return mine.more || mine.above(bound) != 0xffff;
  }));
  if (more) found.packed |= uint64_t{0xffff} << 48;
  return found;
}

/// Whether any pattern matches: 1, 0, or -1 when the scan was cut. A lane stops at its first match.
template <class View, class Team>
HEADRACE_SHADER int any_match(const View& view, const Team& team, const PayloadBytes& bytes) {
  typename Team::template Lanes<bool> found = team.map([](uint32_t) { return false; });
  const bool whole = view.template scan<Team, bool>(team, bytes, found, [](bool& mine, uint32_t, uint32_t) {
    mine = true;
    return 0u;
  });
  return team.any(found) ? 1 : whole ? 0 : -1;
}

}  // namespace headrace
