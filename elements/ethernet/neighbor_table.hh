#pragma once
/// \file
/// Which Ethernet address an IPv4 or IPv6 address has, and packets that wait for the answer.

#include <array>
#include <atomic>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <vector>

#include "headrace/args.hh"
#include "headrace/headers.hh"
#include "headrace/packet.hh"

namespace headrace {

class Handlers;

/// An IP address that can be read without a lock while another thread changes it. A reader may see parts of two
/// addresses, so it must check afterwards that nothing has changed.
template <typename Address>
class SharedAddress {
 public:
  Address load(std::memory_order order) const {
    Word words[kWords];
    for (size_t i = 0; i < kWords; ++i) words[i] = words_[i].load(order);
    return Address::from_bytes(words);
  }
  void store(Address address, std::memory_order order) {
    Word words[kWords];
    address.copy_to(words);
    for (size_t i = 0; i < kWords; ++i) words_[i].store(words[i], order);
  }

 private:
  using Word = std::conditional_t<sizeof(Address) == 4, uint32_t, uint64_t>;
  static constexpr size_t kWords = sizeof(Address) / sizeof(Word);
  std::atomic<Word> words_[kWords] = {};
};

/// A table of neighbors (ARP or IPv6 Neighbor Discovery) that all workers share. Entries are spread over stripes with a
/// lock each; what concerns all entries (limits, listing) takes all locks in order. A fresh address is found without a
/// lock, and those who look up often keep what they found for as long as `generation` stays the same. Times are
/// clock::steady() in nanoseconds.
template <typename Address>
class NeighborTable {
 public:
  struct Limits {
    uint32_t packets = 2048;                         ///< waiting packets; 0: any number
    uint32_t entries = 65536;                        ///< 0: any number
    uint32_t packets_per_entry = 0;                  ///< 0: any number
    uint32_t slim_factor = 2;                        ///< beyond `packets`, one of every `slim_factor` is dropped
    Interval timeout = Interval::from_sec(300);      ///< after which an entry is not known any more; 0: never
    Interval ask_interval = Interval::from_ms(100);  ///< time between two requests for an address; at most 1 s
  };

  struct Answer {
    bool known = false;
    bool poll = false;        ///< the caller shall ask whether the address is still right,
    bool unanswered = false;  ///< and that address did not answer such questions
    EtherAddress ether;
    int64_t good_until = 0;  ///< as long as the generation stays the same; look it up again from then on
  };

  /// What a request for `ip` has of the packet that it is sent for.
  struct Question {
    Question(Address ip, const Packet& p);
    Address ip;
    Timestamp timestamp;
    uint16_t vlan_tci;
  };

  enum class Append {
    kKnown,    ///< the address has become known: look it up again. The packet was not taken
    kRefused,  ///< too many packets wait. The packet was not taken
    kWaits,
    kAsk  ///< the packet waits, and the caller shall ask for the address
  };

  NeighborTable() = default;
  ~NeighborTable();
  NeighborTable(const NeighborTable&) = delete;
  NeighborTable& operator=(const NeighborTable&) = delete;

  /// While no worker runs.
  void set_limits(const Limits& limits) {
    limits_ = limits;
    new_generation();
  }
  const Limits& limits() const { return limits_; }
  /// Reads the keywords that set limits, those not given stay.
  static void read_limits(Args& args, Limits& limits);
  static Status check_limits(const Limits& limits, Errors& errors);

  /// \param poll_after an entry older than this is asked for again before it is forgotten; 0: it is not
  Answer lookup(Address ip, int64_t now, int64_t poll_after) {
    const Answer fresh = find(ip, now, poll_after);
    return fresh.known ? fresh : lookup_locked(ip, now, poll_after);
  }
  /// Lets a packet wait for the address of `ip`.
  Append append(Address ip, Packet* p, int64_t now);
  /// Makes an address known, or with the broadcast address unknown. The packets that waited for it, oldest first, go to
  /// `waiting`, or stay if that is null.
  void insert(Address ip, EtherAddress ether, int64_t now, std::vector<Packet*>* waiting = nullptr);
  /// What a neighbor advertisement says (RFC 4861, 4.4).
  struct Claim {
    Address ip;
    std::optional<EtherAddress> ether;
    bool solicited = false;  ///< it answers a solicitation
    bool override = false;   ///< it may replace a different Ethernet address
  };
  /// Processes an advertisement by the rules of RFC 4861, 7.2.5. It is ignored if the table has no entry for the
  /// address. Packets that were waiting for the address are moved to `waiting`, oldest first; there are none unless the
  /// claim has an Ethernet address.
  /// \param poll_after as in lookup(); an entry that becomes stale is polled when it is next used
  void confirm(const Claim& claim, int64_t now, int64_t poll_after, std::vector<Packet*>& waiting);
  /// Forgets everything; waiting packets are dropped.
  void clear();
  /// Forgets what is too old.
  void expire(int64_t now);
  /// Goes through the addresses that packets wait for. Those that were last asked for a second ago or longer are to be
  /// asked for again: they go to `ask`, as the first packet that waits. Of those that have been waited for for
  /// `patience` all packets go to `unreachable`.
  void tend(int64_t now, int64_t patience, std::vector<Question>& ask, std::vector<Packet*>& unreachable);
  /// Takes over what `old` holds; no worker runs.
  void take(NeighborTable& old);

  /// Changes whenever an answer given before may have become wrong; never 0. Read it before looking up.
  uint32_t generation() const { return generation_.load(std::memory_order_acquire); }

  uint32_t count() const { return entries_.load(std::memory_order_relaxed); }
  uint32_t waiting() const { return packets_.load(std::memory_order_relaxed); }
  /// Packets that waited in vain, or were refused.
  uint64_t drops() const { return drops_.load(std::memory_order_relaxed); }
  /// One line an entry, oldest first: address, 1 if known, Ethernet address, seconds since it was last confirmed.
  std::string unparse(int64_t now);
  /// The handlers `insert`, `delete` of a table; their words are read in the scope of `element`.
  void add_entry_handlers(Handlers& handlers, Element& element);

 private:
  struct Entry {
    Address ip;
    EtherAddress ether = EtherAddress::broadcast();
    bool known = false;
    uint8_t polls = 0;  // since the last answer
    int64_t live_at = 0;
    int64_t polled_at = 0;
    int64_t waiting_since = 0;  // the first of the packets
    int64_t order = 0;          // of entries that became live in the same millisecond
    std::vector<Packet*> waiting;

    /// Entries are kept in this order, the oldest first.
    std::pair<int64_t, int64_t> age() const { return {live_at / 1000000, order}; }
  };
  using Entries = std::list<Entry>;
  /// Seeded, so that an attacker cannot choose addresses that collide.
  struct Hash {
    uint64_t operator()(Address ip) const;
  };

  /// The known addresses of a stripe as readers see them, with linear probing; at most half of the slots are taken. An
  /// address of 0 marks a free slot.
  struct Known {
    struct Slot {
      SharedAddress<Address> ip;
      std::atomic<uint64_t> ether{0};
      std::atomic<int64_t> live_at{0}, next_poll{0};
    };
    explicit Known(size_t size) : mask(size - 1), slots(size) {}
    const size_t mask;
    size_t used = 0;
    std::vector<Slot> slots;
  };
  struct alignas(64) Stripe {
    /// Odd while `known` changes; a reader that saw it change does not trust what it read.
    std::atomic<uint32_t> version{0};
    std::atomic<Known*> known{nullptr};
    std::mutex mutex;
    Entries by_age;  // oldest first
    std::unordered_map<Address, typename Entries::iterator, Hash> by_ip;
    /// Also those that were outgrown: a reader may still look at them, and all together are no larger than the last.
    std::vector<std::unique_ptr<Known>> made;
  };
  static constexpr size_t kStripes = 64;
  class AllLocks;
  class OldestFirst;

  Stripe& stripe_of(uint64_t hash) { return (*stripes_)[hash >> 58]; }
  Stripe& stripe(Address ip) { return stripe_of(Hash()(ip)); }
  bool expired(const Entry& e, int64_t now) const { return limits_.timeout.ns && e.live_at + limits_.timeout.ns < now; }
  bool known(const Entry& e, int64_t now) const { return e.known && !expired(e, now); }
  /// An answer that needs no lock, or none.
  Answer find(Address ip, int64_t now, int64_t poll_after);
  Answer lookup_locked(Address ip, int64_t now, int64_t poll_after);
  /// Shows readers what an entry says now. Its stripe is locked.
  void publish(Stripe& s, const Entry& e);
  void unpublish(Stripe& s, Address ip);
  void new_generation() {
    if (generation_.fetch_add(1, std::memory_order_release) + 1 == 0)
      generation_.fetch_add(1, std::memory_order_release);
  }
  int64_t good_until(int64_t live_at, int64_t next_poll, int64_t poll_after) const;
  static void grow(Stripe& s);
  int64_t next_poll(const Entry& e) const;
  static void mark_poll(Entry& e, int64_t now);

  /// The stripe of `ip` must be locked, and with `slim` all of them.
  Entry& ensure(Stripe& s, Address ip, int64_t now, bool slim);
  void place(Stripe& s, typename Entries::iterator entry);
  bool has_room_for_entry(const Stripe& s, Address ip) const;
  bool has_room_for_packet() const;
  Append append_locked(Stripe& s, Address ip, Packet* p, int64_t now, bool slim);
  void insert_locked(Stripe& s, Address ip, EtherAddress ether, int64_t now, std::vector<Packet*>* waiting, bool slim);
  void settle(Stripe& s, Entry& e, int64_t live_at, int64_t now, std::vector<Packet*>* waiting);
  /// Enforces limits; all stripes are locked.
  void slim(int64_t now);
  void remove(Stripe& s, typename Entries::iterator entry);
  void drop_waiting(Entry& e, size_t n);

  Limits limits_;
  std::unique_ptr<std::array<Stripe, kStripes>> stripes_ = std::make_unique<std::array<Stripe, kStripes>>();
  std::atomic<uint32_t> generation_{1};
  std::atomic<uint32_t> entries_{0}, packets_{0};
  std::atomic<uint64_t> drops_{0};
  std::atomic<int64_t> next_order_{1};
};

extern template class NeighborTable<IpAddress>;
extern template class NeighborTable<Ip6Address>;
using ArpTable = NeighborTable<IpAddress>;

}  // namespace headrace
