#include "tables/pattern/pattern_trie.hh"

#include <algorithm>
#include <numeric>
#include <string>
#include <string_view>

namespace headrace {

namespace {

/// Patterns that are the same for the automaton.
struct Group {
  std::string_view key;  ///< a pattern as classes
  uint32_t begin, end;   ///< their places in the sorted order
};

size_t common_prefix(std::string_view a, std::string_view b) {
  return static_cast<size_t>(std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first - a.begin());
}

}  // namespace

void PatternTrie::choose_classes(const PatternSet& set) {
  bool used[256] = {};
  folded = false;
  for (const Pattern& pattern : set) {
    bool has_letter = false;
    for (const char c : pattern.bytes) {
      used[static_cast<unsigned char>(c)] = true;
      has_letter = has_letter || is_letter(static_cast<unsigned char>(c));
    }
    folded = folded || (pattern.nocase && has_letter);
  }
  // No room for class 0 otherwise.
  folded = folded || std::all_of(std::begin(used), std::end(used), [](bool u) { return u; });
  classes = 1;
  for (int byte = 0; byte < 256; ++byte) {
    const unsigned char small = fold_case(static_cast<unsigned char>(byte));
    const bool other = folded && small != byte;  // has the class of its small letter
    const unsigned char capital = is_letter(small) ? small & ~0x20 : small;
    const bool in_use = used[byte] || (folded && used[capital]);
    class_of[byte] = other || !in_use ? 0 : static_cast<uint8_t>(classes++);
  }
  if (!folded) return;
  for (int capital = 'A'; capital <= 'Z'; ++capital) class_of[capital] = class_of[capital | 0x20];
}

uint32_t PatternTrie::child(uint32_t state, uint8_t c) const {
  const auto begin = in_class.begin() + first_child[state], end = in_class.begin() + first_child[state + 1];
  const auto found = std::lower_bound(begin, end, c);
  return found != end && *found == c ? static_cast<uint32_t>(found - in_class.begin()) : 0;
}

Status PatternTrie::build(const PatternSet& set, size_t most_states, const char* engine, Errors& errors) {
  choose_classes(set);
  std::vector<std::string> keys(set.size());
  for (size_t i = 0; i < set.size(); ++i) {
    keys[i].resize(set[i].bytes.size());
    std::transform(set[i].bytes.begin(), set[i].bytes.end(), keys[i].begin(),
                   [&](char c) { return static_cast<char>(class_of[static_cast<unsigned char>(c)]); });
  }
  std::vector<uint32_t> order(set.size());
  std::iota(order.begin(), order.end(), 0u);
  std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
    const int way = keys[a].compare(keys[b]);
    return way != 0 ? way < 0 : a < b;
  });
  std::vector<Group> groups;
  size_t states = 1;
  for (uint32_t i = 0; i < order.size(); ++i) {
    const std::string_view key = keys[order[i]];
    if (!groups.empty() && groups.back().key == key) {
      groups.back().end = i + 1;
      continue;
    }
    states += key.size() - (groups.empty() ? 0 : common_prefix(groups.back().key, key));
    groups.push_back({key, i, i + 1});
  }
  if (states > most_states)
    return errors.error("{}: {} patterns make {} states, the limit is {}", engine, set.size(), states, most_states);

  // Breadth first, each state being a run of groups that begin with its bytes.
  in_class.assign(1, 0);
  depth.assign(1, 0);
  first_child.clear();
  std::vector<uint32_t> run_begin{0}, run_end{static_cast<uint32_t>(groups.size())}, own_group(1, ~0u);
  for (auto* v : {&run_begin, &run_end, &own_group, &first_child}) v->reserve(states + 1);
  in_class.reserve(states);
  depth.reserve(states);
  for (uint32_t state = 0; state < in_class.size(); ++state) {
    first_child.push_back(static_cast<uint32_t>(in_class.size()));
    uint32_t group = run_begin[state];
    const uint32_t end = run_end[state];
    const uint16_t level = depth[state];
    if (group < end && groups[group].key.size() == level) own_group[state] = group++;
    while (group < end) {
      const char c = groups[group].key[level];
      const uint32_t begin = group;
      while (group < end && groups[group].key[level] == c) ++group;
      in_class.push_back(static_cast<uint8_t>(c));
      depth.push_back(static_cast<uint16_t>(level + 1));
      run_begin.push_back(begin);
      run_end.push_back(group);
      own_group.push_back(~0u);
    }
  }
  first_child.push_back(static_cast<uint32_t>(in_class.size()));
  link_suffixes();

  // Outputs in the order of their states, so that a suffix's output comes before.
  outputs = DeviceArray<DfaOutput>(groups.size() + 2);
  numbers = DeviceArray<uint32_t>(set.size());
  output.assign(states, 0);
  uint32_t next_number = 0;
  uint16_t last_output = 0;
  for (uint32_t state = 1; state < states; ++state) {
    const uint16_t inherited = output[suffix[state]];
    output[state] = inherited;
    if (own_group[state] == ~0u) continue;
    const Group& group = groups[own_group[state]];
    output[state] = ++last_output;
    outputs[last_output] = {next_number, depth[state], inherited};
    for (uint32_t i = group.begin; i < group.end; ++i) {
      const Pattern& pattern = set[order[i]];
      const bool compare = folded && !pattern.nocase &&
                           std::any_of(pattern.bytes.begin(), pattern.bytes.end(),
                                       [](char c) { return is_letter(static_cast<unsigned char>(c)); });
      numbers[next_number++] = order[i] | (compare ? DfaOutputsView::kCompare : 0);
    }
  }
  outputs[last_output + 1u] = {next_number, 0, 0};
  return {};
}

void PatternTrie::link_suffixes() {
  suffix.assign(size(), 0);
  uint32_t by_root[256] = {};
  for (uint32_t s = first_child[0]; s < first_child[1]; ++s) by_root[in_class[s]] = s;
  for (uint32_t parent = 1; parent < size(); ++parent) {
    const auto [begin, end] = children(parent);
    for (uint32_t s = begin; s < end; ++s) {
      const uint8_t c = in_class[s];
      uint32_t at = suffix[parent];
      uint32_t found = 0;
      while (at != 0 && (found = child(at, c)) == 0) at = suffix[at];
      suffix[s] = found != 0 ? found : by_root[c];
    }
  }
}

}  // namespace headrace
