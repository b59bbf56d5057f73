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
struct Lpm4Generation {
  const void* first = nullptr;
  const void* groups = nullptr;
  uint32_t wide = 0;
};

/// Looks up addresses. Trivially copyable, one pointer; valid until the reader's next quiescent state
/// (headrace/rcu.hh). A default-made view must not be asked.
class Lpm4View {
 public:
  /// The answer when no route matches.
  static constexpr uint32_t kMiss = 0xffffffffu;

  Lpm4View() = default;
  HEADRACE_SHADER explicit Lpm4View(const Lpm4Generation* generation) : generation_(generation) {}

  /// The next hop of the longest prefix that holds `address` (host byte order), or kMiss.
  HEADRACE_SHADER uint32_t lookup(uint32_t address) const {
    return generation_->wide ? find<uint32_t>(generation_->first, generation_->groups, address)
                             : find<uint16_t>(generation_->first, generation_->groups, address);
  }

  /// Looks up `count` addresses; `next_hops` may be `addresses`.
  HEADRACE_SHADER void lookup_batch(const uint32_t* addresses, uint32_t* next_hops, size_t count) const {
    if (generation_->wide) {
      find_each<uint32_t>(addresses, next_hops, count);
    } else {
      find_each<uint16_t>(addresses, next_hops, count);
    }
  }

  const Lpm4Generation* generation() const { return generation_; }

 private:
  template <typename Entry>
  static HEADRACE_SHADER uint32_t find(const void* first, const void* groups, uint32_t address) {
    constexpr Entry kGroup = Entry(Entry(1) << (8 * sizeof(Entry) - 1));
    Entry entry = load_shared(static_cast<const Entry*>(first) + (address >> 8));
    if (entry & kGroup) [[unlikely]] {
      const size_t group = entry ^ kGroup;
      entry = load_shared(static_cast<const Entry*>(groups) + (group << 8 | (address & 0xff)));
    }
    return uint32_t(entry) - 1;
  }

  template <typename Entry>
  HEADRACE_SHADER void find_each(const uint32_t* addresses, uint32_t* next_hops, size_t count) const {
    const void* const first = generation_->first;
    const void* const groups = generation_->groups;
    for (size_t i = 0; i < count; ++i) next_hops[i] = find<Entry>(first, groups, addresses[i]);
  }

  const Lpm4Generation* generation_ = nullptr;
};

}  // namespace headrace
