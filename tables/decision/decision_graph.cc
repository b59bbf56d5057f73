#include "tables/decision/decision_graph.hh"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <numeric>
#include <utility>

namespace headrace::decision {

int Test::required_length() const {
  if (mask == 0) return 0;
  return offset + 4 - std::countr_zero(mask) / 8;
}

Expression::Expression(Kind kind, std::vector<Expression> parts) : kind_(kind), parts_(std::move(parts)) {
  if (parts_.empty()) parts_.emplace_back();
  test_count_ = std::accumulate(parts_.begin(), parts_.end(), 0,
                                [](int sum, const Expression& part) { return sum + part.test_count_; });
}

void Expression::negate_comparison() {
  negate();
  flip_short();
}

void Expression::flip_short() {
  test_.short_yes = !test_.short_yes;
  for (Expression& part : parts_) part.flip_short();
}

Graph::Graph(const Expression& expression, Target success, Target failure) {
  nodes_.reserve(expression.test_count());
  emit(expression, success, failure);
}

void Graph::emit(const Expression& expression, Target success, Target failure) {
  if (expression.negated_) std::swap(success, failure);
  const std::vector<Expression>& parts = expression.parts_;
  // Tests are laid out in the order of the formula, so a part that is not laid out yet begins where those before it
  // end.
  Target begin = static_cast<Target>(nodes_.size());
  switch (expression.kind_) {
    case Expression::Kind::kTest:
      nodes_.push_back(Node{expression.test_, {failure, success}});
      break;
    case Expression::Kind::kAll:
    case Expression::Kind::kAny:
      for (size_t i = 0; i < parts.size(); ++i) {
        begin += parts[i].test_count_;
        const bool last = i + 1 == parts.size();
        const bool all = expression.kind_ == Expression::Kind::kAll;
        emit(parts[i], all && !last ? begin : success, !all && !last ? begin : failure);
      }
      break;
    case Expression::Kind::kChoose:
      for (size_t i = 0; i + 2 < parts.size(); i += 2) {
        const Target answer = begin + parts[i].test_count_;
        begin = answer + parts[i + 1].test_count_;
        emit(parts[i], answer, begin);
        emit(parts[i + 1], success, failure);
      }
      emit(parts.back(), success, failure);
      break;
  }
}

void Graph::set_failure(Target target) {
  if (everything_ == kFailure) everything_ = target;
  for (Node& node : nodes_) {
    for (Target& next : node.next) {
      if (next == kFailure) next = target;
    }
  }
}

void Graph::otherwise(const Graph& next) {
  if (everything_ && *everything_ != kFailure) return;
  const Target offset = static_cast<Target>(nodes_.size());
  const bool always_fails = everything_ == kFailure;
  set_failure(next.everything_.value_or(offset));
  if (always_fails) everything_ = next.everything_;
  for (Node node : next.nodes_) {
    for (Target& target : node.next) {
      if (is_test(target)) target += offset;
    }
    nodes_.push_back(node);
  }
}

int Graph::safe_length() const {
  int length = 0;
  for (const Node& node : nodes_) length = std::max(length, node.test.required_length());
  return length;
}

std::vector<int> Graph::unused_outputs(int count) const {
  std::vector<bool> used(count);
  auto mark = [&](Target target) {
    if (is_output(target) && output_of(target) < count) used[output_of(target)] = true;
  };
  if (everything_) mark(*everything_);
  for (const Node& node : nodes_) {
    for (Target target : node.next) mark(target);
  }
  std::vector<int> unused;
  for (int i = 0; i < count; ++i) {
    if (!used[i]) unused.push_back(i);
  }
  return unused;
}

namespace {

/// Click sorts large groups by the words as a little-endian host loads them; so do we, to print the same text.
constexpr size_t kSortedGroup = 7;

std::string target_text(Target target, const std::vector<int>& position) {
  if (is_test(target)) return fmt::format("step {}", position[target]);
  if (is_output(target)) return fmt::format("[{}]", output_of(target));
  return target == kNever ? "[X]" : target == kFailure ? "[-]" : "[+]";
}

/// The nodes in the order of printing; group[i] counts the nodes that follow i with the same word, mask and answer.
struct Layout {
  std::vector<int> order;
  std::vector<int> group;
};

Layout lay_out(const std::vector<Node>& nodes, bool grouped) {
  Layout layout;
  std::vector<int> entries(nodes.size());
  if (!nodes.empty()) entries[0] = 1;
  for (const Node& node : nodes) {
    for (Target target : node.next) {
      if (is_test(target)) ++entries[target];
    }
  }
  std::vector<bool> placed(nodes.size());
  for (int i = 0; i < static_cast<int>(nodes.size()); ++i) {
    if (placed[i]) continue;
    const Node& head = nodes[i];
    const size_t begin = layout.order.size();
    for (int at = i;;) {
      layout.order.push_back(at);
      placed[at] = true;
      const Target next = nodes[at].no();
      if (!grouped || !is_test(next) || entries[next] != 1) break;
      const Node& other = nodes[next];
      if (other.yes() != head.yes() || other.test.offset != head.test.offset || other.test.mask != head.test.mask ||
          other.test.short_yes != head.test.short_yes) {
        break;
      }
      at = next;
    }
    for (size_t left = layout.order.size() - begin; left > 0; --left) layout.group.push_back(static_cast<int>(left));
  }
  return layout;
}

}  // namespace

std::string Graph::text(bool grouped) const {
  std::string out;
  if (nodes_.empty()) {
    const Target target = everything_.value_or(kNever);
    // Click names "nowhere" by the largest integer here, and by X in tests.
    out += fmt::format("all->[{}]\n", is_output(target) ? output_of(target) : INT32_MAX);
  }
  const Layout layout = lay_out(nodes_, grouped);
  std::vector<int> position(nodes_.size());
  for (size_t i = 0; i < layout.order.size(); ++i) position[layout.order[i]] = static_cast<int>(i);
  for (size_t i = 0; i < layout.order.size();) {
    const size_t count = layout.group[i];
    std::vector<uint32_t> values;
    for (size_t j = 0; j < count; ++j) values.push_back(nodes_[layout.order[i + j]].test.value);
    if (count >= kSortedGroup) {
      std::sort(values.begin(), values.end(),
                [](uint32_t a, uint32_t b) { return __builtin_bswap32(a) < __builtin_bswap32(b); });
    }
    for (size_t j = 0; j < count; ++j) {
      const Node& node = nodes_[layout.order[i + j]];
      const std::string no = j + 1 < count ? fmt::format("step {}", i + j + 1) : target_text(node.no(), position);
      out +=
          fmt::format("{:2} {:3}/{:08x}%{:08x}  yes->{}  no->{}{}\n", i + j, node.test.offset, values[j],
                      node.test.mask, target_text(node.yes(), position), no, node.test.short_yes ? "  short->yes" : "");
    }
    i += count;
  }
  out += fmt::format("safe length {}\nalignment offset 0\n", safe_length());
  return out;
}

}  // namespace headrace::decision
