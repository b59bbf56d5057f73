#include "elements/ethernet/EtherSwitch.hh"

#include <algorithm>
#include <array>
#include <bit>

namespace headrace {

namespace {

constexpr uint32_t kEthernetHeader = 14;
constexpr uint32_t kMostAddresses = 1 << 24;
constexpr uint64_t kGroupBit = uint64_t{1} << 40;

/// Six bytes in network order.
uint64_t load_address(const uint8_t* at) {
  uint64_t value = 0;
  for (int i = 0; i < 6; ++i) value = value << 8 | at[i];
  return value;
}

EtherAddress to_address(uint64_t value) {
  std::array<uint8_t, 6> bytes;
  for (int i = 5; i >= 0; --i, value >>= 8) bytes[static_cast<size_t>(i)] = static_cast<uint8_t>(value);
  return EtherAddress(bytes);
}

uint32_t now_in_seconds() { return static_cast<uint32_t>(clock::steady().ns / 1'000'000'000); }

}  // namespace

Status EtherSwitch::configure(Args& args) {
  count_reasons({"back to where it came from", "no Ethernet header", "no buffer for a copy"});
  uint32_t capacity = 16384, timeout = 300;
  Interval interval = Interval::from_sec(timeout);
  args.read("TIMEOUT", interval).read("CAPACITY", capacity, Between{1, kMostAddresses});
  if (!args.complete()) return Status::failed();
  timeout_ = static_cast<uint32_t>(std::min<int64_t>(interval.ns / 1'000'000'000, UINT32_MAX));
  places_ = std::bit_ceil((capacity + kWays - 1) / kWays);
  entries_ = std::make_unique<Entry[]>(size_t{places_} * kWays);
  return {};
}

EtherSwitch::Entry* EtherSwitch::place(uint64_t address) const {
  // Multiplicative hashing; addresses of one maker differ in their low bits only.
  const uint64_t hash = address * 0x9e3779b97f4a7c15u;
  return entries_.get() + size_t{static_cast<uint32_t>(hash >> 32) & (places_ - 1)} * kWays;
}

bool EtherSwitch::alive(const Entry& entry, uint32_t now) const {
  return now - entry.seen.load(std::memory_order_relaxed) < timeout_.load(std::memory_order_relaxed);
}

void EtherSwitch::learn(uint64_t address, int port, uint32_t now) {
  Entry* const set = place(address);
  const uint64_t association = address << 16 | static_cast<uint64_t>(port);
  Entry* oldest = set;
  for (Entry* e = set; e < set + kWays; ++e) {
    const uint64_t is = e->association.load(std::memory_order_relaxed);
    if (is >> 16 == address) {
      // Mostly nothing changes, and then nothing is written: other workers read the same line.
      if (is != association) e->association.store(association, std::memory_order_relaxed);
      if (e->seen.load(std::memory_order_relaxed) != now) e->seen.store(now, std::memory_order_relaxed);
      return;
    }
    const auto age = [now](const Entry& entry) {
      return entry.association.load(std::memory_order_relaxed) == 0 ? UINT32_MAX
                                                                    : now - entry.seen.load(std::memory_order_relaxed);
    };
    if (age(*e) > age(*oldest)) oldest = e;
  }
  oldest->seen.store(now, std::memory_order_relaxed);
  oldest->association.store(association, std::memory_order_relaxed);
}

int EtherSwitch::find(uint64_t address, uint32_t now) const {
  const Entry* const set = place(address);
  for (const Entry* e = set; e < set + kWays; ++e) {
    const uint64_t is = e->association.load(std::memory_order_relaxed);
    if (is >> 16 == address && alive(*e, now)) return static_cast<int>(is & 0xffff);
  }
  return -1;
}

void EtherSwitch::flood(int from, Batch& batch) {
  // The last output gets the frames themselves.
  const int last = from == noutputs() - 1 ? from - 1 : noutputs() - 1;
  for (int out = 0; out < last; ++out) {
    if (out == from) continue;
    Batch copies;
    for (const Packet* p : batch) {
      if (Packet* copy = p->clone())
        copies.push_back(copy);
      else
        count_drops(1, 2);
    }
    if (!copies.empty()) output(out).push(copies);
  }
  output(last).push(batch);
}

void EtherSwitch::push(int port, Batch& batch) {
  const uint32_t now = now_in_seconds();
  const bool learns = timeout_.load(std::memory_order_relaxed) != 0;
  // Frames in a row that go the same way leave together. -1: to all.
  Batch run;
  int run_to = -1;
  const auto leave = [&] {
    if (run.empty()) return;
    if (run_to < 0)
      flood(port, run);
    else
      output(run_to).push(run);
    run.clear();
  };
  for (Packet* p : batch) {
    if (p->length() < kEthernetHeader) {
      drop(p, 1);
      continue;
    }
    int to = -1;
    if (learns) {
      const uint64_t source = load_address(p->data() + 6);
      const uint64_t destination = load_address(p->data());
      if (source != 0 && !(source & kGroupBit)) learn(source, port, now);
      if (!(destination & kGroupBit)) to = find(destination, now);
    }
    if (to == port) {
      drop(p, 0);
      continue;
    }
    if (to != run_to) {
      leave();
      run_to = to;
    }
    run.push_back(p);
  }
  leave();
}

std::vector<EtherSwitch::Known> EtherSwitch::known() const {
  std::vector<Known> all;
  const uint32_t now = now_in_seconds();
  for (size_t i = 0; i < size_t{places_} * kWays; ++i) {
    const uint64_t is = entries_[i].association.load(std::memory_order_relaxed);
    if (is != 0 && alive(entries_[i], now)) all.push_back({is >> 16, static_cast<int>(is & 0xffff)});
  }
  std::sort(all.begin(), all.end(), [](const Known& a, const Known& b) { return a.address < b.address; });
  return all;
}

void EtherSwitch::take_state(Element& old, Errors&) {
  auto& from = static_cast<EtherSwitch&>(old);
  if (from.noutputs() > noutputs() || from.places_ != places_) return;
  entries_.swap(from.entries_);
}

void EtherSwitch::add_handlers(Handlers& handlers) {
  handlers.read("table", [this] {
    std::string text;
    for (const Known& k : known()) text += fmt::format("{} {}\n", to_address(k.address).unparse(), k.port);
    return text;
  });
  handlers.read("count", [this] { return std::to_string(known().size()); });
  handlers.read("timeout", [this] { return std::to_string(timeout_.load()); });
  handlers.write("timeout", [this](const std::string& text, Errors& errors) {
    Interval interval;
    if (!parse_argument(text, interval, ArgContext(nullptr, nullptr)))
      return errors.error("expected timeout (integer)");
    timeout_ = static_cast<uint32_t>(std::min<int64_t>(interval.ns / 1'000'000'000, UINT32_MAX));
    return Status();
  });
  handlers.button("flush", [this] {
    for (size_t i = 0; i < size_t{places_} * kWays; ++i) entries_[i].association = 0;
  });
}

}  // namespace headrace
