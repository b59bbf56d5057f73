#pragma once
/// \file
/// Which Ethernet address an IP address has, and packets that wait for the answer.

#include <array>
#include <atomic>
#include <list>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "headrace/args.hh"
#include "headrace/headers.hh"
#include "headrace/packet.hh"

namespace headrace {

class Handlers;

/// An ARP table that all workers share. Entries are spread over stripes with a lock each; what concerns all entries
/// (limits, listing) takes all locks in order. Those who look up often keep the answers, for as long as `generation`
/// stays the same and the answer says. Times are clock::steady() in nanoseconds.
class ArpTable {
 public:
  struct Limits {
    uint32_t packets = 2048;                     ///< waiting packets; 0: any number
    uint32_t entries = 0;                        ///< 0: any number
    uint32_t packets_per_entry = 0;              ///< 0: any number
    uint32_t slim_factor = 2;                    ///< beyond `packets`, one in so many of them goes
    Interval timeout = Interval::from_sec(300);  ///< after which an entry is not known any more; 0: never
  };

  struct Answer {
    bool known = false;
    bool poll = false;  ///< the caller shall ask whether the address is still right
    EtherAddress ether;
    int64_t good_until = 0;  ///< ask again from then on
  };

  enum class Append {
    kKnown,    ///< the address has become known: look it up again. The packet was not taken
    kRefused,  ///< too many packets wait. The packet was not taken
    kWaits,
    kAsk  ///< the packet waits, and the caller shall ask for the address
  };

  ArpTable() = default;
  ~ArpTable() { clear(); }
  ArpTable(const ArpTable&) = delete;
  ArpTable& operator=(const ArpTable&) = delete;

  /// While no worker runs.
  void set_limits(const Limits& limits) { limits_ = limits; }
  const Limits& limits() const { return limits_; }
  /// Reads the keywords that set limits, those not given stay.
  static void read_limits(Args& args, Limits& limits);
  static Status check_limits(const Limits& limits, Errors& errors);

  /// \param poll_after an entry older than this is asked for again before it is forgotten; 0: it is not
  Answer lookup(IpAddress ip, int64_t now, int64_t poll_after);
  /// Lets a packet wait for the address of `ip`.
  Append append(IpAddress ip, Packet* p, int64_t now);
  /// Makes an address known, or with the broadcast address unknown. The packets that waited for it, oldest first, go to
  /// `waiting`, or stay if that is null.
  void insert(IpAddress ip, EtherAddress ether, int64_t now, std::vector<Packet*>* waiting = nullptr);
  /// Forgets everything; waiting packets are dropped.
  void clear();
  /// Forgets what is too old.
  void expire(int64_t now);

  /// Changes whenever an answer given before may have become wrong.
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
    IpAddress ip;
    EtherAddress ether = EtherAddress::broadcast();
    bool known = false;
    uint8_t polls = 0;  // since the last answer
    int64_t live_at = 0;
    int64_t polled_at = 0;
    uint64_t order = 0;  // of entries that became live at the same time
    std::vector<Packet*> waiting;
  };
  using Entries = std::list<Entry>;
  struct alignas(64) Stripe {
    std::mutex mutex;
    Entries by_age;  // oldest first
    std::unordered_map<IpAddress, Entries::iterator> by_ip;
  };
  static constexpr size_t kStripes = 64;
  class AllLocks;
  class OldestFirst;

  Stripe& stripe(IpAddress ip) { return stripes_[(std::hash<IpAddress>()(ip) >> 8) % kStripes]; }
  bool expired(const Entry& e, int64_t now) const { return limits_.timeout.ns && e.live_at + limits_.timeout.ns < now; }
  bool known(const Entry& e, int64_t now) const { return e.known && !expired(e, now); }
  static int64_t next_poll(const Entry& e);
  static void mark_poll(Entry& e, int64_t now);

  /// The stripe of `ip` must be locked, and with `slim` all of them.
  Entry& ensure(Stripe& s, IpAddress ip, int64_t now, bool slim);
  void place(Stripe& s, Entries::iterator entry);
  bool has_room_for_entry(const Stripe& s, IpAddress ip) const;
  bool has_room_for_packet() const;
  Append append_locked(Stripe& s, IpAddress ip, Packet* p, int64_t now, bool slim);
  void insert_locked(Stripe& s, IpAddress ip, EtherAddress ether, int64_t now, std::vector<Packet*>* waiting,
                     bool slim);
  /// Enforces limits; all stripes are locked.
  void slim(int64_t now);
  void remove(Stripe& s, Entries::iterator entry);
  void drop_waiting(Entry& e, size_t n);

  Limits limits_;
  std::array<Stripe, kStripes> stripes_;
  std::atomic<uint32_t> generation_{1};
  std::atomic<uint32_t> entries_{0}, packets_{0};
  std::atomic<uint64_t> drops_{0};
  std::atomic<uint64_t> next_order_{1};
};

}  // namespace headrace
