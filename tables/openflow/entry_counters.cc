#include "tables/openflow/entry_counters.hh"

namespace headrace::openflow {

EntryCounters::~EntryCounters() {
  for (int thread = 0; thread < threads_.size(); ++thread)
    for (std::atomic<Count*>& part : threads_[thread].parts) delete[] part.load();
}

void EntryCounters::reserve(uint32_t count) {
  for (; reserved_ < count; reserved_ += kPart)
    for (int thread = 0; thread < threads_.size(); ++thread) {
      std::atomic<Count*>& part = threads_[thread].parts[reserved_ / kPart];
      // There if memory ran out in the middle, the last time.
      if (part.load() == nullptr) part.store(new Count[kPart], std::memory_order_release);
    }
}

Count EntryCounters::sum(uint32_t number) const {
  Count total;
  for (int thread = 0; thread < threads_.size(); ++thread) {
    const Count* const part = threads_[thread].parts[number / kPart].load(std::memory_order_acquire);
    if (part == nullptr) continue;
    const Count& count = part[number % kPart];
    total += {__atomic_load_n(&count.packets, __ATOMIC_RELAXED), __atomic_load_n(&count.bytes, __ATOMIC_RELAXED),
              __atomic_load_n(&count.last, __ATOMIC_RELAXED)};
  }
  return total;
}

void EntryCounters::clear(uint32_t number) {
  for (int thread = 0; thread < threads_.size(); ++thread) {
    Count& count = threads_[thread].parts[number / kPart].load()[number % kPart];
    __atomic_store_n(&count.packets, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&count.bytes, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&count.last, 0, __ATOMIC_RELAXED);
  }
}

}  // namespace headrace::openflow
