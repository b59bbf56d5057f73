#include "tables/pattern/prefilter.hh"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "tables/pattern/text_model.hh"

namespace headrace {

namespace {

/// The first table for patterns of this many bytes.
int table_of(size_t length) { return length >= 8 ? 0 : length >= 4 ? 1 : 5 - static_cast<int>(length); }

/// Up to four bytes, the first lowest.
uint32_t word_at(const std::string& bytes, size_t at, size_t count) {
  uint32_t word = 0;
  for (size_t i = 0; i < count && at + i < bytes.size(); ++i) {
    word |= uint32_t{static_cast<unsigned char>(bytes[at + i])} << (8 * i);
  }
  return word;
}

uint32_t hash_of(uint32_t window, const std::string& bytes, size_t at) {
  const uint32_t first = PrefilterView::hash(word_at(bytes, at, std::min<size_t>(window, 4)));
  return window == 8 ? PrefilterView::hash8(first, word_at(bytes, at + 4, 4)) : first;
}

/// Bits of an index with about `per` places for each of `count`.
uint32_t index_bits(size_t count, size_t per, uint32_t least, uint32_t most) {
  return std::clamp(static_cast<uint32_t>(std::bit_width(count * per - 1)), least, most);
}

}  // namespace

Prefilter::Table Prefilter::make_table(const PatternSet& set, const PatternBytesView& texts, uint32_t window,
                                       const std::vector<uint32_t>& numbers, uint32_t most_bits) {
  Table table;
  if (numbers.empty()) return table;
  // A bitmap in which random bytes find one bit in 64, while it still fits a first-level cache beside the others.
  const uint32_t bits = index_bits(numbers.size(), 64, 10, window == 8 ? most_bits : most_bits - 1);
  const uint32_t bucket_bits = index_bits(numbers.size(), 4, 8, 18);
  table.bit_shift = 32 - bits;
  table.bucket_shift = 32 - bucket_bits;
  table.bits = DeviceArray<uint32_t>(size_t{1} << (bits - 5));
  table.buckets = DeviceArray<uint32_t>(size_t{1} << bucket_bits);

  struct Window {
    uint32_t bucket;
    uint32_t number;
    uint16_t offset;
  };
  static const TextModel model;
  std::vector<uint32_t> crowd(table.buckets.size());
  std::vector<Window> windows;
  windows.reserve(numbers.size());
  const size_t places = size_t{1} << bits;
  for (const uint32_t number : numbers) {
    const std::string& bytes = set[number].bytes;
    // A window costs as often as it occurs, in text or by chance, once for each entry of its bucket. Of the windows of
    // a long pattern the first ones will do.
    constexpr size_t kWindowsTried = 256;
    size_t best = 0;
    uint32_t best_hash = hash_of(window, bytes, 0);
    if (bytes.size() > window) {
      double best_cost = std::numeric_limits<double>::infinity();
      for (size_t at = 0; at + window <= bytes.size() && at < kWindowsTried; ++at) {
        const uint32_t hash = hash_of(window, bytes, at);
        const double chance =
            std::exp(model.log_chance({bytes.data() + at, window})) + 1.0 / static_cast<double>(places);
        const double cost = chance * (1 + crowd[hash >> table.bucket_shift]);
        if (cost < best_cost) {
          best_cost = cost;
          best = at;
          best_hash = hash;
        }
      }
    }
    const uint32_t bit = best_hash >> table.bit_shift;
    table.bits[bit >> 5] |= uint32_t{1} << (bit & 31);
    ++crowd[best_hash >> table.bucket_shift];
    windows.push_back({best_hash >> table.bucket_shift, number, static_cast<uint16_t>(best)});
  }

  std::stable_sort(windows.begin(), windows.end(),
                   [](const Window& a, const Window& b) { return a.bucket < b.bucket; });
  table.entries = DeviceArray<WindowEntry>(windows.size());
  std::fill_n(table.buckets.data(), table.buckets.size(), WindowTableView::kNoEntry);
  for (size_t i = 0; i < windows.size(); ++i) {
    const auto [bucket, number, offset] = windows[i];
    const std::string& bytes = set[number].bytes;
    const bool last = i + 1 == windows.size() || windows[i + 1].bucket != bucket;
    table.entries[i] = {word_at(bytes, offset, std::min<uint32_t>(window, 4)) | PrefilterView::kSpread,
                        texts.begins[number],
                        static_cast<uint16_t>(number),
                        offset,
                        static_cast<uint16_t>(bytes.size()),
                        static_cast<uint16_t>(last)};
    if (table.buckets[bucket] == WindowTableView::kNoEntry) table.buckets[bucket] = static_cast<uint32_t>(i);
  }
  return table;
}

DeviceArray<uint32_t> Prefilter::make_pairs(const PatternSet& set) {
  DeviceArray<uint32_t> pairs(65536 / 32);
  const auto mark = [&](uint32_t pair) { pairs[pair >> 5] |= uint32_t{1} << (pair & 31); };
  for (const Pattern& pattern : set) {
    if (pattern.bytes.size() > 2) continue;
    // All that a byte may be; anything behind the only one.
    std::vector<uint32_t> choices[2];
    for (size_t i = 0; i < pattern.bytes.size(); ++i) {
      const auto byte = static_cast<unsigned char>(pattern.bytes[i]);
      choices[i] = {byte};
      if (pattern.nocase && is_letter(byte)) choices[i].push_back(byte ^ 0x20u);
    }
    if (choices[1].empty()) {
      for (uint32_t any = 0; any < 256; ++any) choices[1].push_back(any);
    }
    for (const uint32_t first : choices[0]) {
      for (const uint32_t second : choices[1]) mark(first | second << 8);
    }
  }
  return pairs;
}

Status Prefilter::build(const PatternSet& set, const PrefilterLimits& limits, Errors& errors) {
  const auto began = std::chrono::steady_clock::now();
  std::vector<uint32_t> numbers[kTables];
  for (uint32_t number = 0; number < set.size(); ++number)
    numbers[table_of(set[number].bytes.size())].push_back(number);
  texts_ = PatternBytes(set);
  for (int i = 0; i < kTables; ++i) {
    tables_[i] = make_table(set, texts_.view(), kWindow[i], numbers[i], limits.most_bits);
  }
  pairs_ = numbers[3].empty() && numbers[4].empty() ? DeviceArray<uint32_t>() : make_pairs(set);
  budget_ = limits.budget;
  seconds_ = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  if (memory() > limits.bytes)
    return errors.error("prefilter: {} patterns take {} bytes, the limit is {}", set.size(), memory(), limits.bytes);
  return {};
}

PrefilterView Prefilter::view() const {
  PrefilterView view;
  WindowTableView* const tables[kTables] = {&view.eight, &view.four, &view.three, &view.two, &view.one};
  for (int i = 0; i < kTables; ++i) *tables[i] = tables_[i].view();
  view.pairs = pairs_.data();
  view.texts = texts_.view();
  view.budget = budget_;
  return view;
}

PrefilterView Prefilter::mirror(Mirror& mirror) const {
  PrefilterView view = this->view();
  WindowTableView* const tables[kTables] = {&view.eight, &view.four, &view.three, &view.two, &view.one};
  for (int i = 0; i < kTables; ++i) *tables[i] = tables_[i].mirror(mirror);
  view.pairs = pairs_.mirror(mirror);
  view.texts = texts_.mirror(mirror);
  return view;
}

size_t Prefilter::memory() const {
  size_t bytes = pairs_.bytes() + texts_.memory();
  for (const Table& table : tables_) bytes += table.memory();
  return bytes;
}

size_t Prefilter::bitmap_memory() const {
  size_t bytes = pairs_.bytes();
  for (const Table& table : tables_) bytes += table.bits.bytes();
  return bytes;
}

std::string Prefilter::description() const {
  return fmt::format(
      "prefilter: {} windows of 8 bytes, {} of 4, {} of 3, {} shorter, {:.0f} KB of bitmaps, {:.1f} MB, built in "
      "{:.2f} s",
      tables_[0].entries.size(), tables_[1].entries.size(), tables_[2].entries.size(),
      tables_[3].entries.size() + tables_[4].entries.size(), static_cast<double>(bitmap_memory()) / 1024,
      static_cast<double>(memory()) / 1e6, seconds_);
}

}  // namespace headrace
