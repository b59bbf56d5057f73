#pragma once
/// \file
/// Flows and what becomes of their packets: a bounded table that all workers share.
///
/// Looking a packet up takes no lock: a table of hashes (tables/hash) has the numbers of records, which are used again
/// after a grace period (rcu.hh) when they have been taken out. Adding and removing flows takes the table's one lock, for
/// which flow goes when the table is full depends on all of them.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <new>
#include <string>
#include <vector>

#include "headrace/rcu.hh"
#include "tables/flow/flow_id.hh"
#include "tables/flow/sequence_shift.hh"
#include "tables/hash/hash_scan.hh"
#include "tables/hash/hash_table.hh"
#include "tables/memory/huge_array.hh"

namespace headrace {

class FlowRecord;

/// One direction of a flow: the packets that come in with `id`.
class FlowEntry {
 public:
  const FlowId& id() const { return id_; }
  /// True for the packets that come back.
  bool is_reply() const { return space_and_way_ & 1; }
  /// The output that they leave by.
  uint16_t output() const { return output_; }
  inline FlowRecord& flow() const;
  /// What the packets have when they leave.
  inline FlowId rewritten() const;

 private:
  friend class FlowRecord;
  friend class FlowTable;
  FlowId id_;
  uint16_t space_and_way_ = 0;  // the space in the upper bits, 1 for the way back
  uint16_t output_ = 0;
};

/// What a flow is made of; it does not change as long as the flow is in the table.
struct FlowInfo {
  uint16_t outputs[2] = {};  ///< of packets on the way there, and back
  uint16_t ip_change = 0;    ///< to add to the complement of a checksum over the addresses (RFC 1624), there
  uint16_t port_change = 0;  ///< the same with ports
  uint16_t input = 0;        ///< where the first packet arrived
  uint8_t protocol = 0;      ///< 0: any
  uint8_t reply_anno = 0;    ///< what an annotation of packets on the way back is set to
};

/// A flow and its way back, in two cache lines: what every packet reads, and what only changes touch.
class alignas(64) FlowRecord {
 public:
  const FlowEntry& entry(bool reply) const { return entries_[reply]; }
  /// See FlowInfo.
  uint16_t ip_change() const { return ip_change_; }
  uint16_t port_change() const { return port_change_; }
  uint16_t input() const { return input_; }
  uint8_t protocol() const { return protocol_; }
  uint8_t reply_anno() const { return reply_anno_; }
  uint32_t space() const { return entries_[0].space_and_way_ >> 1; }
  /// Bits that belong to the owner of the flow.
  std::atomic<uint8_t>& state() { return state_; }
  uint8_t state() const { return state_.load(std::memory_order_relaxed); }
  /// Which of its space's idle times counts.
  uint8_t life() const { return life_.load(std::memory_order_relaxed); }
  /// Time of the last packet, a moment late.
  int64_t last() const { return last_.load(std::memory_order_relaxed); }
  /// Null, or how TCP sequence numbers are changed; for as long as an RCU reader may use what it found.
  const SequenceShift* shift() const {
    return shifted_.load(std::memory_order_acquire) ? shift_.load(std::memory_order_acquire) : nullptr;
  }

 private:
  friend class FlowEntry;
  friend class FlowTable;
  static constexpr uint32_t kNowhere = UINT32_MAX;

  FlowEntry entries_[2];
  std::atomic<int64_t> last_{0};
  uint16_t ip_change_ = 0, port_change_ = 0;
  uint8_t reply_anno_ = 0;
  std::atomic<uint8_t> life_{0}, state_{0};
  std::atomic<bool> shifted_{false};

  uint32_t number_ = 0;        // among all records
  uint32_t place_ = kNowhere;  // in its heap; kNowhere: not in the table
  bool guaranteed_ = false;    // which heap it is in
  uint8_t protocol_ = 0;
  uint16_t input_ = 0;
  std::atomic<const SequenceShift*> shift_{nullptr};
  FlowRecord* next_free_ = nullptr;
};
static_assert(sizeof(FlowRecord) == 128);

inline FlowRecord& FlowEntry::flow() const {
  // The flow begins with its two entries.
  return *reinterpret_cast<FlowRecord*>(const_cast<FlowEntry*>(this - is_reply()));
}
inline FlowId FlowEntry::rewritten() const { return (is_reply() ? this[-1] : this[1]).id_.reversed(); }

/// Flows of one or more users. Each has spaces of its own, in which ids are looked up, but all flows share the room.
/// Times are clock::steady() in nanoseconds.
///
/// A flow is kept for a while after each packet, without fail (Lifetimes::guarantee). Then it is kept as long as there
/// is room, and removed in the order in which flows have been idle for their idle time. When all flows are guaranteed
/// there is no room for another.
class FlowTable {
 public:
  static constexpr int kLives = 3;
  /// Flows that have been removed are kept until no worker reads them: as many as some workers may remove in a round.
  static constexpr uint32_t kSpare = 4096;
  struct Lifetimes {
    int64_t guarantee = 0;
    int64_t idle[kLives] = {};
  };

  /// \param capacity flows, at least 1
  explicit FlowTable(uint32_t capacity);
  ~FlowTable();
  FlowTable(const FlowTable&) = delete;
  FlowTable& operator=(const FlowTable&) = delete;

  /// The space called `name`, which is added if there is none. While no worker uses the table.
  uint32_t add_space(const std::string& name, const Lifetimes& lifetimes, int inputs);
  /// While no worker uses the table. Flows that are too many go as others come, and with expire().
  void set_capacity(uint32_t capacity);
  uint32_t capacity() const { return capacity_.load(std::memory_order_relaxed); }
  /// Flows in the table.
  uint32_t size() const { return size_.load(std::memory_order_relaxed); }
  /// Flows that input `input` of a space has made.
  uint32_t count(uint32_t space, int input) const;
  /// Bytes that the table has taken for flows: never more than what capacity(), a tenth of it and kSpare flows need.
  size_t memory() const;

  // --- For every packet, by RCU readers, without a lock

  /// Of a flow that is its own way back: the entry of that way.
  FlowEntry* find(uint32_t space, const FlowId& id) const { return find(bucket(space, id), space, id); }

  /// The same in steps, so that a batch need not wait for memory packet by packet.
  struct Bucket {
    const HashView* hashes;  // null: none
    uint32_t hash;
    FlowEntry* likely;  // what prefetch_flow() found, or null
    explicit operator bool() const { return hashes != nullptr; }
  };
  Bucket bucket(uint32_t space, const FlowId& id) const {
    return {view_.load(std::memory_order_acquire), static_cast<uint32_t>(hash(space, id)), nullptr};
  }
  static void prefetch(const Bucket& bucket) { bucket.hashes->prefetch(bucket.hash); }
  void prefetch_flow(Bucket& bucket) const {
    // Most are in the first bucket, where no other entry has their hash.
    const uint32_t value = first_on_cpu(*bucket.hashes, bucket.hash);
    if (value == 0) return;
    // The entry may be the second of its flow, in the same cache line.
    bucket.likely = &entry_of(value);
    __builtin_prefetch(bucket.likely);
  }
  FlowEntry* find(const Bucket& bucket, uint32_t space, const FlowId& id) const {
    const auto is_it = [&](const FlowEntry& e) { return e.space_and_way_ >> 1 == space && e.id_ == id; };
    // It may have gone since, but readers may find it until they are quiescent.
    if (bucket.likely != nullptr && is_it(*bucket.likely)) return bucket.likely;
    FlowEntry* found = nullptr;
    each_on_cpu(*bucket.hashes, bucket.hash, [&](uint32_t value) {
      FlowEntry& e = entry_of(value);
      found = is_it(e) ? &e : nullptr;
      return found != nullptr;
    });
    return found;
  }

  /// A packet of the flow has come.
  static void touch(FlowRecord& flow, int64_t now) {
    // Written seldom: two workers may have the two directions of a flow.
    if (now - flow.last_.load(std::memory_order_relaxed) >= kGrain) flow.last_.store(now, std::memory_order_relaxed);
  }
  /// Another idle time counts. Takes the lock if that one is shorter.
  void set_life(FlowRecord& flow, uint8_t life) {
    if (flow.life_.load(std::memory_order_relaxed) != life) [[unlikely]]
      change_life(flow, life);
  }

  // --- Changes

  /// Holds the lock of the table.
  class Change {
   public:
    explicit Change(FlowTable& table) : table_(table), lock_(table.mutex_) {}

    FlowEntry* find(uint32_t space, const FlowId& id) const { return table_.find(space, id); }
    /// Adds a flow whose packets have `id` when they come and `rewritten` when they leave. A flow that has the same way
    /// back goes. Null when there is no room.
    FlowRecord* insert(uint32_t space, const FlowId& id, const FlowId& rewritten, const FlowInfo& info, int64_t now);
    void remove(FlowRecord& flow) { table_.remove(flow); }
    /// Changes the sequence numbers of a flow; see SequenceShift::add().
    bool shift_sequence(FlowRecord& flow, bool direction, uint32_t from, int32_t bytes);
    void settle_sequence(FlowRecord& flow, bool direction);

   private:
    FlowTable& table_;
    std::lock_guard<std::mutex> lock_;
  };

  /// Removes flows that have been idle for too long, and those beyond the capacity, in up to `steps` steps. Returns
  /// true when that was not enough.
  bool expire(int64_t now, int steps);
  /// Removes the flows for which `which` is true. Takes the lock for short times, in which it calls `which`.
  void remove_if(const std::function<bool(const FlowRecord&)>& which);
  /// Calls `visit` for the flows in the table. Takes the lock for short times, in which it calls `visit`.
  void for_each(const std::function<void(const FlowRecord&)>& visit);
  /// When `flow` may go to make room.
  int64_t expiry(const FlowRecord& flow) const { return flow.last() + lifetimes(flow).idle[flow.life()]; }

 private:
  /// How much later than it came a packet may be noted.
  static constexpr int64_t kGrain = 1'000'000;
  /// Heap operations that one new flow may cost: those that were noted late are put right a few at a time.
  static constexpr int kMostSteps = 256;
  /// Records that are taken out of use together.
  static constexpr uint32_t kGraceBatch = 256;
  static constexpr uint32_t kSlice = 4096;

  struct Space {
    std::string name;
    Lifetimes lifetimes;
    std::vector<uint32_t> counts;  // flows by input
  };
  /// Flows by the time when they have to be looked at, earliest first. That is never later than it should be, but may
  /// be earlier: packets do not change it.
  class Heap {
   public:
    bool empty() const { return items_.empty(); }
    FlowRecord* top() const { return items_.front().flow; }
    int64_t first_due() const { return items_.front().due; }
    int64_t due(const FlowRecord& flow) const { return items_[flow.place_].due; }
    void push(FlowRecord* flow, int64_t due);
    void remove(FlowRecord* flow);
    void set_due(FlowRecord* flow, int64_t due);

   private:
    struct Item {
      int64_t due;
      FlowRecord* flow;
    };
    void up(uint32_t place);
    void down(uint32_t place);
    void put(uint32_t place, Item item) {
      items_[place] = item;
      item.flow->place_ = place;
    }
    std::vector<Item> items_;
  };

  /// What the hash of an entry leads to.
  static uint32_t value_of(const FlowEntry& entry) {
    return entry.flow().number_ * 2 + static_cast<uint32_t>(entry.is_reply()) + 1;
  }
  FlowEntry& entry_of(uint32_t value) const {
    const uint64_t number = (value - 1) / 2;
    FlowRecord* const record = number < first_records_ ? first_ + number : record_beyond(number);
    return record->entries_[(value - 1) & 1];
  }
  uint64_t hash(uint32_t space, const FlowId& id) const {
    uint64_t h = (uint64_t{id.src.network_order()} << 32 | id.dst.network_order()) ^ seeds_[0];
    h = (h ^ h >> 32) * 0x9e3779b97f4a7c15;
    h ^= uint64_t{space} << 32 ^ uint64_t { id.sport } << 16 ^ id.dport ^ seeds_[1];
    h = (h ^ h >> 29) * 0xbf58476d1ce4e5b9;
    return h ^ h >> 32;
  }
  const Lifetimes& lifetimes(const FlowRecord& flow) const { return spaces_[flow.space()].lifetimes; }
  Heap& heap_of(const FlowRecord& flow) { return heaps_[flow.guaranteed_]; }

  /// In a slab that there is only after the capacity was raised.
  FlowRecord* record_beyond(uint64_t number) const;
  void build_hashes();
  /// \param view room for what is published
  void publish_view(std::unique_ptr<HashView> view);
  /// False if there is no memory.
  bool have_room_for_hashes();
  /// Both entries of a flow; of one that is its own way back, the entry of that way.
  void link(FlowRecord& flow);
  void unlink(FlowRecord& flow);
  uint32_t hash_of(const FlowEntry& entry) const {
    return static_cast<uint32_t>(hash(entry.space_and_way_ >> 1, entry.id_));
  }
  void begin_grace();
  uint64_t most_records() const { return uint64_t{capacity()} + capacity() / 10 + kSpare; }
  /// Maps memory for as many records; what is not used costs nothing.
  void reserve();
  FlowRecord* new_record();
  FlowRecord* allocate();
  void remove(FlowRecord& flow);
  void change_life(FlowRecord& flow, uint8_t life);
  void replace_shift(FlowRecord& flow, std::unique_ptr<const SequenceShift> shift);
  /// Where the flow belongs, and its due time, are as its last packet has it.
  bool update(FlowRecord& flow, int64_t now);
  /// Brings the heaps up to date as far as needed to know which flow goes next; returns that one, or null when all are
  /// guaranteed or that is not known after `steps` steps.
  FlowRecord* next_to_go(int64_t now, int steps);
  /// Calls `visit` for the flows in the table, taking the lock for a slice of the records at a time.
  template <typename Visit>
  void visit_slices(const Visit& visit);

  uint64_t seeds_[2];
  std::unique_ptr<HashTable> hashes_;
  std::unique_ptr<HashView> published_;
  std::atomic<const HashView*> view_{nullptr};
  std::vector<Space> spaces_;
  std::atomic<uint32_t> capacity_;
  std::atomic<uint32_t> size_{0};

  mutable std::mutex mutex_;
  Heap heaps_[2];  // best effort, guaranteed
  /// Memory of records, which become one as they are needed; they never move.
  struct alignas(FlowRecord) Room {
    std::byte bytes[sizeof(FlowRecord)];
  };
  struct Slab {
    HugeArray<Room> rooms;
    uint32_t used = 0;
    FlowRecord* record(uint64_t i) const {
      return std::launder(reinterpret_cast<FlowRecord*>(const_cast<Room*>(rooms.data() + i)));
    }
  };
  std::vector<Slab> slabs_;
  FlowRecord* first_ = nullptr;  // those of the first one
  uint64_t first_records_ = 0;
  uint64_t records_ = 0;  // in all slabs
  /// Flows out of use: free, waiting for the end of a grace period, and those removed since that began.
  FlowRecord* free_ = nullptr;
  FlowRecord* waiting_ = nullptr;
  FlowRecord* removed_ = nullptr;
  uint32_t removed_count_ = 0;
  rcu::Epoch grace_ = 0;
};

}  // namespace headrace
