/// \file
/// Skipping tests whose answer is known. Every node gets up to four lists of facts (branches taken) such that each path
/// to the node contains all facts of at least one list. A branch to a test that every list answers is moved past it.
/// With all lists kept this would be exact and exponential; four bound it (Begel, McCanne, Graham: BPF+, SIGCOMM 1999).

#include <algorithm>
#include <bit>
#include <map>
#include <tuple>
#include <utility>

#include "tables/decision/decision_graph.hh"

namespace headrace::decision {

namespace {

constexpr size_t kMaxLists = 4;

/// How a test that was made answers another one.
enum class Answer { kUnknown, kNo, kYes };

class PathFacts {
 public:
  explicit PathFacts(std::vector<Node>& nodes);
  void run();

 private:
  /// A branch taken, as an element of a list that shares its beginning with others.
  struct Fact {
    int before;       // the fact before it, or -1
    int same_word;    // the last fact before it about the same word, or -1
    int branch;       // branch_of(identity, direction)
    int length;       // bytes the packet is known to have when the test is made
    bool impossible;  // the list contains the failure of a test that always holds
  };
  using List = int;  // the last fact, or -1

  static int branch_of(int node, bool yes) { return 2 * node + yes; }
  static int node_of(int branch) { return branch / 2; }
  static bool is_yes(int branch) { return branch % 2 != 0; }

  Fact fact_of(int node, bool yes, List before) const {
    const int identity = identity_[node];
    return fact_of(branch_of(identity, yes), std::min(known_length_[node], known_length_[identity]), before);
  }
  Fact fact_of(int branch, int length, List before) const {
    const Test& test = nodes_[node_of(branch)].test;
    const bool impossible = (test.mask == 0 && !is_yes(branch)) || (before >= 0 && facts_[before].impossible);
    return {before, last_about(test.offset, before), branch, length, impossible};
  }
  List append(const Fact& fact) {
    facts_.push_back(fact);
    return static_cast<List>(facts_.size()) - 1;
  }
  /// The last fact of a list about the word at `offset`, or -1.
  List last_about(int offset, List list) const {
    while (list >= 0 && nodes_[node_of(facts_[list].branch)].test.offset != offset) list = facts_[list].before;
    return list;
  }
  bool contains(List list, int branch) const;
  List intersect(const std::vector<List>& lists);
  std::vector<Fact> elements(List list);

  void redirect(int node, bool yes, Target to);
  void collect(int node);
  void advance(int node, bool yes);
  Answer answer(const Fact& fact, const Test& test) const;
  Answer answer_of_list(const Fact& last, const Test& test) const;
  std::vector<Target> reach(const Fact& last, Target to) const;

  std::vector<Node>& nodes_;
  std::vector<int> identity_;               // the first node with the same test
  std::vector<int> known_length_;           // bytes that every packet has which comes to the node
  std::vector<std::vector<int>> entering_;  // branches that lead to the node
  std::vector<std::vector<List>> lists_;
  std::vector<Fact> facts_;
  std::vector<int> seen_;  // by identity: the last call of elements() that met it
  int seen_calls_ = 0;
};

PathFacts::PathFacts(std::vector<Node>& nodes)
    : nodes_(nodes),
      identity_(nodes.size()),
      known_length_(nodes.size(), INT32_MAX),
      entering_(nodes.size()),
      lists_(nodes.size()),
      seen_(nodes.size()) {
  const int count = static_cast<int>(nodes.size());
  std::map<std::tuple<uint16_t, bool, uint32_t, uint32_t>, int> first;
  for (int i = 0; i < count; ++i) {
    const Test& test = nodes[i].test;
    identity_[i] = first.emplace(std::tuple(test.offset, test.short_yes, test.mask, test.value), i).first->second;
  }
  if (count > 0) known_length_[0] = 0;
  for (int i = 0; i < count; ++i) {
    const Node& node = nodes[i];
    for (bool yes : {false, true}) {
      const Target target = node.next[yes];
      if (!is_test(target)) continue;
      // A packet on the branch that short packets do not take is known to be long enough.
      const int length =
          yes == node.test.short_yes ? known_length_[i] : std::max(known_length_[i], node.test.required_length());
      known_length_[target] = std::min(known_length_[target], length);
    }
  }
  for (int i = count - 1; i >= 0; --i) {
    for (bool yes : {true, false}) {
      if (is_test(nodes[i].next[yes])) entering_[nodes[i].next[yes]].push_back(branch_of(i, yes));
    }
  }
}

void PathFacts::run() {
  for (int i = 0; i < static_cast<int>(nodes_.size()); ++i) {
    collect(i);
    advance(i, true);
    advance(i, false);
  }
}

bool PathFacts::contains(List list, int branch) const {
  list = last_about(nodes_[node_of(branch)].test.offset, list);
  for (; list >= 0; list = facts_[list].same_word) {
    if (facts_[list].branch == branch) return true;
  }
  return false;
}

/// A list in its order, without the earlier of two equal facts.
std::vector<PathFacts::Fact> PathFacts::elements(List list) {
  std::vector<Fact> result;
  ++seen_calls_;
  for (; list >= 0; list = facts_[list].before) {
    int& seen = seen_[node_of(facts_[list].branch)];
    if (seen == seen_calls_) continue;
    seen = seen_calls_;
    result.push_back(facts_[list]);
  }
  std::reverse(result.begin(), result.end());
  return result;
}

/// A list of facts that all lists share. Lists are mostly ascending; a fact that stands out of order in one of them may
/// be passed over, which costs an optimization and nothing else.
PathFacts::List PathFacts::intersect(const std::vector<List>& lists) {
  std::vector<std::vector<Fact>> all;
  for (List list : lists) all.push_back(elements(list));
  std::vector<size_t> at(all.size());
  List result = -1;
  int wanted = 0;
  int length = INT32_MAX;
  for (size_t list = 0, agreed = 0;; list = (list + 1) % all.size()) {
    while (at[list] < all[list].size() && all[list][at[list]].branch < wanted) ++at[list];
    if (at[list] == all[list].size()) return result;
    const Fact& fact = all[list][at[list]];
    if (fact.branch > wanted) {
      wanted = fact.branch;
      agreed = 0;
      length = INT32_MAX;
    }
    length = std::min(length, fact.length);
    if (++agreed < all.size()) continue;
    result = append(fact_of(wanted, length, result));
    ++wanted;
    agreed = 0;
    length = INT32_MAX;
    list = all.size() - 1;
  }
}

void PathFacts::redirect(int node, bool yes, Target to) {
  Target& target = nodes_[node].next[yes];
  const int branch = branch_of(node, yes);
  if (is_test(target)) std::erase(entering_[target], branch);
  if (is_test(to)) {
    std::vector<int>& entering = entering_[to];
    entering.insert(std::find_if(entering.begin(), entering.end(), [&](int other) { return other >= branch; }), branch);
  }
  target = to;
}

/// Makes the lists of a node from those of the nodes before it. A node that cannot be reached, or whose test is
/// answered on every list, loses its branches.
void PathFacts::collect(int node) {
  if (node == 0) {
    lists_[0] = {-1};
    return;
  }
  std::vector<List> lists;
  std::vector<int> taken;
  for (int branch : entering_[node]) {
    const int from = node_of(branch);
    const bool yes = is_yes(branch);
    if (std::find(taken.begin(), taken.end(), from) != taken.end()) continue;
    if (nodes_[from].next[!yes] == node) {
      // Both branches lead here: the answer is not known.
      taken.push_back(from);
      lists.insert(lists.end(), lists_[from].begin(), lists_[from].end());
      continue;
    }
    for (List list : lists_[from]) {
      const Fact fact = fact_of(from, yes, list);
      if (!contains(list, fact.branch ^ 1)) lists.push_back(append(fact));
    }
  }

  if (lists.size() > kMaxLists) {
    lists_[node] = {intersect(lists)};
    return;
  }
  const int identity = identity_[node];
  size_t known[2] = {0, 0};
  for (List list : lists) {
    if (contains(list, branch_of(identity, false))) {
      ++known[0];
    } else if (contains(list, branch_of(identity, true))) {
      ++known[1];
    }
  }
  for (bool yes : {false, true}) {
    if (lists.empty() || known[yes] != lists.size()) continue;
    const std::vector<int> entering = entering_[node];
    for (int branch : entering) redirect(node_of(branch), is_yes(branch), nodes_[node].next[yes]);
    lists.clear();
  }
  if (lists.empty()) {
    redirect(node, false, kNever);
    redirect(node, true, kNever);
  }
  lists_[node] = std::move(lists);
}

/// What a fact says about a test of the same word.
Answer PathFacts::answer(const Fact& fact, const Test& test) const {
  const Test& made = nodes_[node_of(fact.branch)].test;
  const bool yes = is_yes(fact.branch);
  const uint32_t both = made.mask & test.mask;
  Answer answer = Answer::kUnknown;
  if (yes && both == test.mask) {
    answer = (made.value & both) == test.value ? Answer::kYes : Answer::kNo;
  } else if (!yes && std::has_single_bit(made.mask) && made.mask == test.mask && made.value != test.value) {
    answer = Answer::kYes;
  } else if (!yes && both == made.mask && made.value == (test.value & both)) {
    answer = Answer::kNo;
  }
  if (answer == Answer::kUnknown || made.short_yes != yes) return answer;

  // Perhaps the packet was too short for the test that was made, and its answer says nothing about bytes. It still
  // holds if the packet is then too short for the other one as well, with the same answer.
  const int required = made.required_length();
  if (required <= fact.length) return answer;
  if (required <= test.required_length() && test.short_yes == (answer == Answer::kYes)) return answer;
  return Answer::kUnknown;
}

/// What the list that ends with `last` says about a test.
Answer PathFacts::answer_of_list(const Fact& last, const Test& test) const {
  if (test.mask == 0) return Answer::kYes;
  const bool same_word = nodes_[node_of(last.branch)].test.offset == test.offset;
  Answer known = same_word ? answer(last, test) : Answer::kUnknown;
  List at = same_word ? last.same_word : last_about(test.offset, last.before);
  for (; at >= 0 && known == Answer::kUnknown; at = facts_[at].same_word) known = answer(facts_[at], test);
  // Nothing comes this way, so that any answer is right.
  return known == Answer::kUnknown && last.impossible ? Answer::kNo : known;
}

/// The nodes that the branch `last` comes to one after the other, beginning with `to`, as the facts of a list answer
/// them.
std::vector<Target> PathFacts::reach(const Fact& last, Target to) const {
  std::vector<Target> way{to};
  while (is_test(to)) {
    const Answer known = answer_of_list(last, nodes_[to].test);
    if (known == Answer::kUnknown) break;
    to = nodes_[to].next[known == Answer::kYes];
    way.push_back(to);
  }
  return way;
}

/// Moves a branch as far as all lists of its node agree.
void PathFacts::advance(int node, bool yes) {
  const Target next = nodes_[node].next[yes];
  if (lists_[node].empty() || !is_test(next)) return;
  std::vector<std::vector<Target>> ways;
  for (List list : lists_[node]) ways.push_back(reach(fact_of(node, yes, list), next));

  Target best = ways[0].back();
  const bool same_end = std::all_of(ways.begin(), ways.end(), [&](const auto& way) { return way.back() == best; });
  if (!same_end) {
    // Ways ascend, so that the last node of one that all contain is the farthest. They all begin with `next`.
    auto on_all = [&](Target target) {
      return is_test(target) && std::all_of(ways.begin(), ways.end(), [&](const auto& way) {
               return std::find(way.begin(), way.end(), target) != way.end();
             });
    };
    best = *std::find_if(ways[0].rbegin(), ways[0].rend(), on_all);
  }
  if (best != next) redirect(node, yes, best);
}

}  // namespace

void skip_known_tests(std::vector<Node>& nodes) { PathFacts(nodes).run(); }

}  // namespace headrace::decision
