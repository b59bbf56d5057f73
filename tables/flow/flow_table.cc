#include "tables/flow/flow_table.hh"

#include <fmt/core.h>

#include <algorithm>
#include <bit>
#include <random>

// Of a leak checker, where there is one: it does not look for pointers in memory that is mapped.
extern "C" {
__attribute__((weak)) void __lsan_register_root_region(const void* begin, size_t size);
__attribute__((weak)) void __lsan_unregister_root_region(const void* begin, size_t size);
}

namespace headrace {

namespace {

/// More entries than these make the table of hashes grow when they come.
constexpr uint64_t kMostFromTheStart = uint64_t{1} << 24;

size_t entries_for(uint64_t capacity) { return std::min(capacity * 2 + 2, kMostFromTheStart); }

}  // namespace

std::string FlowId::unparse() const {
  return fmt::format("({}, {}, {}, {})", src.unparse(), sport, dst.unparse(), dport);
}

// --- The heap

void FlowTable::Heap::push(FlowRecord* flow, int64_t due) {
  items_.push_back({due, flow});
  up(static_cast<uint32_t>(items_.size() - 1));
}

void FlowTable::Heap::remove(FlowRecord* flow) {
  const uint32_t place = flow->place_;
  const Item last = items_.back();
  items_.pop_back();
  flow->place_ = FlowRecord::kNowhere;
  if (last.flow == flow) return;
  put(place, last);
  up(place);
  down(last.flow->place_);
}

void FlowTable::Heap::set_due(FlowRecord* flow, int64_t due) {
  items_[flow->place_].due = due;
  up(flow->place_);
  down(flow->place_);
}

void FlowTable::Heap::up(uint32_t place) {
  const Item item = items_[place];
  while (place > 0) {
    const uint32_t parent = (place - 1) / 2;
    if (items_[parent].due <= item.due) break;
    put(place, items_[parent]);
    place = parent;
  }
  put(place, item);
}

void FlowTable::Heap::down(uint32_t place) {
  const Item item = items_[place];
  const auto size = static_cast<uint32_t>(items_.size());
  for (uint32_t child; (child = place * 2 + 1) < size; place = child) {
    if (child + 1 < size && items_[child + 1].due < items_[child].due) ++child;
    if (item.due <= items_[child].due) break;
    put(place, items_[child]);
  }
  put(place, item);
}

// --- The table

FlowTable::FlowTable(uint32_t capacity) : capacity_(std::max(capacity, 1u)) {
  std::random_device random;
  for (uint64_t& seed : seeds_) seed = uint64_t{random()} << 32 | random();
  build_hashes();
  reserve();
}

FlowTable::~FlowTable() {
  for (Slab& slab : slabs_) {
    for (uint32_t i = 0; i < slab.used; ++i) delete slab.record(i)->shift_.load(std::memory_order_relaxed);
    if (__lsan_unregister_root_region) __lsan_unregister_root_region(slab.rooms.data(), slab.rooms.bytes());
  }
}

uint32_t FlowTable::add_space(const std::string& name, const Lifetimes& lifetimes, int inputs) {
  const std::lock_guard lock(mutex_);
  auto space = std::find_if(spaces_.begin(), spaces_.end(), [&](const Space& s) { return s.name == name; });
  if (space == spaces_.end()) space = spaces_.insert(space, Space{name, {}, {}});
  space->lifetimes = lifetimes;
  space->counts.resize(std::max(space->counts.size(), static_cast<size_t>(inputs)));
  return static_cast<uint32_t>(space - spaces_.begin());
}

void FlowTable::set_capacity(uint32_t capacity) {
  const std::lock_guard lock(mutex_);
  capacity_.store(std::max(capacity, 1u), std::memory_order_relaxed);
  build_hashes();
  reserve();
}

void FlowTable::build_hashes() {
  auto view = std::make_unique<HashView>();
  const rcu::Retirements until_published;
  hashes_ = std::make_unique<HashTable>(std::max<size_t>(entries_for(capacity()), size_t{size()} * 2));
  for (Slab& slab : slabs_)
    for (uint32_t i = 0; i < slab.used; ++i) {
      FlowRecord* flow = slab.record(i);
      if (flow->place_ == FlowRecord::kNowhere) continue;
      link(*flow);
    }
  publish_view(std::move(view));
}

void FlowTable::publish_view(std::unique_ptr<HashView> view) {
  *view = hashes_->view();
  view_.store(view.get(), std::memory_order_release);
  published_.swap(view);
  if (view) rcu::retire([old = std::shared_ptr<HashView>(std::move(view))] {});
}

uint32_t FlowTable::count(uint32_t space, int input) const {
  const std::lock_guard lock(mutex_);
  const std::vector<uint32_t>& counts = spaces_[space].counts;
  return static_cast<size_t>(input) < counts.size() ? counts[static_cast<size_t>(input)] : 0;
}

size_t FlowTable::memory() const {
  const std::lock_guard lock(mutex_);
  return records_ * sizeof(FlowRecord);
}

bool FlowTable::have_room_for_hashes() {
  // Of a table made for its capacity only when hashes are spread most unevenly.
  if (!hashes_->full_for(2)) [[likely]]
    return true;
  try {
    // Before anything is retired: what follows must not fail.
    auto view = std::make_unique<HashView>();
    const rcu::Retirements until_published;
    hashes_->renew();
    publish_view(std::move(view));
    return true;
  } catch (const std::bad_alloc&) {
    return false;
  }
}

void FlowTable::link(FlowRecord& flow) {
  const auto& [there, back] = flow.entries_;
  if (!(there.id_ == back.id_)) hashes_->insert(hash_of(there), value_of(there));
  hashes_->insert(hash_of(back), value_of(back));
}

void FlowTable::unlink(FlowRecord& flow) {
  const auto& [there, back] = flow.entries_;
  if (!(there.id_ == back.id_)) hashes_->erase(hash_of(there), value_of(there));
  hashes_->erase(hash_of(back), value_of(back));
}

void FlowTable::begin_grace() {
  grace_ = rcu::start_grace();
  waiting_ = removed_;
  removed_ = nullptr;
  removed_count_ = 0;
}

void FlowTable::reserve() {
  uint64_t room = 0;
  for (const Slab& slab : slabs_) room += slab.rooms.size();
  if (room >= most_records()) return;
  slabs_.emplace_back();
  slabs_.back().rooms = HugeArray<Room>(most_records() - room);
  first_ = slabs_.front().record(0);
  first_records_ = slabs_.front().rooms.size();
  if (__lsan_register_root_region) __lsan_register_root_region(slabs_.back().rooms.data(), slabs_.back().rooms.bytes());
}

FlowRecord* FlowTable::record_beyond(uint64_t number) const {
  const Slab* slab = slabs_.data();
  for (; number >= slab->rooms.size(); ++slab) number -= slab->rooms.size();
  return slab->record(number);
}

FlowRecord* FlowTable::new_record() {
  if (records_ >= most_records()) return nullptr;
  for (Slab& slab : slabs_) {
    if (slab.used == slab.rooms.size()) continue;
    auto* const record = new (&slab.rooms[slab.used++]) FlowRecord;
    record->number_ = static_cast<uint32_t>(records_++);
    return record;
  }
  return nullptr;
}

FlowRecord* FlowTable::allocate() {
  if (!free_) {
    if (!waiting_ && removed_) begin_grace();
    if (waiting_ && rcu::elapsed(grace_)) {
      free_ = waiting_;
      waiting_ = nullptr;
    } else {
      return new_record();
    }
  }
  FlowRecord* flow = free_;
  free_ = flow->next_free_;
  if (flow->shifted_.exchange(false, std::memory_order_relaxed))
    delete flow->shift_.exchange(nullptr, std::memory_order_relaxed);
  return flow;
}

FlowRecord* FlowTable::Change::insert(uint32_t space, const FlowId& id, const FlowId& rewritten, const FlowInfo& info,
                                      int64_t now) {
  FlowTable& t = table_;
  const FlowId back = rewritten.reversed();
  if (FlowEntry* old = t.find(space, back)) t.remove(old->flow());

  const Lifetimes& lifetimes = t.spaces_[space].lifetimes;
  const bool guaranteed = lifetimes.guarantee > 0;
  const int64_t due = now + (guaranteed ? lifetimes.guarantee : lifetimes.idle[0]);
  // More than one is too many only after the capacity was reduced.
  for (int most = 4; t.size() >= t.capacity() && most > 0; --most) {
    FlowRecord* victim = t.next_to_go(now, kMostSteps);
    if (!victim || (!guaranteed && t.heaps_[0].first_due() > due)) break;
    t.remove(*victim);
  }
  if (t.size() >= t.capacity() || !t.have_room_for_hashes()) return nullptr;
  FlowRecord* flow = t.allocate();
  if (!flow) return nullptr;

  for (const bool reply : {false, true}) {
    flow->entries_[reply].id_ = reply ? back : id;
    flow->entries_[reply].space_and_way_ = static_cast<uint16_t>(space << 1 | static_cast<uint32_t>(reply));
    flow->entries_[reply].output_ = info.outputs[reply];
  }
  flow->last_.store(now, std::memory_order_relaxed);
  flow->life_.store(0, std::memory_order_relaxed);
  flow->state_.store(0, std::memory_order_relaxed);
  flow->ip_change_ = info.ip_change;
  flow->port_change_ = info.port_change;
  flow->reply_anno_ = info.reply_anno;
  flow->protocol_ = info.protocol;
  flow->input_ = info.input;
  flow->guaranteed_ = guaranteed;
  t.heap_of(*flow).push(flow, due);
  t.link(*flow);
  std::vector<uint32_t>& counts = t.spaces_[space].counts;
  if (info.input >= counts.size()) counts.resize(info.input + size_t{1});
  ++counts[info.input];
  t.size_.store(t.size() + 1, std::memory_order_relaxed);
  return flow;
}

void FlowTable::remove(FlowRecord& flow) {
  unlink(flow);
  heap_of(flow).remove(&flow);
  --spaces_[flow.space()].counts[flow.input_];
  size_.store(size() - 1, std::memory_order_relaxed);
  flow.next_free_ = removed_;
  removed_ = &flow;
  // Early, so that the records can be used when there are no others.
  if (++removed_count_ >= kGraceBatch && !waiting_) begin_grace();
}

bool FlowTable::update(FlowRecord& flow, int64_t now) {
  const Lifetimes& times = lifetimes(flow);
  const int64_t last = flow.last();
  const bool guaranteed = times.guarantee > 0 && last + times.guarantee > now;
  const int64_t due = last + (guaranteed ? times.guarantee : times.idle[flow.life()]);
  if (guaranteed == flow.guaranteed_) {
    if (due == heap_of(flow).due(flow)) return false;
    heap_of(flow).set_due(&flow, due);
    return true;
  }
  heap_of(flow).remove(&flow);
  flow.guaranteed_ = guaranteed;
  heap_of(flow).push(&flow, due);
  return true;
}

FlowRecord* FlowTable::next_to_go(int64_t now, int steps) {
  while (!heaps_[1].empty() && heaps_[1].first_due() <= now) {
    if (steps-- == 0) return nullptr;
    update(*heaps_[1].top(), now);
  }
  while (!heaps_[0].empty()) {
    if (!update(*heaps_[0].top(), now)) return heaps_[0].top();
    if (steps-- == 0) return nullptr;
  }
  return nullptr;
}

void FlowTable::change_life(FlowRecord& flow, uint8_t life) {
  const Lifetimes& times = lifetimes(flow);
  const bool shorter = times.idle[life] < times.idle[flow.life_.exchange(life, std::memory_order_relaxed)];
  if (!shorter) return;
  // Late due times are found out when a flow is at the top of its heap; one that is too late might never get there.
  const std::lock_guard lock(mutex_);
  if (flow.place_ == FlowRecord::kNowhere || flow.guaranteed_) return;
  Heap& heap = heap_of(flow);
  heap.set_due(&flow, std::min(heap.due(flow), flow.last() + times.idle[life]));
}

void FlowTable::replace_shift(FlowRecord& flow, std::unique_ptr<const SequenceShift> shift) {
  if (const SequenceShift* old = flow.shift_.exchange(shift.release(), std::memory_order_acq_rel))
    rcu::retire([old] { delete old; });
  flow.shifted_.store(true, std::memory_order_release);
}

bool FlowTable::Change::shift_sequence(FlowRecord& flow, bool direction, uint32_t from, int32_t bytes) {
  if (flow.place_ == FlowRecord::kNowhere) return false;
  const SequenceShift* old = flow.shift();
  auto shift = old ? std::make_unique<SequenceShift>(*old) : std::make_unique<SequenceShift>();
  if (!shift->add(direction, from, bytes)) return false;
  table_.replace_shift(flow, std::move(shift));
  return true;
}

void FlowTable::Change::settle_sequence(FlowRecord& flow, bool direction) {
  if (flow.place_ == FlowRecord::kNowhere || !flow.shift()) return;
  auto shift = std::make_unique<SequenceShift>(*flow.shift());
  shift->settle(direction);
  table_.replace_shift(flow, std::move(shift));
}

bool FlowTable::expire(int64_t now, int steps) {
  const std::lock_guard lock(mutex_);
  for (; steps > 0; --steps) {
    FlowRecord* flow = next_to_go(now, 1);
    if (flow && (heaps_[0].first_due() <= now || size() > capacity())) {
      remove(*flow);
    } else if (flow || size() == 0) {
      return false;
    } else if (heaps_[0].empty() && heaps_[1].first_due() > now) {
      if (size() <= capacity()) return false;
      FlowRecord* first = heaps_[1].top();
      if (!update(*first, now)) remove(*first);
    }
  }
  return true;
}

template <typename Visit>
void FlowTable::visit_slices(const Visit& visit) {
  for (size_t slab = 0, i = 0;;) {
    const std::lock_guard lock(mutex_);
    for (uint32_t n = 0; n < kSlice; ++n) {
      while (slab < slabs_.size() && i == slabs_[slab].used) {
        ++slab;
        i = 0;
      }
      if (slab == slabs_.size()) return;
      FlowRecord& flow = *slabs_[slab].record(static_cast<uint32_t>(i++));
      if (flow.place_ != FlowRecord::kNowhere) visit(flow);
    }
  }
}

void FlowTable::remove_if(const std::function<bool(const FlowRecord&)>& which) {
  visit_slices([&](FlowRecord& flow) {
    if (which(flow)) remove(flow);
  });
}

void FlowTable::for_each(const std::function<void(const FlowRecord&)>& visit) {
  visit_slices([&](const FlowRecord& flow) { visit(flow); });
}

}  // namespace headrace
