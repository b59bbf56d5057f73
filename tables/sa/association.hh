#pragma once
/// \file
/// The security association database of IPsec (RFC 4301, section 4.4.2).

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "headrace/addresses.hh"
#include "headrace/worker.hh"
#include "tables/sa/association_config.hh"
#include "tables/sa/association_state.hh"

namespace headrace {

/// What is counted for each association. All but the first two are packets that were dropped.
enum class AssociationEvent : uint8_t {
  kPackets,           // protected or accepted
  kBytes,             // of plaintext in these
  kReplayed,          // a number that was received before
  kTooOld,            // a number that the window has left behind
  kBadICV,            // not authentic
  kBadPadding,        // authentic, but the padding is not that of RFC 4303, section 2.4
  kMalformed,         // too short, or not of whole blocks
  kPolicyViolation,   // the inner packet is none that the association may carry
  kWrongSource,       // the outer source is not the tunnel's
  kSequenceOverflow,  // all numbers have been used
  kNoIV,              // the source of IVs has reached its bound
  kExpired,           // the lifetime is over
};
inline constexpr int kAssociationEvents = 12;
/// "bad ICV"
const char* to_string(AssociationEvent event);

/// Base of what elements keep for an association, such as its keys in the form of a processor. It goes when no reader can
/// use the association any more, and must then wipe its keys.
class AssociationExtra {
 public:
  virtual ~AssociationExtra() = default;
  /// From here on what packets say must not lead to the association any more. Readers that have found it use it until their
  /// next quiescent state; then it goes.
  virtual void withdraw() {}
};

/// An entry of the database. Readers count, and use the state as its owner; they change nothing else. What each packet
/// needs comes first.
class alignas(64) Association {
 public:
  Association(const AssociationConfig& c, uint32_t i, uint64_t s, std::shared_ptr<AssociationState> st)
      : state(std::move(st)), serial(s), index(i), config(c) {}

  void count(AssociationEvent event, uint64_t n = 1) { counters.add(static_cast<int>(event), n); }
  uint64_t sum(AssociationEvent event) const { return counters.sum(static_cast<int>(event)); }

  std::unique_ptr<AssociationExtra> extra;
  const std::shared_ptr<AssociationState> state;
  /// No other association of the process has or had it. Who holds an index beyond a quiescent state compares this.
  const uint64_t serial;
  const uint32_t index;
  ThreadCounters counters{kAssociationEvents};
  const AssociationConfig config;
};

/// The arrays that readers look into; see AssociationTable.
struct AssociationGeneration {
  /// \param capacity associations, a power of two
  explicit AssociationGeneration(uint32_t capacity);

  /// A hash table of key << 32 | index + 1. Several associations may have one key.
  using Slots = std::unique_ptr<std::atomic<uint64_t>[]>;
  static constexpr uint64_t kFree = 0;
  static constexpr uint64_t kRemoved = 0xffffffff;  // key 0 is never in a table

  /// By what readers look for an association.
  static uint32_t key_of(const AssociationConfig& config) {
    return config.direction == IPsecDirection::kOut && config.reqid != 0 ? config.reqid : config.spi;
  }

  uint32_t slot_count() const { return 4 * capacity; }
  uint32_t slot_of(uint32_t key) const {
    return static_cast<uint32_t>((key * uint64_t{0x9e3779b97f4a7c15}) >> 32) & (slot_count() - 1);
  }

  const uint32_t capacity;
  std::unique_ptr<std::atomic<Association*>[]> entries;
  Slots slots[2];             // by direction
  uint32_t used[2] = {0, 0};  // slots that are not kFree; for the writer
};

/// What readers ask; valid until their next quiescent state (headrace/rcu.hh).
class AssociationView {
 public:
  explicit AssociationView(const AssociationGeneration* generation) : generation_(generation) {}

  /// The association of an ESP packet that came in: the one with this SPI and destination, else the one with this SPI
  /// that does not ask for a destination, which is one in transport mode (RFC 4301, section 4.1). Null if there is
  /// none. \param destination IPv4-mapped for IPv4
  Association* inbound(uint32_t spi, const Ip6Address& destination) const {
    Association* any = nullptr;
    Association* exact = nullptr;
    each(IPsecDirection::kIn, spi, [&](Association* entry) {
      if (entry->config.mode == IPsecMode::kTransport) {
        any = entry;
      } else if (entry->config.destination == destination) {
        exact = entry;
      }
    });
    return exact != nullptr ? exact : any;
  }
  /// The association that a policy names by its SPI, or the newest of those that it names by a reqid, if that is not 0:
  /// of all of them if the SPI is 0, else of those with the SPI. Null if there is none.
  Association* outbound(uint32_t spi, uint32_t reqid = 0) const {
    Association* found = nullptr;
    each(IPsecDirection::kOut, reqid != 0 ? reqid : spi, [&](Association* entry) {
      const bool named = entry->config.reqid == reqid && (spi == 0 || entry->config.spi == spi);
      if (named && (found == nullptr || entry->serial > found->serial)) found = entry;
    });
    return found;
  }
  /// The association with an index; null if there is none.
  Association* at(uint32_t index) const {
    return index < generation_->capacity ? generation_->entries[index].load(std::memory_order_acquire) : nullptr;
  }

 private:
  template <typename Visit>
  void each(IPsecDirection direction, uint32_t key, Visit&& visit) const {
    const AssociationGeneration& g = *generation_;
    const std::atomic<uint64_t>* const slots = g.slots[static_cast<size_t>(direction)].get();
    for (uint32_t i = g.slot_of(key);; i = (i + 1) & (g.slot_count() - 1)) {
      const uint64_t slot = slots[i].load(std::memory_order_acquire);
      if (slot == AssociationGeneration::kFree) return;
      if (slot >> 32 != key || slot == AssociationGeneration::kRemoved) continue;
      if (Association* const entry = at(static_cast<uint32_t>(slot) - 1)) visit(entry);
    }
  }

  const AssociationGeneration* generation_;
};

/// Associations by number, and by what packets and policies say of them.
///
/// Any thread may add and remove associations while others look up in views; a lookup that overlaps a change gives the
/// old or the new answer. An association that was removed can be had by its index, by packets that are under way, until
/// every rcu::Reader that is online has passed a quiescent state. It goes, and its index becomes free, when they have done
/// so once more. Free indexes are reused in the order in which they became free.
class AssociationTable {
 public:
  static constexpr uint32_t kNone = 0xffffffff;
  /// Makes an association's extra before readers see the association. Called with the table locked.
  using MakeExtra = std::function<std::unique_ptr<AssociationExtra>(const Association&)>;

  explicit AssociationTable(MakeExtra make_extra = {}, AssociationStates& states = AssociationStates::process());
  ~AssociationTable();
  AssociationTable(const AssociationTable&) = delete;
  AssociationTable& operator=(const AssociationTable&) = delete;

  /// Adds an association that passes check_association(), and returns its index; or kNone, with the reason, if there is
  /// one with its SPI already: of its direction when it is outbound, of its destination, too, when it is inbound. Those
  /// outbound with a reqid may have any SPI, because their peers choose it.
  uint32_t add(const AssociationConfig& config, std::string& reason);
  /// False if there is none.
  bool remove(uint32_t index);
  /// The index of the association with this direction, SPI and destination (`::` in transport mode, ignored outbound), or
  /// kNone. Those outbound with a reqid are not found.
  uint32_t find(IPsecDirection direction, uint32_t spi, const Ip6Address& destination = {}) const;

  /// Calls visit(const Association&) for each, by index. `visit` must not change the table.
  void for_each(const std::function<void(const Association&)>& visit) const;
  size_t size() const;

  AssociationView view() const;

 private:
  struct Core;
  /// Shared with what waits for readers, which may outlive the table.
  const std::shared_ptr<Core> core_;
  const MakeExtra make_extra_;
  AssociationStates& states_;
};

}  // namespace headrace
