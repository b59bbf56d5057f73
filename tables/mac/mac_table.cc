#include "tables/mac/mac_table.hh"

#include <algorithm>
#include <bit>

namespace headrace {

namespace {

constexpr uint64_t kOdd = 0x9e3779b97f4a7c15u;

/// All 64 bits depend on the port, and differ for different ports.
uint64_t mixture(uint32_t port) { return (uint64_t{port} + 1) * kOdd; }

}  // namespace

MacTable::MacTable(uint32_t capacity)
    : sets_(std::bit_ceil((std::clamp(capacity, 1u, kMostAddresses) + kWays - 1) / kWays)),
      entries_(new Entry[size_t{sets_} * kWays]) {}

MacTable::Entry* MacTable::set_of(uint64_t key) const {
  // Multiplicative hashing; addresses of one maker differ in their low bits only.
  const uint64_t hash = key * kOdd;
  return entries_.get() + ((hash >> 32) * sets_ >> 32) * kWays;
}

MacTable::Content MacTable::load(const Entry& entry) {
  const uint64_t guarded = entry.guarded.load(std::memory_order_relaxed);
  const uint32_t port = entry.port.load(std::memory_order_relaxed);
  return {guarded == 0 ? 0 : guarded ^ mixture(port), port};
}

void MacTable::learn(uint64_t address, uint16_t network, uint32_t port, uint32_t now) {
  if (timeout() == 0 || address == 0 || is_group(address)) return;
  const uint64_t key = key_of(address, network);
  Entry* const set = set_of(key);
  Entry* place = set;
  uint32_t longest = 0;
  for (Entry* e = set; e < set + kWays; ++e) {
    const Content is = load(*e);
    if (is.key == key) {
      // Mostly nothing changes, and then nothing is written: other workers read the same line.
      if (is.port == port) {
        if (e->seen.load(std::memory_order_relaxed) != now) e->seen.store(now, std::memory_order_relaxed);
        return;
      }
      place = e;
      break;
    }
    const uint32_t silent = is.key == 0 ? UINT32_MAX : silence(*e, now);
    if (silent > longest) {
      longest = silent;
      place = e;
    }
  }
  place->seen.store(now, std::memory_order_relaxed);
  place->port.store(port, std::memory_order_relaxed);
  place->guarded.store(key ^ mixture(port), std::memory_order_relaxed);
}

std::optional<uint32_t> MacTable::find(uint64_t address, uint16_t network, uint32_t now) const {
  if (address == 0 || is_group(address)) return std::nullopt;
  const uint64_t key = key_of(address, network);
  const Entry* const set = set_of(key);
  for (const Entry* e = set; e < set + kWays; ++e) {
    const Content is = load(*e);
    if (is.key == key && silence(*e, now) < timeout()) return is.port;
  }
  return std::nullopt;
}

void MacTable::clear() {
  for (uint32_t i = 0; i < places(); ++i) entries_[i].guarded.store(0, std::memory_order_relaxed);
}

void MacTable::forget_port(uint32_t port) {
  for (uint32_t i = 0; i < places(); ++i) {
    Entry& entry = entries_[i];
    const Content is = load(entry);
    if (is.key == 0 || is.port != port) continue;
    // Only what was looked at: a worker may have written another address.
    uint64_t guarded = is.key ^ mixture(port);
    entry.guarded.compare_exchange_strong(guarded, 0, std::memory_order_relaxed);
  }
}

std::vector<MacTable::Known> MacTable::known(uint32_t now) const {
  std::vector<Known> all;
  for (uint32_t i = 0; i < places(); ++i) {
    const Content is = load(entries_[i]);
    const uint32_t silent = silence(entries_[i], now);
    // What two workers wrote at once is no address, and hardly ever in its place.
    if (is.key != 0 && silent < timeout() && set_of(is.key) == entries_.get() + i / kWays * kWays)
      all.push_back({is.key >> 16, static_cast<uint16_t>(is.key), is.port, silent});
  }
  std::sort(all.begin(), all.end(), [](const Known& a, const Known& b) {
    return a.network != b.network ? a.network < b.network : a.address < b.address;
  });
  return all;
}

}  // namespace headrace
