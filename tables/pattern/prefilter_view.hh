#pragma once
/// \file
/// The view of a search without states: a test of each position, and a closer look at those that pass. Includes no
/// standard header.

#include "tables/pattern/match_view.hh"

namespace headrace {

/// A pattern that has a window in a bucket.
struct alignas(16) WindowEntry {
  uint32_t check;  ///< the window's first four bytes, kSpread
  uint32_t word;   ///< where the pattern's bytes begin
  uint16_t pattern;
  uint16_t offset;  ///< of the window in the pattern
  uint16_t length;  ///< of the pattern
  uint16_t last;    ///< not 0: the last one of its bucket
};

/// Windows of one size. A window's hash has its highest bits for an index of `bits` and, again its highest, for one of
/// `buckets`.
struct WindowTableView {
  static constexpr uint32_t kNoEntry = ~uint32_t{0};

  const uint32_t* bits = nullptr;     ///< null: there are none
  const uint32_t* buckets = nullptr;  ///< a bucket's first entry, or kNoEntry
  const WindowEntry* entries = nullptr;
  uint32_t bit_shift = 0;
  uint32_t bucket_shift = 0;

  HEADRACE_SHADER uint32_t passes(uint32_t hash) const {
    const uint32_t bit = hash >> bit_shift;
    return bits[bit >> 5] >> (bit & 31) & 1;
  }
};

/// Every pattern has one window: 8 bytes of one that has as many, 4 of one with 4 to 7, else all of its bytes. At each
/// position of a payload, bitmaps of a few 10 KB say whether it may begin a window (patterns of one and two bytes share
/// one that is exact). What passes is looked up in hash tables and compared. Lanes take turns of four positions, so
/// that neighbors read neighboring words; what has passed in four turns is dealt out to all of them.
class PrefilterView {
 public:
  /// Letters that differ in case only, and some other bytes, are one in windows.
  static constexpr uint32_t kSpread = 0x20202020;
  static constexpr uint32_t kFirstFactor = 0x9e3779b1;
  static constexpr uint32_t kSecondFactor = 0x85ebca77;

  HEADRACE_SHADER static uint32_t hash(uint32_t window) { return (window | kSpread) * kFirstFactor; }
  HEADRACE_SHADER static uint32_t hash8(uint32_t hash, uint32_t second) {
    return hash + (second | kSpread) * kSecondFactor;
  }
  HEADRACE_SHADER static uint32_t hash3(uint32_t window) { return hash(window & 0xffffff); }
  HEADRACE_SHADER static uint32_t hash2(uint32_t window) { return hash(window & 0xffff); }
  HEADRACE_SHADER static uint32_t hash1(uint32_t window) { return hash(window & 0xff); }

  WindowTableView eight, four, three, two, one;
  const uint32_t* pairs = nullptr;  ///< by two bytes, whether they may begin a pattern of one or two bytes; may be null
  PatternBytesView texts;
  ScanBudget budget;

  /// As FullDfaView::scan(); here the matches of a lane are not reported in the order of their ends.
  template <typename Team, typename State, typename F>
  HEADRACE_SHADER bool scan(const Team& team, const PayloadBytes& bytes, typename Team::template Lanes<State>& states,
                            F&& on_match) const {
    constexpr uint32_t kTurn = 4 * Team::size();
    const uint32_t most = budget.of(bytes.length);
    typename Team::template Lanes<Lane> work = team.map([&](uint32_t) { return Lane{most, 0, ~0u}; });
    uint32_t limit = ~0u, all_work = 0;
    const auto go_on = [&] {
      limit = team.min(team.map([&](uint32_t lane) { return Team::own(work, lane).limit; }));
      all_work = team.sum(team.map([&](uint32_t lane) { return Team::own(work, lane).work; }));
      return all_work <= most;
    };
    for (uint32_t block = 0; block < bytes.length && block < limit && all_work <= most; block += kTurns * kTurn) {
      const auto passed = team.map([&](uint32_t lane) {
        uint64_t mine = 0;
        for (uint32_t turn = 0; turn < kTurns; ++turn) {
          const uint32_t at = block + turn * kTurn + 4 * lane;
          if (at < bytes.length) mine |= test4(bytes, at) << (4 * turn);
        }
        return mine;
      });
      team.share(
          passed,
          [&](uint32_t lane, uint32_t owner, uint32_t bit) {
            const uint32_t at = block + (bit / 4 % kTurns) * kTurn + 4 * owner + bit % 4;
            if (at < bytes.length && at < limit)
              look(bytes, at, bit / kBitsOfTable, Team::own(states, lane), on_match, Team::own(work, lane));
          },
          go_on);
    }
    return all_work <= most;
  }

 private:
  static constexpr uint32_t kTurns = 4;
  /// A mask of what has passed has a bit for each of four positions in each turn, for each table in turn.
  static constexpr uint32_t kBitsOfTable = 4 * kTurns;
  enum Windows : uint32_t { kEight, kFour, kThree, kPairs };

  struct Lane {
    uint32_t most;
    uint32_t work;
    uint32_t limit;
  };

  /// Four bytes of two words that follow each other, from byte k of the first on.
  HEADRACE_SHADER static uint32_t joined(uint32_t low, uint32_t high, uint32_t k) {
#if defined(__CUDA_ARCH__)
    return __funnelshift_r(low, high, 8 * k);
#else
    return static_cast<uint32_t>((uint64_t{high} << 32 | low) >> (8 * k));
#endif
  }

  /// Which of the four positions from `at` on may begin a window of which table. Those behind the payload's end may,
  /// too.
  HEADRACE_SHADER uint64_t test4(const PayloadBytes& bytes, uint32_t at) const {
    const uint32_t low = bytes.word(at), middle = bytes.word(at + 4);
    const uint32_t high = eight.bits ? bytes.word(at + 8) : 0;
    uint32_t passed[4] = {};
    for (uint32_t k = 0; k < 4; ++k) {
      const uint32_t window = joined(low, middle, k);
      const uint32_t first = hash(window);
      if (eight.bits) passed[kEight] |= eight.passes(hash8(first, joined(middle, high, k))) << k;
      if (four.bits) passed[kFour] |= four.passes(first) << k;
      if (three.bits) passed[kThree] |= three.passes(hash3(window)) << k;
      if (pairs) passed[kPairs] |= (pairs[(window & 0xffff) >> 5] >> (window & 31) & 1) << k;
    }
    return passed[kEight] | uint64_t{passed[kFour]} << kBitsOfTable | uint64_t{passed[kThree]} << (2 * kBitsOfTable) |
           uint64_t{passed[kPairs]} << (3 * kBitsOfTable);
  }

  /// Finds the patterns of which a window begins at `at`, by one table.
  template <typename State, typename F>
  HEADRACE_SHADER void look(const PayloadBytes& bytes, uint32_t at, uint32_t windows, State& state, F& on_match,
                            Lane& mine) const {
    const uint32_t window = bytes.word(at);
    if (windows == kPairs) {
      if (two.bits) search(two, hash2(window), 0xffff, bytes, at, state, on_match, mine);
      if (one.bits) search(one, hash1(window), 0xff, bytes, at, state, on_match, mine);
      return;
    }
    const uint32_t mask = windows == kThree ? 0xffffff : ~0u;
    uint32_t index = hash(window & mask);
    if (windows == kEight) index = hash8(index, bytes.word(at + 4));
    // One search for all of them, so that lanes with different tables wait for memory together.
    search(windows == kEight ? eight : windows == kFour ? four : three, index, mask, bytes, at, state, on_match, mine);
  }
  template <typename State, typename F>
  HEADRACE_SHADER void search(const WindowTableView& table, uint32_t hash, uint32_t mask, const PayloadBytes& bytes,
                              uint32_t at, State& state, F& on_match, Lane& mine) const {
    uint32_t next = table.buckets[hash >> table.bucket_shift];
    if (next == WindowTableView::kNoEntry) return;
    const uint32_t check = (bytes.word(at) & mask) | kSpread;
    for (;;) {
      const WindowEntry entry = table.entries[next++];
      if (++mine.work > mine.most) return;
      if (entry.check == check && entry.offset <= at && at - entry.offset + entry.length <= bytes.length) {
        const uint32_t begin = at - entry.offset;
        mine.work += PatternBytesView::cost(entry.length);
        if (texts.equal(bytes, begin, entry.word, entry.length))
          pattern_detail::report(on_match, state, entry.pattern, begin + entry.length, mine.limit);
      }
      if (entry.last != 0) return;
    }
  }
};

}  // namespace headrace
