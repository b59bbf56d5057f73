#include "elements/ethernet/neighbor_table.hh"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <limits>
#include <random>

#include "headrace/handlers.hh"
#include "headrace/router.hh"

namespace headrace {

namespace {

/// After ten requests without a reply, an address is requested at most every two seconds.
constexpr int64_t kSlowPollInterval = 2 * Timestamp::kSecond;
constexpr int kFastPolls = 10;
/// After so many questions to the known address unanswered, it may be that it belongs to nobody any more (RFC
/// 1122, 2.3.2.1; RFC 4861, MAX_UNICAST_SOLICIT).
constexpr int kUnicastPolls = 3;

void add(std::atomic<uint32_t>& count, int64_t n) {
  count.fetch_add(static_cast<uint32_t>(n), std::memory_order_relaxed);
}

uint64_t finish_hash(uint64_t hash) {
  hash = (hash ^ hash >> 32) * 0xd6e8feb86659fd93;
  return hash ^ hash >> 29;
}
uint64_t seeded_hash(IpAddress ip, uint64_t seed) {
  return finish_hash((ip.network_order() ^ seed) * 0x9e3779b97f4a7c15);
}
uint64_t seeded_hash(const Ip6Address& ip, uint64_t seed) {
  __extension__ using Wide = unsigned __int128;
  uint64_t words[2];
  ip.copy_to(words);
  seed *= 0x9e3779b97f4a7c15;
  const Wide product = Wide{words[0] ^ seed} * (words[1] ^ std::rotl(seed, 29));
  return finish_hash(static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64));
}

}  // namespace

template <typename Address>
NeighborTable<Address>::Question::Question(Address ip, const Packet& p)
    : ip(ip), timestamp(p.timestamp()), vlan_tci(p.anno_u16(anno_offset::kVlanTci)) {}

template <typename Address>
NeighborTable<Address>::~NeighborTable() {
  clear();
}

/// Holds the locks of all stripes, taken in one order.
template <typename Address>
class NeighborTable<Address>::AllLocks {
 public:
  explicit AllLocks(NeighborTable& table) : table_(table) {
    for (Stripe& s : *table_.stripes_) s.mutex.lock();
  }
  ~AllLocks() {
    for (Stripe& s : *table_.stripes_) s.mutex.unlock();
  }
  AllLocks(const AllLocks&) = delete;
  AllLocks& operator=(const AllLocks&) = delete;

 private:
  NeighborTable& table_;
};

/// Goes through the entries of all stripes by age.
template <typename Address>
class NeighborTable<Address>::OldestFirst {
 public:
  explicit OldestFirst(NeighborTable& table) : table_(table) {
    for (size_t i = 0; i < kStripes; ++i) at_[i] = (*table_.stripes_)[i].by_age.begin();
  }
  /// The next entry and its stripe; false when there is none.
  bool next(Stripe*& stripe, typename Entries::iterator& entry) {
    size_t best = kStripes;
    for (size_t i = 0; i < kStripes; ++i) {
      if (at_[i] == (*table_.stripes_)[i].by_age.end()) continue;
      if (best == kStripes || at_[i]->age() < at_[best]->age()) best = i;
    }
    if (best == kStripes) return false;
    stripe = &(*table_.stripes_)[best];
    entry = at_[best]++;  // the entry may be removed
    return true;
  }

 private:
  NeighborTable& table_;
  std::array<typename Entries::iterator, kStripes> at_;
};

template <typename Address>
void NeighborTable<Address>::read_limits(Args& args, Limits& limits) {
  args.read("CAPACITY", limits.packets)
      .read("ENTRY_CAPACITY", limits.entries)
      .read("ENTRY_PACKET_CAPACITY", limits.packets_per_entry)
      .read("CAPACITY_SLIM_FACTOR", limits.slim_factor)
      .read("TIMEOUT", limits.timeout);
}

template <typename Address>
Status NeighborTable<Address>::check_limits(const Limits& limits, Errors& errors) {
  if (limits.slim_factor == 0) return errors.error("CAPACITY_SLIM_FACTOR cannot be zero");
  return {};
}

template <typename Address>
int64_t NeighborTable<Address>::next_poll(const Entry& e) const {
  return e.polled_at + (e.polls >= kFastPolls ? kSlowPollInterval : limits_.ask_interval.ns);
}

template <typename Address>
void NeighborTable<Address>::mark_poll(Entry& e, int64_t now) {
  e.polled_at = now;
  if (e.polls < 255) ++e.polls;
}

template <typename Address>
uint64_t NeighborTable<Address>::Hash::operator()(Address ip) const {
  static const uint64_t seed = std::random_device()();
  return seeded_hash(ip, seed);
}

// --- What readers see

template <typename Address>
int64_t NeighborTable<Address>::good_until(int64_t live_at, int64_t next_poll, int64_t poll_after) const {
  int64_t until = std::numeric_limits<int64_t>::max();
  if (limits_.timeout.ns) until = live_at + limits_.timeout.ns + 1;
  if (poll_after) until = std::min(until, std::max(live_at + poll_after, next_poll));
  return until;
}

template <typename Address>
auto NeighborTable<Address>::find(Address ip, int64_t now, int64_t poll_after) -> Answer {
  const uint64_t hash = Hash()(ip);
  const Stripe& s = stripe_of(hash);
  const uint32_t version = s.version.load(std::memory_order_acquire);
  const Known* known = s.known.load(std::memory_order_acquire);
  if (version & 1 || !known) return {};
  for (size_t i = hash & known->mask, tries = 0; tries <= known->mask; i = (i + 1) & known->mask, ++tries) {
    const typename Known::Slot& slot = known->slots[i];
    // All with acquire, so that the version is read behind them.
    const Address found = slot.ip.load(std::memory_order_acquire);
    if (!found) return {};
    if (found != ip) continue;
    const uint64_t ether = slot.ether.load(std::memory_order_acquire);
    const int64_t live_at = slot.live_at.load(std::memory_order_acquire);
    const int64_t next_poll = slot.next_poll.load(std::memory_order_acquire);
    if (s.version.load(std::memory_order_relaxed) != version) return {};
    Answer answer;
    answer.good_until = good_until(live_at, next_poll, poll_after);
    if (now >= answer.good_until) return {};
    answer.known = true;
    answer.ether = EtherAddress::from_bytes(&ether);
    return answer;
  }
  return {};
}

template <typename Address>
void NeighborTable<Address>::grow(Stripe& s) {
  const Known* old = s.known.load(std::memory_order_relaxed);
  auto grown = std::make_unique<Known>(old ? 2 * old->slots.size() : 16);
  // Not yet visible to other threads.
  for (size_t at = 0; old && at < old->slots.size(); ++at) {
    const typename Known::Slot& from = old->slots[at];
    const Address ip = from.ip.load(std::memory_order_relaxed);
    if (!ip) continue;
    size_t i = Hash()(ip) & grown->mask;
    while (grown->slots[i].ip.load(std::memory_order_relaxed)) i = (i + 1) & grown->mask;
    typename Known::Slot& to = grown->slots[i];
    to.ip.store(ip, std::memory_order_relaxed);
    to.ether.store(from.ether.load(std::memory_order_relaxed), std::memory_order_relaxed);
    to.live_at.store(from.live_at.load(std::memory_order_relaxed), std::memory_order_relaxed);
    to.next_poll.store(from.next_poll.load(std::memory_order_relaxed), std::memory_order_relaxed);
    ++grown->used;
  }
  s.known.store(grown.get(), std::memory_order_release);
  s.made.push_back(std::move(grown));
}

template <typename Address>
void NeighborTable<Address>::publish(Stripe& s, const Entry& e) {
  if (!e.known) return unpublish(s, e.ip);
  if (!e.ip) return;
  Known* known = s.known.load(std::memory_order_relaxed);
  if (!known || 2 * (known->used + 1) > known->slots.size()) {
    grow(s);
    known = s.known.load(std::memory_order_relaxed);
  }
  size_t i = Hash()(e.ip) & known->mask;
  while (known->slots[i].ip.load(std::memory_order_relaxed) != e.ip &&
         known->slots[i].ip.load(std::memory_order_relaxed))
    i = (i + 1) & known->mask;
  typename Known::Slot& slot = known->slots[i];
  known->used += !slot.ip.load(std::memory_order_relaxed);
  uint64_t ether = 0;
  e.ether.copy_to(&ether);

  // All with release, so that the odd version is seen before them.
  const uint32_t version = s.version.load(std::memory_order_relaxed);
  s.version.store(version + 1, std::memory_order_relaxed);
  slot.ether.store(ether, std::memory_order_release);
  slot.live_at.store(e.live_at, std::memory_order_release);
  slot.next_poll.store(next_poll(e), std::memory_order_release);
  slot.ip.store(e.ip, std::memory_order_release);
  s.version.store(version + 2, std::memory_order_release);
  new_generation();
}

template <typename Address>
void NeighborTable<Address>::unpublish(Stripe& s, Address ip) {
  Known* known = s.known.load(std::memory_order_relaxed);
  if (!known || !ip) return;
  size_t i = Hash()(ip) & known->mask;
  while (known->slots[i].ip.load(std::memory_order_relaxed) != ip) {
    if (!known->slots[i].ip.load(std::memory_order_relaxed)) return;
    i = (i + 1) & known->mask;
  }
  const uint32_t version = s.version.load(std::memory_order_relaxed);
  s.version.store(version + 1, std::memory_order_relaxed);
  // What follows and would not be found across a hole moves into it (Knuth, The Art of Computer Programming, 6.4 R).
  for (size_t from = i;;) {
    from = (from + 1) & known->mask;
    typename Known::Slot& moved = known->slots[from];
    const Address moved_ip = moved.ip.load(std::memory_order_relaxed);
    if (!moved_ip) break;
    const size_t home = Hash()(moved_ip) & known->mask;
    if (((from - home) & known->mask) < ((from - i) & known->mask)) continue;
    typename Known::Slot& hole = known->slots[i];
    hole.ether.store(moved.ether.load(std::memory_order_relaxed), std::memory_order_release);
    hole.live_at.store(moved.live_at.load(std::memory_order_relaxed), std::memory_order_release);
    hole.next_poll.store(moved.next_poll.load(std::memory_order_relaxed), std::memory_order_release);
    hole.ip.store(moved_ip, std::memory_order_release);
    i = from;
  }
  known->slots[i].ip.store(Address(), std::memory_order_release);
  --known->used;
  s.version.store(version + 2, std::memory_order_release);
  new_generation();
}

// --- Entries

template <typename Address>
auto NeighborTable<Address>::lookup_locked(Address ip, int64_t now, int64_t poll_after) -> Answer {
  Stripe& s = stripe(ip);
  const std::lock_guard lock(s.mutex);
  const auto found = s.by_ip.find(ip);
  if (found == s.by_ip.end() || !known(*found->second, now)) return {};
  Entry& e = *found->second;
  Answer answer;
  answer.known = true;
  answer.ether = e.ether;
  if (poll_after && now >= e.live_at + poll_after && now >= next_poll(e)) {
    answer.poll = true;
    answer.unanswered = e.polls >= kUnicastPolls;
    mark_poll(e, now);
    publish(s, e);
  }
  answer.good_until = good_until(e.live_at, next_poll(e), poll_after);
  return answer;
}

template <typename Address>
bool NeighborTable<Address>::has_room_for_entry(const Stripe& s, Address ip) const {
  return !limits_.entries || count() < limits_.entries || s.by_ip.count(ip);
}

template <typename Address>
bool NeighborTable<Address>::has_room_for_packet() const {
  return !limits_.packets || waiting() < limits_.packets;
}

/// Moves an entry of a stripe to where its age belongs, which is near the end.
template <typename Address>
void NeighborTable<Address>::place(Stripe& s, typename Entries::iterator entry) {
  auto to = s.by_age.end();
  while (to != s.by_age.begin()) {
    const auto before = std::prev(to);
    if (before != entry && before->age() < entry->age()) break;
    to = before;
  }
  s.by_age.splice(to, s.by_age, entry);
}

template <typename Address>
auto NeighborTable<Address>::ensure(Stripe& s, Address ip, int64_t now, bool may_slim) -> Entry& {
  const auto found = s.by_ip.find(ip);
  if (found != s.by_ip.end()) return *found->second;
  add(entries_, 1);
  if (may_slim && limits_.entries && count() > limits_.entries) slim(now);
  const auto entry = s.by_age.emplace(s.by_age.end());
  entry->ip = ip;
  entry->live_at = now;
  entry->polled_at = now - Timestamp::kSecond;
  entry->order = next_order_.fetch_add(1, std::memory_order_relaxed);
  place(s, entry);
  s.by_ip.emplace(ip, entry);
  return *entry;
}

template <typename Address>
auto NeighborTable<Address>::append(Address ip, Packet* p, int64_t now) -> Append {
  Stripe& s = stripe(ip);
  {
    const std::lock_guard lock(s.mutex);
    if (has_room_for_entry(s, ip) && has_room_for_packet()) return append_locked(s, ip, p, now, false);
  }
  const AllLocks all(*this);
  return append_locked(s, ip, p, now, true);
}

template <typename Address>
auto NeighborTable<Address>::append_locked(Stripe& s, Address ip, Packet* p, int64_t now, bool may_slim) -> Append {
  Entry* e = &ensure(s, ip, now, may_slim);
  if (known(*e, now)) return Append::kKnown;
  if (limits_.timeout.ns && e->live_at < now - limits_.timeout.ns) {
    // Packets still need the address: the entry is not removed yet.
    e->live_at = now - limits_.timeout.ns;
    // Before those that reached this age earlier, as Click lists them.
    e->order = -next_order_.fetch_add(1, std::memory_order_relaxed);
    place(s, s.by_ip.find(ip)->second);
  }
  if (limits_.packets_per_entry && e->waiting.size() >= limits_.packets_per_entry) {
    drops_.fetch_add(1, std::memory_order_relaxed);
    return Append::kRefused;
  }
  add(packets_, 1);
  if (may_slim && limits_.packets && waiting() > limits_.packets) {
    slim(now);
    e = &ensure(s, ip, now, false);  // with limits that were just lowered the entry itself may have gone
  }
  if (e->waiting.empty()) e->waiting_since = now;
  e->waiting.push_back(p);
  if (now < next_poll(*e)) return Append::kWaits;
  mark_poll(*e, now);
  return Append::kAsk;
}

template <typename Address>
void NeighborTable<Address>::insert(Address ip, EtherAddress ether, int64_t now, std::vector<Packet*>* waiting) {
  Stripe& s = stripe(ip);
  {
    const std::lock_guard lock(s.mutex);
    if (has_room_for_entry(s, ip)) return insert_locked(s, ip, ether, now, waiting, false);
  }
  const AllLocks all(*this);
  insert_locked(s, ip, ether, now, waiting, true);
}

template <typename Address>
void NeighborTable<Address>::insert_locked(Stripe& s, Address ip, EtherAddress ether, int64_t now,
                                           std::vector<Packet*>* waiting, bool may_slim) {
  Entry& e = ensure(s, ip, now, may_slim);
  e.ether = ether;
  e.known = !ether.is_broadcast();
  settle(s, e, now, now, waiting);
}

/// Updates an entry after a reply; its address was last confirmed at `live_at`.
template <typename Address>
void NeighborTable<Address>::settle(Stripe& s, Entry& e, int64_t live_at, int64_t now, std::vector<Packet*>* waiting) {
  e.live_at = live_at;
  e.polled_at = now - Timestamp::kSecond;
  e.polls = 0;
  e.order = next_order_.fetch_add(1, std::memory_order_relaxed);
  place(s, s.by_ip.find(e.ip)->second);
  publish(s, e);
  if (waiting) {
    waiting->swap(e.waiting);
    e.waiting.clear();
    add(packets_, -static_cast<int64_t>(waiting->size()));
  }
}

template <typename Address>
void NeighborTable<Address>::confirm(const Claim& claim, int64_t now, int64_t poll_after,
                                     std::vector<Packet*>& waiting) {
  Stripe& s = stripe(claim.ip);
  const std::lock_guard lock(s.mutex);
  const auto found = s.by_ip.find(claim.ip);
  if (found == s.by_ip.end()) return;
  Entry& e = *found->second;
  const int64_t stale_at = now - poll_after;
  if (!known(e, now)) {
    if (!claim.ether) return;
    e.ether = *claim.ether;
    e.known = true;
    return settle(s, e, claim.solicited ? now : stale_at, now, &waiting);
  }
  const bool moved = claim.ether && *claim.ether != e.ether;
  if (moved && !claim.override) {
    // Another host may claim the address. Keep the entry, but poll it: the owner will answer.
    e.live_at = std::min(e.live_at, stale_at);
    place(s, found->second);
    return publish(s, e);
  }
  if (!moved && !claim.solicited) return;
  if (moved) e.ether = *claim.ether;
  settle(s, e, claim.solicited ? now : stale_at, now, &waiting);
}

template <typename Address>
void NeighborTable<Address>::drop_waiting(Entry& e, size_t n) {
  for (size_t i = 0; i < n; ++i) e.waiting[i]->kill();
  e.waiting.erase(e.waiting.begin(), e.waiting.begin() + static_cast<std::ptrdiff_t>(n));
  add(packets_, -static_cast<int64_t>(n));
  drops_.fetch_add(n, std::memory_order_relaxed);
}

template <typename Address>
void NeighborTable<Address>::remove(Stripe& s, typename Entries::iterator entry) {
  drop_waiting(*entry, entry->waiting.size());
  if (entry->known) unpublish(s, entry->ip);
  s.by_ip.erase(entry->ip);
  s.by_age.erase(entry);
  add(entries_, -1);
}

template <typename Address>
void NeighborTable<Address>::slim(int64_t now) {
  Stripe* s;
  typename Entries::iterator entry;
  for (OldestFirst oldest(*this); oldest.next(s, entry);) {
    if (!expired(*entry, now) && !(limits_.entries && count() > limits_.entries)) break;
    remove(*s, entry);
  }
  if (!limits_.packets || waiting() <= limits_.packets) return;
  // The packet for which room is made has been counted already, so one may have to remain.
  const uint32_t target = std::max(limits_.packets - limits_.packets / limits_.slim_factor, 1u);
  for (OldestFirst oldest(*this); waiting() > target && oldest.next(s, entry);)
    drop_waiting(*entry, std::min<size_t>(entry->waiting.size(), waiting() - target));
}

template <typename Address>
void NeighborTable<Address>::clear() {
  const AllLocks all(*this);
  for (Stripe& s : *stripes_)
    while (!s.by_age.empty()) remove(s, s.by_age.begin());
}

template <typename Address>
void NeighborTable<Address>::expire(int64_t now) {
  const AllLocks all(*this);
  slim(now);
}

template <typename Address>
void NeighborTable<Address>::tend(int64_t now, int64_t patience, std::vector<Question>& ask,
                                  std::vector<Packet*>& unreachable) {
  if (waiting() == 0) return;
  for (Stripe& s : *stripes_) {
    const std::lock_guard lock(s.mutex);
    for (Entry& e : s.by_age) {
      if (e.waiting.empty()) continue;
      if (now >= e.waiting_since + patience) {
        add(packets_, -static_cast<int64_t>(e.waiting.size()));
        unreachable.insert(unreachable.end(), e.waiting.begin(), e.waiting.end());
        e.waiting.clear();
      } else if (now >= e.polled_at + Timestamp::kSecond) {
        mark_poll(e, now);
        ask.emplace_back(e.ip, *e.waiting[0]);
      }
    }
  }
}

template <typename Address>
void NeighborTable<Address>::take(NeighborTable& old) {
  clear();
  stripes_.swap(old.stripes_);
  new_generation();
  old.new_generation();
  // The counts of what was dropped stay where they were.
  entries_.store(old.entries_.exchange(0, std::memory_order_relaxed), std::memory_order_relaxed);
  packets_.store(old.packets_.exchange(0, std::memory_order_relaxed), std::memory_order_relaxed);
  next_order_.store(old.next_order_.load(std::memory_order_relaxed), std::memory_order_relaxed);
}

template <typename Address>
std::string NeighborTable<Address>::unparse(int64_t now) {
  const AllLocks all(*this);
  std::string text;
  Stripe* s;
  typename Entries::iterator e;
  for (OldestFirst oldest(*this); oldest.next(s, e);) {
    const Timestamp age = Timestamp::from_ms((now - e->live_at) / 1000000);
    text += fmt::format("{} {} {} {}\n", e->ip, known(*e, now) ? 1 : 0, e->ether, age.unparse());
  }
  return text;
}

template <typename Address>
void NeighborTable<Address>::add_entry_handlers(Handlers& handlers, Element& element) {
  handlers.write("insert", [this, &element](const std::string& value, Errors& errors) {
    Address ip;
    EtherAddress ether;
    Args args = Args::from_words(value, &element.router().scope(&element), errors);
    if (!args.read_mp("IP", ip).read_mp("ETH", ether).complete()) return Status::failed();
    insert(ip, ether, clock::steady().ns);
    return Status();
  });
  handlers.write("delete", [this, &element](const std::string& value, Errors& errors) {
    Address ip;
    Args args = Args::from_words(value, &element.router().scope(&element), errors);
    if (!args.read_mp("IP", ip).complete()) return Status::failed();
    insert(ip, EtherAddress::broadcast(), clock::steady().ns);
    return Status();
  });
}

template class NeighborTable<IpAddress>;
template class NeighborTable<Ip6Address>;

}  // namespace headrace
