#include "tables/sa/security_policy.hh"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <utility>

#include "headrace/rcu.hh"

namespace headrace {

namespace {

struct Words {
  uint64_t first = 0, last = 0;  // the address's bytes, as they lie in memory

  static Words of(const Ip6Address& address) {
    Words words;
    std::memcpy(&words, address.data(), sizeof words);
    return words;
  }
  Words operator&(const Words& mask) const { return {first & mask.first, last & mask.last}; }
  bool operator==(const Words&) const = default;
};

/// What a hash table of a tuple finds.
struct PolicyKey {
  Words source, destination;
  uint32_t protocol = 0;  // 0 where the tuple has none

  bool operator==(const PolicyKey&) const = default;
  /// Policies and not packets decide what lies in a table, so nobody can make its chains long from outside.
  uint64_t hash() const {
    constexpr uint64_t k[] = {0x9e3779b97f4a7c15, 0xbf58476d1ce4e5b9, 0x94d049bb133111eb, 0xd6e8feb86659fd93};
    const uint64_t ends =
        fold(source.first ^ k[0], source.last ^ k[1]) ^ fold(destination.first ^ k[2], destination.last ^ k[3]);
    return fold(ends ^ k[1], protocol ^ k[0]);
  }

 private:
  /// Both halves of the product: each bit of it depends on bits above and below.
  static uint64_t fold(uint64_t a, uint64_t b) {
    __extension__ using Wide = unsigned __int128;
    const Wide product = static_cast<Wide>(a) * b;
    return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
  }
};

struct Tuple {
  int source_length = 0, destination_length = 0;
  bool with_protocol = false;

  bool operator==(const Tuple&) const = default;
  static Tuple of(const Policy& policy) {
    return {policy.source.length, policy.destination.length, policy.protocol.has_value()};
  }
};

/// A policy without what its key says.
struct Rule {
  Rule() = default;
  Rule(const Policy& policy, uint32_t place)
      : source_ports(policy.source_ports),
        destination_ports(policy.destination_ports),
        any_ports(source_ports.all() && destination_ports.all()),
        action(policy.action),
        spi(policy.spi),
        reqid(policy.reqid),
        rank(place) {}

  PortRange source_ports, destination_ports;
  bool any_ports = false;
  PolicyAction action = PolicyAction::kDiscard;
  uint32_t spi = 0, reqid = 0;
  uint32_t rank = 0;  // place in the order of all policies

  bool holds(const PolicySelector& packet) const {
    return any_ports || (packet.has_ports && source_ports.contains(packet.source_port) &&
                         destination_ports.contains(packet.destination_port));
  }
};

struct Slot {
  PolicyKey key;
  uint32_t begin = 0, count = 0;  // rules by rank; 0: the slot is free
};

/// The policies of a tuple.
struct TupleTable {
  explicit TupleTable(const Tuple& t)
      : tuple(t),
        source_mask(Words::of(Ip6Address::prefix_mask(t.source_length))),
        destination_mask(Words::of(Ip6Address::prefix_mask(t.destination_length))) {}

  PolicyKey key_of(const Words& source, const Words& destination, uint32_t protocol) const {
    return {source & source_mask, destination & destination_mask, tuple.with_protocol ? protocol : 0};
  }
  /// The slot of a key, or the free one in which it belongs.
  size_t find(const PolicyKey& key) const {
    const size_t mask = slots.size() - 1;
    size_t i = key.hash() & mask;
    while (slots[i].count != 0 && slots[i].key != key) i = (i + 1) & mask;
    return i;
  }
  /// The first policy in a slot that holds the packet, if it is asked earlier than `best`; else `best`.
  const Rule* earlier(const PolicySelector& packet, const Slot& slot, const Rule* best) const {
    for (uint32_t i = slot.begin; i < slot.begin + slot.count; ++i) {
      if (best != nullptr && best->rank < rules[i].rank) return best;
      if (rules[i].holds(packet)) return &rules[i];
    }
    return best;
  }
  /// Makes slots and rules of the policies whose ranks there are.
  void fill(std::span<const Policy> policies) {
    slots.resize(std::bit_ceil(2 * ranks.size()));
    std::vector<size_t> slot_of;
    for (const uint32_t rank : ranks) {
      const Policy& policy = policies[rank];
      const PolicyKey key =
          key_of(Words::of(policy.source.address), Words::of(policy.destination.address), policy.protocol.value_or(0));
      slot_of.push_back(find(key));
      slots[slot_of.back()].key = key;
      ++slots[slot_of.back()].count;
    }
    uint32_t begin = 0;
    for (Slot& slot : slots) begin = (slot.begin = begin) + slot.count;
    rules.resize(ranks.size());
    std::vector<uint32_t> used(slots.size());
    for (size_t i = 0; i < ranks.size(); ++i)
      rules[slots[slot_of[i]].begin + used[slot_of[i]]++] = Rule(policies[ranks[i]], ranks[i]);
  }

  Tuple tuple;
  Words source_mask, destination_mask;
  std::vector<uint32_t> ranks;  // of its policies, rising
  std::vector<Slot> slots;      // a power of two, at most half of them used
  std::vector<Rule> rules;      // those of a slot side by side, by rank
};

bool asked_before(const Policy& a, const Policy& b) { return a.priority > b.priority; }

std::string prefix_text(const Ip6Prefix& prefix, bool v6) {
  return v6 ? prefix.unparse() : fmt::format("{}/{}", prefix.address.embedded_v4(), prefix.length - 96);
}

}  // namespace

Ip6Prefix policy_prefix(const IpPrefix& prefix) {
  return {Ip6Address::v4_mapped(prefix.address), 96 + prefix.length()};
}

std::string Policy::unparse() const {
  std::string text = fmt::format("sp {} {} esp ", v6 ? "ipv6" : "ipv4", to_string(direction));
  if (action == PolicyAction::kProtect)
    text += reqid == 0 ? fmt::format("protect {}", spi)
            : spi == 0 ? fmt::format("protect reqid {}", reqid)
                       : fmt::format("protect reqid {} spi {}", reqid, spi);
  if (action == PolicyAction::kBypass) text += "bypass";
  if (action == PolicyAction::kDiscard) text += "discard";
  text += fmt::format(" pri {} src {} dst {}", priority, prefix_text(source, v6), prefix_text(destination, v6));
  if (protocol) text += fmt::format(" proto {}:255", *protocol);
  return text + fmt::format(" sport {}:{} dport {}:{}", source_ports.first, source_ports.last, destination_ports.first,
                            destination_ports.last);
}

PolicySelector PolicySelector::of_v4(const void* addresses, uint8_t protocol) {
  PolicySelector packet;
  packet.protocol = protocol;
  packet.source = Ip6Address::v4_mapped(IpAddress::from_bytes(addresses));
  packet.destination = Ip6Address::v4_mapped(IpAddress::from_bytes(static_cast<const char*>(addresses) + 4));
  return packet;
}

PolicySelector PolicySelector::of_v6(const void* addresses, uint8_t protocol) {
  PolicySelector packet;
  packet.v6 = true;
  packet.protocol = protocol;
  packet.source = Ip6Address::from_bytes(addresses);
  packet.destination = Ip6Address::from_bytes(static_cast<const char*>(addresses) + 16);
  return packet;
}

class PolicyGeneration {
 public:
  /// \param policies in the order in which they are asked
  explicit PolicyGeneration(std::span<const Policy> policies) {
    for (uint32_t rank = 0; rank < policies.size(); ++rank) table_of(policies[rank]).ranks.push_back(rank);
    for (auto& tables : classes_) {
      for (TupleTable& table : tables) table.fill(policies);
      std::sort(tables.begin(), tables.end(),
                [](const TupleTable& a, const TupleTable& b) { return a.ranks.front() < b.ranks.front(); });
    }
  }
  PolicyGeneration(const PolicyGeneration&) = delete;
  PolicyGeneration& operator=(const PolicyGeneration&) = delete;

  PolicyAnswer lookup(IPsecDirection direction, const PolicySelector& packet) const {
    const Words source = Words::of(packet.source);
    const Words destination = Words::of(packet.destination);
    const Rule* best = nullptr;
    for (const TupleTable& table : tables_of(direction, packet.v6)) {
      if (best != nullptr && best->rank < table.ranks.front()) break;
      const size_t slot = table.find(table.key_of(source, destination, packet.protocol));
      best = table.earlier(packet, table.slots[slot], best);
    }
    if (best == nullptr) return {};
    return {best->action, true, best->spi, best->reqid};
  }

  const std::vector<TupleTable>& tables_of(IPsecDirection direction, bool v6) const {
    return classes_[class_of(direction, v6)];
  }

 private:
  static size_t class_of(IPsecDirection direction, bool v6) { return 2 * static_cast<size_t>(direction) + v6; }

  TupleTable& table_of(const Policy& policy) {
    std::vector<TupleTable>& tables = classes_[class_of(policy.direction, policy.v6)];
    const Tuple tuple = Tuple::of(policy);
    for (TupleTable& table : tables) {
      if (table.tuple == tuple) return table;
    }
    return tables.emplace_back(tuple);
  }

  std::array<std::vector<TupleTable>, 4> classes_;
};

PolicyAnswer PolicyView::lookup(IPsecDirection direction, const PolicySelector& packet) const {
  return generation_->lookup(direction, packet);
}

PolicyTable::PolicyTable()
    : generation_(std::make_unique<PolicyGeneration>(std::span<const Policy>())), current_(generation_.get()) {}

PolicyTable::~PolicyTable() { discard(std::move(generation_)); }

std::string PolicyTable::check(const Policy& policy) {
  for (const Ip6Prefix* prefix : {&policy.source, &policy.destination}) {
    if (prefix->length < (policy.v6 ? 0 : 96) || prefix->length > 128 ||
        (!policy.v6 && !prefix->address.is_v4_mapped()))
      return fmt::format("{} is no prefix of {}", prefix->unparse(), policy.v6 ? "IPv6" : "IPv4");
  }
  for (const PortRange* range : {&policy.source_ports, &policy.destination_ports}) {
    if (range->first > range->last) return fmt::format("ports {}:{} end before they begin", range->first, range->last);
  }
  if (policy.action == PolicyAction::kProtect && policy.spi == 0 && policy.reqid == 0) return "SPI 0 is reserved";
  return {};
}

void PolicyTable::build(std::span<const Policy> policies) {
  const std::lock_guard lock(mutex_);
  policies_.assign(policies.begin(), policies.end());
  std::stable_sort(policies_.begin(), policies_.end(), asked_before);
  publish();
}

void PolicyTable::change(std::span<const Policy> gone, std::span<const Policy> fresh) {
  const std::lock_guard lock(mutex_);
  for (const Policy& policy : gone)
    if (const auto found = std::find(policies_.begin(), policies_.end(), policy); found != policies_.end())
      policies_.erase(found);
  for (const Policy& policy : fresh)
    policies_.insert(std::upper_bound(policies_.begin(), policies_.end(), policy, asked_before), policy);
  publish();
}

bool PolicyTable::remove(const Policy& policy) {
  const std::lock_guard lock(mutex_);
  const auto found = std::find(policies_.begin(), policies_.end(), policy);
  if (found == policies_.end()) return false;
  policies_.erase(found);
  publish();
  return true;
}

std::vector<Policy> PolicyTable::policies() const {
  const std::lock_guard lock(mutex_);
  return policies_;
}

size_t PolicyTable::size() const {
  const std::lock_guard lock(mutex_);
  return policies_.size();
}

size_t PolicyTable::tuples(IPsecDirection direction, bool v6) const {
  const std::lock_guard lock(mutex_);
  return generation_->tables_of(direction, v6).size();
}

void PolicyTable::publish() {
  auto generation = std::make_unique<const PolicyGeneration>(policies_);
  generation_.swap(generation);
  current_.store(generation_.get(), std::memory_order_release);
  discard(std::move(generation));
}

/// Frees a generation when no reader can be in it.
void PolicyTable::discard(std::unique_ptr<const PolicyGeneration> generation) {
  if (rcu::elapsed(rcu::start_grace())) return;
  rcu::retire([generation = std::shared_ptr<const PolicyGeneration>(std::move(generation))] {});
}

}  // namespace headrace
