#include "tables/pattern/full_dfa.hh"

#include <fmt/format.h>

#include <chrono>
#include <cstring>
#include <utility>

#include "tables/pattern/pattern_trie.hh"

namespace headrace {

Status FullDfa::build(const PatternSet& set, const DfaLimits& limits, Errors& errors) {
  const auto began = std::chrono::steady_clock::now();
  PatternTrie trie;
  if (const Status made = trie.build(set, limits.states, "full DFA", errors); !made) return made;
  const size_t stride = trie.classes + 1;
  const size_t bytes = trie.size() * stride * sizeof(uint32_t);
  if (bytes > limits.bytes)
    return errors.error("full DFA: {} states of {} transitions take {} bytes, the limit is {}", trie.size(),
                        trie.classes, bytes, limits.bytes);
  if (trie.size() * stride >= FullDfaView::kReports)
    return errors.error("full DFA: {} states of {} transitions, the limit is {} transitions", trie.size(), trie.classes,
                        FullDfaView::kReports);

  rows_ = DeviceArray<uint32_t>(trie.size() * stride);
  for (uint32_t state = 0; state < trie.size(); ++state) {
    uint32_t* const row = rows_.data() + state * stride;
    if (state != 0) std::memcpy(row, rows_.data() + trie.suffix[state] * stride, trie.classes * sizeof *row);
    const auto [begin, end] = trie.children(state);
    for (uint32_t child = begin; child < end; ++child) {
      row[trie.in_class[child]] =
          static_cast<uint32_t>(child * stride) | (trie.output[child] != 0 ? FullDfaView::kReports : 0);
    }
    row[trie.classes] = uint32_t{trie.depth[state]} << 16 | trie.output[state];
  }
  class_of_ = DeviceArray<uint8_t>(256);
  std::memcpy(class_of_.data(), trie.class_of, 256);
  outputs_ = std::move(trie.outputs);
  numbers_ = std::move(trie.numbers);
  texts_ = PatternBytes(set);
  stride_ = static_cast<uint32_t>(stride);
  states_ = trie.size();
  budget_ = limits.budget;
  seconds_ = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  return {};
}

FullDfaView FullDfa::view() const {
  FullDfaView view;
  view.rows = rows_.data();
  view.class_of = class_of_.data();
  view.stride = stride_;
  view.outputs = {outputs_.data(), numbers_.data(), texts_.view()};
  view.budget = budget_;
  return view;
}

FullDfaView FullDfa::mirror(Mirror& mirror) const {
  FullDfaView view = this->view();
  view.rows = rows_.mirror(mirror);
  view.class_of = class_of_.mirror(mirror);
  view.outputs = {outputs_.mirror(mirror), numbers_.mirror(mirror), texts_.mirror(mirror)};
  return view;
}

size_t FullDfa::memory() const {
  return rows_.bytes() + class_of_.bytes() + outputs_.bytes() + numbers_.bytes() + texts_.memory();
}

std::string FullDfa::description() const {
  return fmt::format("full DFA: {} states, {} classes, {:.1f} MB, built in {:.2f} s", states_, stride_ - 1,
                     static_cast<double>(memory()) / 1e6, seconds_);
}

}  // namespace headrace
