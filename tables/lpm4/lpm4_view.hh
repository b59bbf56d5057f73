#pragma once
/// \file
/// The view of an IPv4 longest-prefix table that elements and shaders look up in. Includes no standard header.

#include <headrace/shader_types.hh>

namespace headrace {

/// One form of a table, as a processor reads it.
///
/// The layout is DIR-24-8 (P. Gupta, S. Lin, N. McKeown, "Routing lookups in hardware at memory access speeds", INFOCOM
/// 1998). `first` has an entry for each value of an address's upper 24 bits. An entry with its highest bit clear is
/// the answer: 0 for no route, else the next hop plus one. With its highest bit set, the other bits number a group
/// of 256 such answers in `groups`, one for each value of the lower 8 bits. Entries are 16 bits wide, or 32 when
/// `wide`.
///
/// `answers`, unless null, has a half or a whole byte in front of each entry of `first`: the entry, if it is an answer
/// below `ask`, else `ask`. Most routers have few next hops, and then most lookups read this array only, of 8 or 16 MB, of
/// which caches hold four times or twice as much as of one of 32 MB.
struct Lpm4Generation {
  /// The largest number in a half and in a whole byte: to ask `first`.
  static constexpr uint32_t kAskHalf = 15, kAskByte = 255;

  const void* first = nullptr;
  const void* groups = nullptr;
  const uint8_t* answers = nullptr;  ///< its writer may set it to null at any time
  uint32_t wide = 0;
  uint32_t shift = 8;  ///< of an address: what is left numbers its byte of `answers`
  uint32_t half = 0;   ///< 4: such a byte belongs to two entries, its lower half to the first of them
  uint32_t ask = kAskByte;
  /// What a lookup reads first: the byte at the address, shifted by so many bits, behind `ahead`. Only to ask for it.
  const uint8_t* ahead = nullptr;
  uint32_t ahead_shift = 0;

  /// What is in front of the entry of an address.
  HEADRACE_SHADER static uint32_t answer(const uint8_t* answers, uint32_t address, uint32_t shift, uint32_t half,
                                         uint32_t ask) {
    // Bit 8 of the address tells which half: it becomes bit 2, that is four bits.
    return static_cast<uint32_t>(load_shared(answers + (address >> shift))) >> (address >> 6 & half) & ask;
  }
};

/// Looks up addresses. Trivially copyable, one pointer; valid until the reader's next quiescent state
/// (headrace/rcu.hh). A default-made view must not be asked.
class Lpm4View {
 public:
  /// The answer when no route matches.
  static constexpr uint32_t kMiss = 0xffffffffu;

  Lpm4View() = default;
  bool operator==(const Lpm4View&) const = default;
  HEADRACE_SHADER explicit Lpm4View(const Lpm4Generation* generation) : generation_(generation) {}

  /// The next hop of the longest prefix that holds `address` (host byte order), or kMiss.
  HEADRACE_SHADER uint32_t lookup(uint32_t address) const { return static_cast<uint32_t>(lookup_entry(address)) - 1; }

  /// The same plus one; 0 when no route matches.
  HEADRACE_SHADER size_t lookup_entry(uint32_t address) const {
    if (const uint8_t* const answers = load_shared(&generation_->answers)) [[likely]] {
      const uint32_t ask = generation_->ask;
      const uint32_t answer = Lpm4Generation::answer(answers, address, generation_->shift, generation_->half, ask);
      if (answer != ask) [[likely]]
        return answer;
    }
    return lookup_first(address);
  }

  /// Asks for the cache line with the first entry that `lookup(address)` will read.
  HEADRACE_SHADER void prefetch(uint32_t address) const {
    prefetch_line(load_shared(&generation_->ahead) + (address >> load_shared(&generation_->ahead_shift)));
  }

  /// Looks up `count` addresses that lie in memory: on a CPU faster than one by one, since more of the table's cache
  /// misses are under way at once.
  HEADRACE_SHADER void lookup_batch(const uint32_t* addresses, uint32_t* next_hops, size_t count) const {
    if (const uint8_t* const answers = load_shared(&generation_->answers)) {
      find_each(answers, addresses, next_hops, count);
    } else if (generation_->wide) {
      find_each<uint32_t>(addresses, next_hops, count);
    } else {
      find_each<uint16_t>(addresses, next_hops, count);
    }
  }

  HEADRACE_SHADER const Lpm4Generation* generation() const { return generation_; }

 private:
  /// The answer of the entries of `first` and `groups`, plus one.
  HEADRACE_SHADER uint32_t lookup_first(uint32_t address) const {
    return generation_->wide ? find<uint32_t>(generation_->first, generation_->groups, address)
                             : find<uint16_t>(generation_->first, generation_->groups, address);
  }

  template <typename Entry>
  static constexpr Entry kGroup = static_cast<Entry>(Entry(1) << (8 * sizeof(Entry) - 1));

  template <typename Entry>
  static HEADRACE_SHADER Entry load_first(const void* first, uint32_t address) {
    return load_shared(static_cast<const Entry*>(first) + (address >> 8));
  }

  template <typename Entry>
  static HEADRACE_SHADER Entry load_second(const void* groups, Entry entry, uint32_t address) {
    const size_t group = entry ^ kGroup<Entry>;
    return load_shared(static_cast<const Entry*>(groups) + (group << 8 | (address & 0xff)));
  }

  template <typename Entry>
  static HEADRACE_SHADER uint32_t find(const void* first, const void* groups, uint32_t address) {
    Entry entry = load_first<Entry>(first, address);
    if (entry & kGroup<Entry>) [[unlikely]]
      entry = load_second(groups, entry, address);
    return entry;
  }

  template <typename Entry>
  HEADRACE_SHADER void find_each(const uint32_t* addresses, uint32_t* next_hops, size_t count) const {
    const void* const first = generation_->first;
    const void* const groups = generation_->groups;
    // First a run of loads that nothing waits for but a store, so that they overlap as far as the processor can; then,
    // in pieces that a compiler makes SIMD code of, the rare second loads and the answers.
    constexpr size_t kRun = 64;
    constexpr size_t kPiece = 32;
    for (; count >= kRun; count -= kRun, addresses += kRun, next_hops += kRun) {
      Entry entries[kRun];
      for (size_t j = 0; j < kRun; ++j) entries[j] = load_first<Entry>(first, addresses[j]);
      for (size_t piece = 0; piece < kRun; piece += kPiece) {
        Entry any = 0;
        for (size_t j = piece; j < piece + kPiece; ++j) any |= entries[j];
        if (any & kGroup<Entry>) [[unlikely]] {
          for (size_t j = piece; j < piece + kPiece; ++j) {
            if (entries[j] & kGroup<Entry>) entries[j] = load_second(groups, entries[j], addresses[j]);
          }
        }
        for (size_t j = piece; j < piece + kPiece; ++j) next_hops[j] = uint32_t(entries[j]) - 1;
      }
    }
    for (size_t i = 0; i < count; ++i) next_hops[i] = find<Entry>(first, groups, addresses[i]) - 1;
  }

  /// The same by `answers`.
  HEADRACE_SHADER void find_each(const uint8_t* answers, const uint32_t* addresses, uint32_t* next_hops,
                                 size_t count) const {
    constexpr size_t kRun = 64;
    const uint32_t shift = generation_->shift, half = generation_->half, ask = generation_->ask;
    for (; count >= kRun; count -= kRun, addresses += kRun, next_hops += kRun) {
      uint8_t run[kRun];
      for (size_t j = 0; j < kRun; ++j)
        run[j] = static_cast<uint8_t>(Lpm4Generation::answer(answers, addresses[j], shift, half, ask));
      bool any = false;
      for (size_t j = 0; j < kRun; ++j) any |= run[j] == ask;
      for (size_t j = 0; j < kRun; ++j) next_hops[j] = uint32_t(run[j]) - 1;
      if (!any) [[likely]]
        continue;
      for (size_t j = 0; j < kRun; ++j)
        if (run[j] == ask) next_hops[j] = lookup_first(addresses[j]) - 1;
    }
    for (size_t i = 0; i < count; ++i) next_hops[i] = lookup(addresses[i]);
  }

  const Lpm4Generation* generation_ = nullptr;
};

}  // namespace headrace
