#include "tables/sa/security_policy.hh"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "headrace/rcu.hh"

namespace headrace {

namespace {

/// Both halves of the product: each bit of it depends on bits above and below.
uint64_t fold(uint64_t a, uint64_t b) {
  __extension__ using Wide = unsigned __int128;
  const Wide product = static_cast<Wide>(a) * b;
  return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
}
constexpr uint64_t kOdd[] = {0x9e3779b97f4a7c15, 0xbf58476d1ce4e5b9, 0x94d049bb133111eb, 0xd6e8feb86659fd93};

/// Source and destination of a packet or a policy of IPv4, as they lie in memory. Policies and not packets decide what
/// lies in a table, so nobody can make its chains long from outside.
struct Ends4 {
  uint64_t both = 0;

  static Ends4 of(const Ip6Address& source, const Ip6Address& destination) {
    uint32_t words[2];
    std::memcpy(&words[0], source.data() + 12, 4);
    std::memcpy(&words[1], destination.data() + 12, 4);
    return {words[0] | uint64_t{words[1]} << 32};
  }
  Ends4 operator&(const Ends4& mask) const { return {both & mask.both}; }
  bool operator==(const Ends4&) const = default;
  uint64_t hash(uint32_t protocol) const { return fold(both ^ kOdd[0], kOdd[1] ^ uint64_t{protocol} << 32); }
};

/// The same of IPv6.
struct Ends6 {
  uint64_t words[4] = {};

  static Ends6 of(const Ip6Address& source, const Ip6Address& destination) {
    Ends6 ends;
    std::memcpy(&ends.words[0], source.data(), 16);
    std::memcpy(&ends.words[2], destination.data(), 16);
    return ends;
  }
  Ends6 operator&(const Ends6& mask) const {
    return {{words[0] & mask.words[0], words[1] & mask.words[1], words[2] & mask.words[2], words[3] & mask.words[3]}};
  }
  bool operator==(const Ends6&) const = default;
  uint64_t hash(uint32_t protocol) const {
    const uint64_t all = fold(words[0] ^ kOdd[0], words[1] ^ kOdd[1]) ^ fold(words[2] ^ kOdd[2], words[3] ^ kOdd[3]);
    return fold(all ^ kOdd[1], protocol ^ kOdd[0]);
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

/// What a policy answers, and when it is asked.
struct Rule {
  Rule() = default;
  Rule(const Policy& policy, uint32_t place)
      : spi(policy.spi),
        reqid(policy.reqid),
        rank(place),
        action(policy.action),
        protocol(policy.protocol.value_or(0)),
        all_ports(policy.source_ports.all() && policy.destination_ports.all()) {}

  uint32_t spi = 0, reqid = 0;
  uint32_t rank = 0;  // place in the order of all policies
  PolicyAction action = PolicyAction::kDiscard;
  uint8_t protocol = 0;  // 0 where the tuple has none
  bool all_ports = false;
};

/// The ports of a policy.
struct Ports {
  PortRange source, destination;

  bool all() const { return source.all() && destination.all(); }
  bool hold(const PolicySelector& packet) const {
    return packet.has_ports ? source.contains(packet.source_port) && destination.contains(packet.destination_port)
                            : all();
  }
};

/// The policies of a family and direction that agree in prefixes and protocol. The one that is asked first is here, so
/// that one for all ports takes one cache line.
template <typename Ends>
struct alignas(sizeof(Ends) == 8 ? 32 : 64) Slot {
  Ends ends;
  Rule first;
  uint32_t begin = 0, count = 0;  // of TupleTable::rules, the first included

  bool used() const { return count > 0; }
};
static_assert(sizeof(Slot<Ends4>) == 32 && sizeof(Slot<Ends6>) == 64);

/// The policies of a tuple.
template <typename Ends>
struct TupleTable {
  explicit TupleTable(const Tuple& t)
      : tuple(t),
        mask(Ends::of(Ip6Address::prefix_mask(t.source_length), Ip6Address::prefix_mask(t.destination_length))) {}

  /// The slot of a key, or the free one in which it belongs.
  size_t find(const Ends& ends, uint8_t protocol) const {
    const size_t last = slots.size() - 1;
    size_t i = ends.hash(protocol) & last;
    while (slots[i].used() && !(slots[i].ends == ends && slots[i].first.protocol == protocol)) i = (i + 1) & last;
    return i;
  }
  /// The first policy that holds the packet, if it is asked earlier than `best`; else `best`.
  const Rule* earlier(const Ends& ends, const PolicySelector& packet, const Rule* best) const {
    const Slot<Ends>& slot = slots[find(ends & mask, tuple.with_protocol ? packet.protocol : 0)];
    if (!slot.used() || (best != nullptr && best->rank < slot.first.rank)) return best;
    if (slot.first.all_ports) return &slot.first;
    for (uint32_t i = slot.begin; i < slot.begin + slot.count; ++i) {
      if (best != nullptr && best->rank < rules[i].rank) return best;
      if (ports[i].hold(packet)) return &rules[i];
    }
    return best;
  }
  /// Makes slots and rules of the policies whose ranks there are.
  void fill(std::span<const Policy> policies) {
    slots.resize(std::bit_ceil(2 * ranks.size()));
    std::vector<size_t> slot_of;
    for (const uint32_t rank : ranks) {
      const Policy& policy = policies[rank];
      const Ends ends = Ends::of(policy.source.address, policy.destination.address) & mask;
      const uint8_t protocol = policy.protocol.value_or(0);
      Slot<Ends>& slot = slots[slot_of.emplace_back(find(ends, protocol))];
      if (!slot.used()) {
        slot.ends = ends;
        slot.first = Rule(policy, rank);
      }
      ++slot.count;
    }
    uint32_t begin = 0;
    for (Slot<Ends>& slot : slots) begin = (slot.begin = begin) + slot.count;
    rules.resize(ranks.size());
    ports.resize(ranks.size());
    std::vector<uint32_t> filled(slots.size());
    for (size_t i = 0; i < ranks.size(); ++i) {
      const uint32_t at = slots[slot_of[i]].begin + filled[slot_of[i]]++;
      rules[at] = Rule(policies[ranks[i]], ranks[i]);
      ports[at] = {policies[ranks[i]].source_ports, policies[ranks[i]].destination_ports};
    }
  }

  Tuple tuple;
  Ends mask;
  std::vector<uint32_t> ranks;    // of its policies, rising
  std::vector<Slot<Ends>> slots;  // a power of two, at most half of them used
  std::vector<Rule> rules;        // those of a slot side by side, by rank
  std::vector<Ports> ports;       // of `rules`
};

/// The policies of a family and direction.
template <typename Ends>
class TupleSpace {
 public:
  void add(const Policy& policy, uint32_t rank) {
    const Tuple tuple = Tuple::of(policy);
    auto at = std::find_if(tables_.begin(), tables_.end(), [&](const auto& table) { return table.tuple == tuple; });
    if (at == tables_.end()) at = tables_.emplace(at, tuple);
    at->ranks.push_back(rank);
  }
  void fill(std::span<const Policy> policies) {
    for (auto& table : tables_) table.fill(policies);
    std::sort(tables_.begin(), tables_.end(),
              [](const auto& a, const auto& b) { return a.ranks.front() < b.ranks.front(); });
    for (const auto& table : tables_) first_ranks_.push_back(table.ranks.front());
  }
  void lookup(const PolicySelector& packet, PolicyAnswer& answer) const {
    const Ends ends = Ends::of(packet.source, packet.destination);
    const Rule* best = nullptr;
    for (size_t i = 0; i < tables_.size(); ++i) {
      if (best != nullptr && best->rank < first_ranks_[i]) break;
      best = tables_[i].earlier(ends, packet, best);
    }
    answer.found = best != nullptr;
    answer.action = answer.found ? best->action : PolicyAction::kDiscard;
    answer.spi = answer.found ? best->spi : 0;
    answer.reqid = answer.found ? best->reqid : 0;
  }
  size_t tuples() const { return tables_.size(); }

 private:
  std::vector<TupleTable<Ends>> tables_;  // in the order in which they are asked
  std::vector<uint32_t> first_ranks_;     // the lowest rank in each
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

class PolicyGeneration {
 public:
  /// \param policies in the order in which they are asked
  explicit PolicyGeneration(std::span<const Policy> policies) {
    for (uint32_t rank = 0; rank < policies.size(); ++rank) {
      const Policy& policy = policies[rank];
      if (policy.v6)
        of_v6(policy.direction).add(policy, rank);
      else
        of_v4(policy.direction).add(policy, rank);
    }
    for (const IPsecDirection direction : {IPsecDirection::kIn, IPsecDirection::kOut}) {
      of_v4(direction).fill(policies);
      of_v6(direction).fill(policies);
    }
  }
  PolicyGeneration(const PolicyGeneration&) = delete;
  PolicyGeneration& operator=(const PolicyGeneration&) = delete;

  void lookup(IPsecDirection direction, const PolicySelector& packet, PolicyAnswer& answer) const {
    const auto at = static_cast<size_t>(direction);
    packet.v6 ? v6_[at].lookup(packet, answer) : v4_[at].lookup(packet, answer);
  }
  size_t tuples(IPsecDirection direction, bool v6) const {
    const auto at = static_cast<size_t>(direction);
    return v6 ? v6_[at].tuples() : v4_[at].tuples();
  }

 private:
  TupleSpace<Ends4>& of_v4(IPsecDirection direction) { return v4_[static_cast<size_t>(direction)]; }
  TupleSpace<Ends6>& of_v6(IPsecDirection direction) { return v6_[static_cast<size_t>(direction)]; }

  TupleSpace<Ends4> v4_[2];  // by direction
  TupleSpace<Ends6> v6_[2];
};

void PolicyView::lookup(IPsecDirection direction, const PolicySelector& packet, PolicyAnswer& answer) const {
  generation_->lookup(direction, packet, answer);
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
  return generation_->tuples(direction, v6);
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
