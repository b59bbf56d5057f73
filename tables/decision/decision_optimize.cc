/// \file
/// The optimizer: sorting, joining and removing the tests of a decision graph.

#include <algorithm>
#include <bit>
#include <utility>

#include "tables/decision/decision_graph.hh"

namespace headrace::decision {

namespace {

/// The sort key of a word. The IP protocol decides most rules, so its word (network header, byte 8) sorts before the
/// rest of the IP header.
int sort_offset(const Test& test, bool protocol_first) {
  return protocol_first && test.offset == kNetworkBase + 8 ? kNetworkBase + 3 : test.offset;
}

bool flippable(const Test& test) { return std::has_single_bit(test.mask); }

/// Asks the opposite question: a test of one bit may compare with 0 or with 1.
void flip(Node& node) {
  node.test.value ^= node.test.mask;
  node.test.short_yes = !node.test.short_yes;
  std::swap(node.next[0], node.next[1]);
}

/// True if some word passes both tests.
bool compatible(const Test& a, const Test& b) {
  if (a.mask == 0 || b.mask == 0) return true;
  const uint32_t both = a.mask & b.mask;
  return a.offset == b.offset && (a.value & both) == (b.value & both);
}

/// True if "first, then second" may become one test whose short answer is the first's.
bool joinable(const Test& first, const Test& second) {
  if (!compatible(first, second)) return false;
  // Where both let short packets pass, a packet that ends inside the word becomes too short for both. Click has it so.
  if (first.short_yes == second.short_yes) return true;
  // A packet may be long enough for one test and too short for the other.
  return !first.short_yes && first.required_length() == second.required_length();
}

/// True if "first or second" is one test that leaves out the bit in which they differ.
bool generalizes(const Node& first, const Node& second) {
  const Test& a = first.test;
  const Test& b = second.test;
  if (a.offset == 0 || a.offset != b.offset || a.mask == 0 || a.mask != b.mask) return false;
  if (first.yes() != second.yes() || (!a.short_yes && b.short_yes)) return false;
  const uint32_t difference = a.value ^ b.value;
  if ((difference & (difference - 1)) != 0) return false;
  Test joined = a;
  joined.mask &= ~difference;
  return joined.required_length() == a.required_length();
}

}  // namespace

void Graph::sort(bool protocol_first) {
  // The node whose branch is the only way to a node. The entry counts as shared: it keeps its test, and so do the nodes
  // behind it that nothing else leads to. That is Click's order, which the printed programs show.
  constexpr int kShared = 0;
  const int count = static_cast<int>(nodes_.size());
  std::vector<int> way(count, -1);
  for (int i = 0; i < count; ++i) {
    for (Target target : nodes_[i].next) {
      if (is_test(target)) way[target] = way[target] < 0 ? i : kShared;
    }
  }
  auto out_of_order = [&](const Test& a, const Test& b) {
    const int offset_a = sort_offset(a, protocol_first), offset_b = sort_offset(b, protocol_first);
    if (offset_a != offset_b) return offset_a > offset_b;
    if (a.mask != b.mask) return a.mask > b.mask;
    return a.value > b.value;
  };
  for (int i = 0; i < count;) {
    Node& first = nodes_[i];
    bool swapped = false;
    for (int branch : {0, 1}) {
      const Target next = first.next[branch];
      if (!is_test(next) || way[next] <= kShared) continue;
      Node& second = nodes_[next];
      if (first.next[!branch] != second.next[!branch] || !out_of_order(first.test, second.test)) continue;
      std::swap(first.test, second.test);
      swapped = true;
      break;
    }
    // The test that moved up may belong before the one above it, too.
    if (!swapped) {
      ++i;
    } else if (way[i] > kShared) {
      i = way[i];
    }
  }
}

void Graph::optimize(bool protocol_first) {
  sort(protocol_first);
  skip_known_tests(nodes_);
  join_tests();
  prune();
}

void Graph::join_tests() {
  for (int i = static_cast<int>(nodes_.size()) - 1; i >= 0;) {
    Node& node = nodes_[i];
    if (is_test(node.no())) {
      const Node& other = nodes_[node.no()];
      if (flippable(node.test) && compatible(other.test, node.test)) {
        flip(node);
      } else if (generalizes(node, other)) {
        const uint32_t difference = node.test.value ^ other.test.value;
        node.test.value &= ~difference;
        node.test.mask &= ~difference;
        node.next[0] = other.no();
        continue;
      }
    }
    if (is_test(node.yes())) {
      Node& other = nodes_[node.yes()];
      if (node.no() == other.yes() && flippable(other.test)) flip(other);
      if (node.no() == other.no() && joinable(node.test, other.test)) {
        if (node.test.mask == 0) node.test.offset = other.test.offset;
        node.test.value |= other.test.value;
        node.test.mask |= other.test.mask;
        node.next[1] = other.yes();
        continue;
      }
    }
    --i;
  }
}

void Graph::prune() {
  if (nodes_.empty()) return;
  const int count = static_cast<int>(nodes_.size());

  // Where a branch to a node really leads: past nodes that do not decide anything. Edges lead to higher indexes, so
  // that the last node comes first.
  std::vector<Target> real(count);
  for (int i = count - 1; i >= 0; --i) {
    Node& node = nodes_[i];
    for (Target& target : node.next) {
      if (is_test(target)) target = real[target];
    }
    const bool decides = node.yes() != node.no() && node.test.mask != 0;
    real[i] = decides ? i : node.yes();
  }
  if (!is_test(real[0])) {
    everything_ = real[0];
    nodes_.clear();
    return;
  }
  everything_.reset();
  if (real[0] != 0) nodes_[0] = nodes_[real[0]];

  std::vector<Target> position(count, -1);
  position[0] = 0;
  int kept = 0;
  for (int i = 0; i < count; ++i) {
    if (position[i] < 0) continue;
    position[i] = kept;
    for (Target target : nodes_[i].next) {
      if (is_test(target)) position[target] = 0;
    }
    nodes_[kept++] = nodes_[i];
  }
  nodes_.resize(kept);
  for (Node& node : nodes_) {
    for (Target& target : node.next) {
      if (is_test(target)) target = position[target];
    }
  }
}

}  // namespace headrace::decision
