#include "tables/sa/association.hh"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <iterator>
#include <mutex>
#include <utility>

#include "headrace/rcu.hh"

namespace headrace {

namespace {

constexpr uint32_t kSmallestCapacity = 64;

std::atomic<uint64_t> next_serial{1};

}  // namespace

const char* to_string(AssociationEvent event) {
  constexpr const char* kNames[] = {"packets",     "bytes",     "replayed",         "too old",      "bad ICV",
                                    "bad padding", "malformed", "policy violation", "wrong source", "sequence overflow",
                                    "no IV",       "expired"};
  static_assert(std::size(kNames) == kAssociationEvents);
  return kNames[static_cast<size_t>(event)];
}

AssociationGeneration::AssociationGeneration(uint32_t c)
    : capacity(c), entries(std::make_unique<std::atomic<Association*>[]>(c)) {
  for (Slots& s : slots) s = std::make_unique<std::atomic<uint64_t>[]>(slot_count());
}

/// The table without what makes associations.
struct AssociationTable::Core {
  Core() : generation(std::make_unique<AssociationGeneration>(kSmallestCapacity)), current(generation.get()) {}
  ~Core() {
    for (uint32_t i = 0; i < made; ++i) delete generation->entries[i].load(std::memory_order_relaxed);
  }
  Core(const Core&) = delete;
  Core& operator=(const Core&) = delete;

  /// Calls visit(slot) for each slot of the direction that leads to an association.
  template <typename Visit>
  static void each_slot(const AssociationGeneration& g, size_t direction, Visit&& visit) {
    for (uint32_t i = 0; i < g.slot_count(); ++i) {
      const uint64_t slot = g.slots[direction][i].load(std::memory_order_relaxed);
      if (slot != AssociationGeneration::kFree && slot != AssociationGeneration::kRemoved) visit(slot);
    }
  }

  static void insert(AssociationGeneration& g, size_t direction, uint64_t slot) {
    uint32_t i = g.slot_of(static_cast<uint32_t>(slot >> 32));
    while (g.slots[direction][i].load(std::memory_order_relaxed) != AssociationGeneration::kFree)
      i = (i + 1) & (g.slot_count() - 1);
    g.slots[direction][i].store(slot, std::memory_order_release);
    ++g.used[direction];
  }

  /// Makes sure that one more association fits: that there is an index, and that chains of slots have an end.
  static void make_room(const std::shared_ptr<Core>& core) {
    AssociationGeneration& old = *core->generation;
    const bool full = core->free.empty() && core->made == old.capacity;
    if (!full && std::max(old.used[0], old.used[1]) < old.slot_count() / 2) return;
    auto next = std::make_unique<AssociationGeneration>(full ? 2 * old.capacity : old.capacity);
    for (uint32_t i = 0; i < core->made; ++i)
      next->entries[i].store(old.entries[i].load(std::memory_order_relaxed), std::memory_order_relaxed);
    for (const size_t direction : {0, 1})
      each_slot(old, direction, [&](uint64_t slot) { insert(*next, direction, slot); });
    core->generation.swap(next);
    core->current.store(core->generation.get(), std::memory_order_release);
    if (rcu::elapsed(rcu::start_grace())) return;
    rcu::retire([old_one = std::shared_ptr<AssociationGeneration>(std::move(next))] {});
  }

  /// Ends an association that no reader can find by what packets say. With the table locked.
  static void bury(const std::shared_ptr<Core>& core, uint32_t index) {
    when_readers_have_passed(core, [index](const std::shared_ptr<Core>& c) {
      // Packets that waited somewhere may still name it.
      std::shared_ptr<Association> entry(c->generation->entries[index].exchange(nullptr, std::memory_order_acq_rel));
      if (entry->extra) entry->extra->withdraw();
      when_readers_have_passed(c, [index, last = std::move(entry)](const std::shared_ptr<Core>& now) mutable {
        last.reset();
        now->free.push_back(index);
      });
    });
  }
  /// Calls then(core) with the table locked: at once if there are no readers.
  template <typename Then>
  static void when_readers_have_passed(const std::shared_ptr<Core>& core, Then&& then) {
    if (rcu::elapsed(rcu::start_grace())) return then(core);
    rcu::retire([core, then = std::forward<Then>(then)]() mutable {
      const std::lock_guard lock(core->mutex);
      then(core);
    });
  }

  uint32_t take_index() {
    if (free.empty()) return made++;
    const uint32_t index = free.front();
    free.pop_front();
    return index;
  }

  /// The place of the first association with this direction and key that `is` accepts, or nothing.
  template <typename Is>
  std::atomic<uint64_t>* find_if(IPsecDirection direction, uint32_t key, Is&& is) const {
    const AssociationGeneration& g = *generation;
    for (uint32_t i = g.slot_of(key);; i = (i + 1) & (g.slot_count() - 1)) {
      std::atomic<uint64_t>& place = g.slots[static_cast<size_t>(direction)][i];
      const uint64_t slot = place.load(std::memory_order_relaxed);
      if (slot == AssociationGeneration::kFree) return nullptr;
      if (slot >> 32 == key && slot != AssociationGeneration::kRemoved && is(*entry_of(slot))) return &place;
    }
  }
  std::atomic<uint64_t>* find(IPsecDirection direction, uint32_t spi, const Ip6Address& destination) const {
    return find_if(direction, spi, [&](const Association& a) {
      return direction == IPsecDirection::kOut ? a.config.reqid == 0 : a.config.destination == destination;
    });
  }
  Association* entry_of(uint64_t slot) const {
    return generation->entries[static_cast<uint32_t>(slot) - 1].load(std::memory_order_relaxed);
  }

  mutable std::mutex mutex;
  std::unique_ptr<AssociationGeneration> generation;
  std::atomic<const AssociationGeneration*> current;
  uint32_t made = 0;  // indexes below it have been used
  size_t count = 0;
  std::deque<uint32_t> free;
};

AssociationTable::AssociationTable(MakeExtra make_extra, AssociationStates& states)
    : core_(std::make_shared<Core>()), make_extra_(std::move(make_extra)), states_(states) {}

AssociationTable::~AssociationTable() {
  if (!rcu::elapsed(rcu::start_grace())) rcu::retire([core = core_] {});
}

uint32_t AssociationTable::add(const AssociationConfig& config, std::string& reason) {
  const std::lock_guard lock(core_->mutex);
  const bool any_spi = config.direction == IPsecDirection::kOut && config.reqid != 0;
  if (!any_spi && core_->find(config.direction, config.spi, config.destination) != nullptr) {
    reason =
        config.direction == IPsecDirection::kOut || config.mode == IPsecMode::kTransport
            ? fmt::format("there is an association {} with SPI {} already", to_string(config.direction), config.spi)
            : fmt::format("there is an association in with SPI {} and destination {} already", config.spi,
                          unparse_either(config.destination));
    return kNone;
  }
  Core::make_room(core_);
  auto entry = std::make_unique<Association>(config, core_->take_index(),
                                             next_serial.fetch_add(1, std::memory_order_relaxed), states_.get(config));
  if (make_extra_) entry->extra = make_extra_(*entry);
  const uint32_t index = entry->index;
  core_->generation->entries[index].store(entry.release(), std::memory_order_release);
  Core::insert(*core_->generation, static_cast<size_t>(config.direction),
               uint64_t{AssociationGeneration::key_of(config)} << 32 | (index + 1));
  ++core_->count;
  return index;
}

bool AssociationTable::remove(uint32_t index) {
  const std::lock_guard lock(core_->mutex);
  if (index >= core_->made) return false;
  const Association* const entry = core_->generation->entries[index].load(std::memory_order_relaxed);
  if (entry == nullptr) return false;
  // One that was removed and still has readers is found no longer.
  std::atomic<uint64_t>* const place =
      core_->find_if(entry->config.direction, AssociationGeneration::key_of(entry->config),
                     [entry](const Association& other) { return &other == entry; });
  if (place == nullptr) return false;
  place->store(AssociationGeneration::kRemoved, std::memory_order_release);
  --core_->count;
  Core::bury(core_, index);
  return true;
}

uint32_t AssociationTable::find(IPsecDirection direction, uint32_t spi, const Ip6Address& destination) const {
  const std::lock_guard lock(core_->mutex);
  const std::atomic<uint64_t>* const place = core_->find(direction, spi, destination);
  return place == nullptr ? kNone : static_cast<uint32_t>(place->load(std::memory_order_relaxed)) - 1;
}

void AssociationTable::for_each(const std::function<void(const Association&)>& visit) const {
  const std::lock_guard lock(core_->mutex);
  std::vector<uint32_t> indexes;
  for (const size_t direction : {0, 1}) {
    Core::each_slot(*core_->generation, direction,
                    [&](uint64_t slot) { indexes.push_back(static_cast<uint32_t>(slot) - 1); });
  }
  std::sort(indexes.begin(), indexes.end());
  for (const uint32_t index : indexes) visit(*core_->generation->entries[index].load(std::memory_order_relaxed));
}

size_t AssociationTable::size() const {
  const std::lock_guard lock(core_->mutex);
  return core_->count;
}

AssociationView AssociationTable::view() const {
  return AssociationView(core_->current.load(std::memory_order_acquire));
}

}  // namespace headrace
