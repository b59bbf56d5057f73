#include "tables/regex/regex_table.hh"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "tables/regex/regex_literals.hh"

namespace headrace {

namespace {

/// An automaton for several expressions can have the product of their states. It takes the place of two others when it
/// is small, or at most this many times as large as they are.
constexpr size_t kMostGrowth = 4;
constexpr size_t kSmall = 2048;
/// How far lanes walk to guess where they are.
constexpr uint32_t kWarm = 32;

/// A tree that matches any of some texts.
RegexSyntax tree_of(const std::vector<RegexLiteral>& literals) {
  RegexSyntax tree;
  tree.exact = false;
  RegexNode either;
  either.kind = RegexNode::Kind::kAlternation;
  for (const RegexLiteral& literal : literals) {
    RegexNode sequence;
    for (const char c : literal.bytes) {
      RegexNode byte;
      byte.kind = RegexNode::Kind::kBytes;
      byte.bytes.add(static_cast<uint8_t>(c));
      if (literal.nocase) byte.bytes.fold_case();
      sequence.children.push_back(static_cast<uint32_t>(tree.nodes.size()));
      tree.nodes.push_back(std::move(byte));
    }
    either.children.push_back(static_cast<uint32_t>(tree.nodes.size()));
    tree.nodes.push_back(std::move(sequence));
  }
  tree.root = static_cast<uint32_t>(tree.nodes.size());
  tree.nodes.push_back(std::move(either));
  return tree;
}

}  // namespace

RegexTable::RegexTable() : RegexTable(Limits()) {}

RegexTable::RegexTable(const Limits& limits) : limits_(limits) { pack({}); }

RegexProblem RegexTable::add(std::string_view text, RegexFlags flags, uint32_t number) {
  RegexSyntax tree;
  RegexProblem problem = parse_regex(text, flags, tree);
  if (problem.kind == RegexProblem::Kind::kInvalid) return problem;
  if (tree.exact && tree.can_be_empty()) {
    problem = {RegexProblem::Kind::kNotRegular, 0, "it can match without a byte"};
  }
  Expression expression;
  expression.text = text;
  expression.flags = flags;
  expression.number = number;
  if (problem.kind != RegexProblem::Kind::kNone) expression.reason = problem.text();
  expressions_.push_back(std::move(expression));
  trees_.push_back(std::move(tree));
  return problem;
}

void RegexTable::add_anyhow(std::string_view text, RegexFlags flags, uint32_t number) {
  const RegexProblem problem = add(text, flags, number);
  if (problem.kind != RegexProblem::Kind::kInvalid) return;
  // The empty tree matches everywhere, and so is none for an automaton.
  trees_.emplace_back();
  trees_.back().nodes.emplace_back();
  trees_.back().exact = false;
  expressions_.push_back({std::string(text), flags, number, Place::kElsewhere, problem.text(), 0});
}

std::optional<RegexDfa> RegexTable::make_literals(size_t index, const RegexBudget& budget) {
  Expression& expression = expressions_[index];
  std::optional<RegexDfa> dfa;
  const std::vector<RegexLiteral> literals =
      trees_[index].can_be_empty() ? std::vector<RegexLiteral>() : required_literals(trees_[index]);
  if (!literals.empty()) {
    dfa = make_regex_dfa(tree_of(literals), expression.number | RegexView::kCandidate, found_, budget);
  }
  expression.place = dfa ? Place::kCandidate : Place::kElsewhere;
  expression.states = dfa ? dfa->size() : 0;
  return dfa;
}

std::optional<RegexDfa> RegexTable::make_one(size_t index, const RegexBudget& budget) {
  Expression& expression = expressions_[index];
  const RegexSyntax& tree = trees_[index];
  if (tree.can_be_empty()) return make_literals(index, budget);
  const uint32_t pattern = expression.number | (tree.exact ? 0 : RegexView::kCandidate);
  std::optional<RegexDfa> dfa = make_regex_dfa(tree, pattern, found_, budget);
  if (!dfa) {
    if (tree.exact) {
      expression.reason =
          fmt::format("its automaton would have more than {} states, or take too long to make", budget.states);
    }
    return make_literals(index, budget);
  }
  expression.place = tree.exact ? Place::kExact : Place::kCandidate;
  expression.states = dfa->size();
  return dfa;
}

/// Adds a group, which may be joined with one that is there.
void RegexTable::join(std::vector<Group>& all, Group group) {
  for (Group& other : all) {
    const size_t most = std::min(std::max(kSmall, kMostGrowth * (other.dfa.size() + group.dfa.size())), limits_.states);
    std::optional<RegexDfa> both = merge_regex_dfas(other.dfa, group.dfa, found_, most);
    if (!both) continue;
    other.dfa = std::move(*both);
    other.members.insert(other.members.end(), group.members.begin(), group.members.end());
    return;
  }
  all.push_back(std::move(group));
}

/// Joins neighbors, then neighbors of those: most steps are on small automata.
std::vector<RegexTable::Group> RegexTable::merged(std::vector<Group> groups) {
  std::vector<std::vector<Group>> level;
  for (Group& group : groups) {
    level.emplace_back();
    level.back().push_back(std::move(group));
  }
  while (level.size() > 1) {
    std::vector<std::vector<Group>> above;
    for (size_t i = 0; i < level.size(); i += 2) {
      std::vector<Group> all = std::move(level[i]);
      if (i + 1 < level.size()) {
        for (Group& group : level[i + 1]) join(all, std::move(group));
      }
      above.push_back(std::move(all));
    }
    level = std::move(above);
  }
  return level.empty() ? std::vector<Group>() : std::move(level[0]);
}

void RegexTable::choose(std::vector<Group> groups, std::vector<Group>& kept, std::vector<size_t>& left) {
  const auto words_of = [](const RegexDfa& dfa) { return dfa.size() * (dfa.classes + 2); };
  size_t states = 0, words = 0;
  for (const Group& group : kept) {
    states += group.dfa.size();
    words += words_of(group.dfa);
  }
  // Those that do the most for their size go first.
  std::stable_sort(groups.begin(), groups.end(), [](const Group& a, const Group& b) {
    return a.members.size() * b.dfa.size() > b.members.size() * a.dfa.size();
  });
  for (Group& group : groups) {
    states += group.dfa.size();
    words += words_of(group.dfa);
    if (kept.size() < limits_.automata && states <= limits_.states && words * sizeof(uint32_t) <= limits_.bytes &&
        words <= RegexView::kRow) {
      kept.push_back(std::move(group));
      continue;
    }
    states -= group.dfa.size();
    words -= words_of(group.dfa);
    left.insert(left.end(), group.members.begin(), group.members.end());
  }
}

void RegexTable::build() {
  found_ = RegexReports();
  const RegexBudget budget{limits_.states, limits_.work};
  std::vector<Group> groups;
  for (size_t i = 0; i < expressions_.size(); ++i) {
    if (std::optional<RegexDfa> dfa = make_one(i, budget)) groups.push_back({std::move(*dfa), {i}});
  }
  const auto smaller = [](const Group& a, const Group& b) { return a.dfa.size() < b.dfa.size(); };
  // Those of like size are likely to go together.
  std::stable_sort(groups.begin(), groups.end(), smaller);
  groups = merged(std::move(groups));
  // Too many: the smallest join, whatever they become, as long as there is room.
  while (groups.size() > limits_.automata) {
    std::stable_sort(groups.begin(), groups.end(), smaller);
    std::optional<RegexDfa> both = merge_regex_dfas(groups[0].dfa, groups[1].dfa, found_, limits_.states / 2);
    if (!both) break;
    groups[1].dfa = std::move(*both);
    groups[1].members.insert(groups[1].members.end(), groups[0].members.begin(), groups[0].members.end());
    groups.erase(groups.begin());
  }

  std::vector<Group> kept;
  std::vector<size_t> left;
  choose(std::move(groups), kept, left);
  if (!left.empty()) {
    // Texts take less room than the expressions that contain them, and can join any automaton.
    std::sort(left.begin(), left.end());
    groups.clear();
    for (const size_t i : left) {
      expressions_[i].reason =
          fmt::format("no room: the automata of the set would pass {} states, {} bytes or {} passes", limits_.states,
                      limits_.bytes, limits_.automata);
      if (std::optional<RegexDfa> dfa = make_literals(i, budget)) groups.push_back({std::move(*dfa), {i}});
    }
    groups = merged(std::move(groups));
    if (kept.size() == limits_.automata) {
      groups.push_back(std::move(kept.back()));
      kept.pop_back();
      groups = merged(std::move(groups));
    }
    left.clear();
    choose(std::move(groups), kept, left);
    for (const size_t i : left) {
      expressions_[i].place = Place::kElsewhere;
      expressions_[i].states = 0;
    }
  }
  pack(kept);
  trees_.clear();
  trees_.shrink_to_fit();
}

void RegexTable::pack(const std::vector<Group>& groups) {
  states_ = 0;
  automata_.clear();
  rows_.clear();
  class_of_.clear();
  // Only the sets that are used, in the order of their use.
  std::map<uint32_t, uint32_t> numbers{{0, 0}};
  reports_.clear();
  report_begins_ = {0, 0};
  const auto number = [&](uint32_t set) {
    const auto [at, is_new] = numbers.try_emplace(set, static_cast<uint32_t>(numbers.size()));
    if (is_new) {
      reports_.insert(reports_.end(), found_[set].begin(), found_[set].end());
      report_begins_.push_back(static_cast<uint32_t>(reports_.size()));
    }
    return at->second;
  };
  for (const Group& group : groups) {
    const RegexDfa& dfa = group.dfa;
    const uint32_t stride = dfa.classes + 2, first = static_cast<uint32_t>(rows_.size());
    const auto word = [&](uint32_t state) {
      const RegexDfa::State& about = dfa.states[state];
      bool dead = about == RegexDfa::State();
      for (uint32_t c = 0; c < dfa.classes && dead; ++c) dead = dfa.next[state * dfa.classes + c] == state;
      return (first + state * stride) | (about.reports ? RegexView::kReports : 0) | (dead ? RegexView::kDead : 0);
    };
    std::vector<uint32_t> words(dfa.size());
    for (uint32_t s = 0; s < dfa.size(); ++s) words[s] = word(s);
    for (uint32_t s = 0; s < dfa.size(); ++s) {
      for (uint32_t c = 0; c < dfa.classes; ++c) rows_.push_back(words[dfa.next[s * dfa.classes + c]]);
      rows_.push_back(number(dfa.states[s].reports));
      rows_.push_back(number(dfa.states[s].end_reports));
    }
    // In the middle of a text: where most bytes lead from the start.
    std::map<uint32_t, unsigned> popular;
    for (const uint8_t c : dfa.class_of) ++popular[dfa.next[dfa.start * dfa.classes + c]];
    const auto most = std::max_element(popular.begin(), popular.end(),
                                       [](const auto& a, const auto& b) { return a.second < b.second; });
    automata_.push_back({words[dfa.start], words[most->first], stride, std::min(kWarm, dfa.longest),
                         static_cast<uint32_t>(class_of_.size())});
    class_of_.insert(class_of_.end(), dfa.class_of.begin(), dfa.class_of.end());
    states_ += dfa.size();
  }
}

RegexView RegexTable::view() const {
  RegexView view;
  view.automata = automata_.data();
  view.count = static_cast<uint32_t>(automata_.size());
  view.rows = rows_.data();
  view.class_of = class_of_.data();
  view.report_begins = report_begins_.data();
  view.reports = reports_.data();
  view.budget = limits_.reports;
  return view;
}

RegexView RegexTable::mirror(Mirror& mirror) const {
  RegexView view = this->view();
  if (automata_.empty()) return view;
  view.automata = mirror.array(automata_.data(), automata_.size());
  view.rows = mirror.array(rows_.data(), rows_.size());
  view.class_of = mirror.array(class_of_.data(), class_of_.size());
  view.report_begins = mirror.array(report_begins_.data(), report_begins_.size());
  if (!reports_.empty()) view.reports = mirror.array(reports_.data(), reports_.size());
  return view;
}

size_t RegexTable::bytes() const {
  return automata_.size() * sizeof(RegexAutomaton) + (rows_.size() + report_begins_.size() + reports_.size()) * 4 +
         class_of_.size();
}

size_t RegexTable::count(Place place) const {
  return static_cast<size_t>(
      std::count_if(expressions_.begin(), expressions_.end(), [&](const Expression& e) { return e.place == place; }));
}

std::string RegexTable::note() const {
  return fmt::format("{} automata, {} states, {} bytes; {} expressions exact, {} to confirm, {} elsewhere",
                     automata_.size(), states_, bytes(), count(Place::kExact), count(Place::kCandidate),
                     count(Place::kElsewhere));
}

}  // namespace headrace
