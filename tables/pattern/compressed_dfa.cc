#include "tables/pattern/compressed_dfa.hh"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <cstring>
#include <numeric>
#include <utility>
#include <vector>

#include "tables/pattern/pattern_trie.hh"

namespace headrace {

namespace {

/// The transitions that are kept: those of states of two bytes to states of three, and those of longer states to states
/// of four and more. A long state without children has those of its suffix, whose row it shares.
struct Rows {
  struct Transition {
    uint32_t target;
    uint8_t by;
  };
  static constexpr uint32_t kNone = ~uint32_t{0};

  std::vector<uint32_t> of_state;  ///< a row, or kNone
  std::vector<size_t> begin{0};    ///< by row, and one more
  std::vector<Transition> transitions;

  size_t size() const { return begin.size() - 1; }
  size_t length(uint32_t row) const { return begin[row + 1] - begin[row]; }

  /// False if there are more than `most` transitions.
  bool collect(const PatternTrie& trie, size_t most) {
    of_state.assign(trie.size(), kNone);
    for (uint32_t state = 1; state < trie.size(); ++state) {
      if (trie.depth[state] < 2) continue;
      const uint32_t suffix = trie.suffix[state];
      const uint32_t inherited = trie.depth[suffix] >= 3 ? of_state[suffix] : kNone;
      const auto [first, end] = trie.children(state);
      if (first == end) {
        of_state[state] = inherited;
        continue;
      }
      size_t at = inherited == kNone ? 0 : begin[inherited];
      const size_t stop = inherited == kNone ? 0 : begin[inherited + 1];
      uint32_t child = first;
      // Both are in the order of classes; the state's own come before those of its suffix.
      while (at < stop || child < end) {
        if (child == end || (at < stop && transitions[at].by < trie.in_class[child])) {
          const Transition copy = transitions[at++];
          transitions.push_back(copy);
        } else {
          if (at < stop && transitions[at].by == trie.in_class[child]) ++at;
          transitions.push_back({child, trie.in_class[child]});
          ++child;
        }
      }
      of_state[state] = static_cast<uint32_t>(size());
      begin.push_back(transitions.size());
      if (transitions.size() > most) return false;
    }
    return true;
  }
};

/// Finds places for rows such that no two want the same entry or begin at the same one.
class Placer {
 public:
  /// The place of a row, or 0 if it would have to begin behind `last`.
  uint32_t place(const Rows::Transition* row, size_t length, uint32_t last) {
    // Rows come by falling length: where one of the same length did not fit, few of the others do.
    if (length != length_) {
      length_ = length;
      block_ = 0;
    }
    for (;; ++block_) {
      const size_t base = block_ * 64;
      if (base > last) return 0;
      grow(block_ + 6);
      uint64_t fit = ~begun_[block_];
      for (size_t i = 0; i < length && fit != 0; ++i) fit &= ~bits_at(base + row[i].by);
      if (fit == 0) continue;
      const uint32_t begin = static_cast<uint32_t>(base) + static_cast<uint32_t>(std::countr_zero(fit));
      if (begin > last) return 0;
      begun_[block_] |= fit & -fit;
      for (size_t i = 0; i < length; ++i) {
        const size_t entry = begin + row[i].by;
        taken_[entry / 64] |= uint64_t{1} << (entry % 64);
      }
      highest_ = std::max(highest_, begin);
      return begin;
    }
  }
  uint32_t highest() const { return highest_; }

 private:
  void grow(size_t blocks) {
    if (taken_.size() >= blocks) return;
    taken_.resize(blocks * 2);
    begun_.resize(blocks * 2);
    begun_[0] |= 1;  // the place of states without a row
  }
  /// 64 bits of `taken_` from `bit` on.
  uint64_t bits_at(size_t bit) const {
    const size_t word = bit / 64, shift = bit % 64;
    return shift == 0 ? taken_[word] : taken_[word] >> shift | taken_[word + 1] << (64 - shift);
  }

  std::vector<uint64_t> taken_, begun_;
  size_t length_ = 0;
  size_t block_ = 0;
  uint32_t highest_ = 0;
};

}  // namespace

Status CompressedDfa::build(const PatternSet& set, const DfaLimits& limits, Errors& errors) {
  const auto began = std::chrono::steady_clock::now();
  PatternTrie trie;
  if (const Status made = trie.build(set, limits.states, "compressed DFA", errors); !made) return made;
  Rows rows;
  const size_t most = std::min<size_t>(limits.bytes / sizeof(CompressedState), CompressedDfaView::kRow);
  const auto too_many = [&] {
    return errors.error("compressed DFA: {} states keep more than the {} transitions that {} bytes hold", trie.size(),
                        most, most * sizeof(CompressedState));
  };
  if (!rows.collect(trie, most)) return too_many();

  std::vector<uint32_t> order(rows.size());
  std::iota(order.begin(), order.end(), 0u);
  std::stable_sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) { return rows.length(a) > rows.length(b); });
  std::vector<uint32_t> place(rows.size());
  Placer placer;
  const uint32_t last = most > 256 ? static_cast<uint32_t>(most - 256) : 0;
  for (const uint32_t row : order) {
    place[row] = placer.place(&rows.transitions[rows.begin[row]], rows.length(row), last);
    if (place[row] == 0) return too_many();
  }

  const auto state_word = [&](uint32_t state) {
    const uint32_t row = rows.of_state[state];
    return CompressedState{row == Rows::kNone ? 0 : place[row], uint32_t{trie.depth[state]} << 16 | trie.output[state]};
  };
  entries_ = DeviceArray<CompressedState>(size_t{placer.highest()} + 256);
  for (uint32_t row = 0; row < rows.size(); ++row) {
    for (size_t i = rows.begin[row]; i < rows.begin[row + 1]; ++i) {
      const auto [target, by] = rows.transitions[i];
      CompressedState& entry = entries_[place[row] + by];
      entry = state_word(target);
      entry.row |= uint32_t{by} << CompressedDfaView::kClassShift;
    }
  }
  // Behind a byte: its state at depth 1 has children at depth 2; for other bytes, the states at depth 1.
  defaults_ = DeviceArray<CompressedState>(size_t{trie.classes + 1} * trie.classes);
  const auto [first, end] = trie.children(0);
  for (uint32_t before = 0; before <= trie.classes; ++before) {
    CompressedState* const row = defaults_.data() + size_t{before} * trie.classes;
    for (uint32_t state = first; state < end; ++state) row[trie.in_class[state]] = state_word(state);
  }
  for (uint32_t state = first; state < end; ++state) {
    CompressedState* const row = defaults_.data() + size_t{trie.in_class[state]} * trie.classes;
    const auto [first_of, end_of] = trie.children(state);
    for (uint32_t child = first_of; child < end_of; ++child) row[trie.in_class[child]] = state_word(child);
  }
  class_of_ = DeviceArray<uint8_t>(256);
  std::memcpy(class_of_.data(), trie.class_of, 256);
  outputs_ = std::move(trie.outputs);
  numbers_ = std::move(trie.numbers);
  texts_ = PatternBytes(set);
  classes_ = trie.classes;
  states_ = trie.size();
  kept_ = rows.transitions.size();
  budget_ = limits.budget;
  seconds_ = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  return {};
}

CompressedDfaView CompressedDfa::view() const {
  CompressedDfaView view;
  view.entries = entries_.data();
  view.defaults = defaults_.data();
  view.class_of = class_of_.data();
  view.classes = classes_;
  view.outputs = {outputs_.data(), numbers_.data(), texts_.view()};
  view.budget = budget_;
  return view;
}

CompressedDfaView CompressedDfa::mirror(Mirror& mirror) const {
  CompressedDfaView view = this->view();
  view.entries = entries_.mirror(mirror);
  view.defaults = defaults_.mirror(mirror);
  view.class_of = class_of_.mirror(mirror);
  view.outputs = {outputs_.mirror(mirror), numbers_.mirror(mirror), texts_.mirror(mirror)};
  return view;
}

size_t CompressedDfa::memory() const {
  return entries_.bytes() + defaults_.bytes() + class_of_.bytes() + outputs_.bytes() + numbers_.bytes() +
         texts_.memory();
}

std::string CompressedDfa::description() const {
  return fmt::format("compressed DFA: {} states, {} transitions kept ({:.0f} % full), {:.1f} MB, built in {:.2f} s",
                     states_, kept_, 100.0 * static_cast<double>(kept_) / static_cast<double>(entries_.size()),
                     static_cast<double>(memory()) / 1e6, seconds_);
}

}  // namespace headrace
