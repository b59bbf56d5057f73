#include "tables/openflow/word_store.hh"

#include <algorithm>
#include <bit>
#include <utility>

namespace headrace::openflow {

WordStore::WordStore(uint32_t most_words) : words_(most_words), changes_(size_t{most_words} * sizeof(uint32_t)) {}

uint32_t WordStore::class_of(size_t words) {
  if (words <= kExact) return static_cast<uint32_t>((std::max<size_t>(words, 1) + 3) / 4 - 1);
  return 15 + static_cast<uint32_t>(std::bit_width((words - 1) / kExact));
}

uint32_t WordStore::words_of(uint32_t size_class) {
  return size_class < 16 ? (size_class + 1) * 4 : kExact << (size_class - 15);
}

void WordStore::reclaim() {
  while (!resting_.empty() && rcu::returned(resting_.front().grace)) {
    for (const Run& run : resting_.front().runs) {
      free_[run.size_class].push_back(run.index);
      used_ -= words_of(run.size_class);
    }
    resting_.pop_front();
  }
}

std::optional<uint32_t> WordStore::add(std::span<const uint32_t> words) {
  const uint32_t size_class = class_of(words.size());
  if (size_class >= kClasses) return std::nullopt;
  std::vector<uint32_t>& free = free_[size_class];
  const uint32_t size = words_of(size_class);
  if (free.empty()) reclaim();
  uint32_t index = end_;
  if (!free.empty()) {
    index = free.back();
    free.pop_back();
  } else if (size <= words_.size() - end_) {
    end_ += size;
  } else {
    return std::nullopt;
  }
  used_ += size;
  changes_.mark(size_t{index} * sizeof(uint32_t), (index + words.size()) * sizeof(uint32_t));
  // Readers are ordered by the index that they find, not by these stores.
  for (size_t i = 0; i < words.size(); ++i) __atomic_store_n(words_.data() + index + i, words[i], __ATOMIC_RELAXED);
  return index;
}

void WordStore::give_up(uint32_t index, uint32_t words) { given_up_.push_back({index, class_of(words)}); }

void WordStore::begin_grace() {
  if (!given_up_.empty()) resting_.push_back({rcu::start_grace(), std::exchange(given_up_, {})});
}

const uint32_t* WordStore::mirror(Mirror& mirror) const {
  // Sizes double, so that a copy rarely moves.
  const size_t size = std::min<size_t>(std::bit_ceil(end_), words_.size());
  return mirror.array(words_.data(), size, &changes_);
}

}  // namespace headrace::openflow
