#include "offload/equal_ways.hh"

#include <algorithm>
#include <map>
#include <set>

namespace headrace::offload {

namespace {

/// Each has lists of its own.
constexpr size_t kMostWays = 256;

using Tuple = std::vector<size_t>;  // a step of each way

/// Walks along all ways behind one step at a time.
class Walk {
 public:
  Walk(const Plan& plan, const std::function<bool(size_t)>& suits) : plan_(plan), suits_(suits) {}

  /// By their first steps: all steps of the ways that begin at `begin`; empty if the ways differ.
  std::map<size_t, Tuple> from(const Tuple& begin, size_t fan) {
    found_.clear();
    taken_.clear();
    return visit(begin) && closed(fan) ? found_ : std::map<size_t, Tuple>();
  }

 private:
  const Step& step(size_t s) const { return plan_.steps()[s]; }

  bool visit(const Tuple& tuple) {
    if (const auto known = found_.find(tuple[0]); known != found_.end()) return known->second == tuple;
    const Step& first = step(tuple[0]);
    for (const size_t s : tuple) {
      if (!suits_(s) || !taken_.insert(s).second || &step(s).element->info() != &first.element->info() ||
          step(s).targets.size() != first.targets.size())
        return false;
    }
    found_.emplace(tuple[0], tuple);
    for (size_t port = 0; port < first.targets.size(); ++port) {
      Tuple next;
      size_t exits = 0;
      for (const size_t s : tuple) {
        next.push_back(step(s).targets[port]);
        exits += step(s).targets[port] >= kExit;
      }
      if (exits == tuple.size()) continue;
      if (exits > 0 || !visit(next)) return false;
    }
    return true;
  }

  /// True if nothing leads to a way but the step in front of it, and its own steps.
  bool closed(size_t fan) const {
    for (const Entry& entry : plan_.entries())
      if (taken_.count(entry.step)) return false;
    for (size_t s = 0; s < plan_.steps().size(); ++s)
      for (const uint16_t target : step(s).targets)
        if (s != fan && !taken_.count(s) && taken_.count(target)) return false;
    return true;
  }

  const Plan& plan_;
  const std::function<bool(size_t)>& suits_;
  std::map<size_t, Tuple> found_;
  std::set<size_t> taken_;
};

}  // namespace

EqualWays find_equal_ways(const Plan& plan, const std::function<bool(size_t)>& suits) {
  const size_t n = plan.steps().size();
  EqualWays ways;
  for (size_t s = 0; s < n; ++s) ways.members.push_back({s});
  ways.fans.assign(n, false);
  Walk walk(plan, suits);
  // In the order of the plan, so that the ways behind a step are found before those within them, which then have no part
  // of their own.
  for (size_t s = 0; s < n; ++s) {
    const std::vector<uint16_t>& targets = plan.steps()[s].targets;
    if (targets.size() < 2 || targets.size() > kMostWays || ways.members[s].size() != 1) continue;
    const auto inner = [](uint16_t t) { return t < kExit; };
    if (!std::all_of(targets.begin(), targets.end(), inner)) continue;
    const std::map<size_t, Tuple> found = walk.from(Tuple(targets.begin(), targets.end()), s);
    if (found.empty()) continue;
    ways.fans[s] = true;
    for (const auto& [first, tuple] : found) {
      for (const size_t member : tuple) ways.members[member].clear();
      ways.members[first] = tuple;
    }
  }
  return ways;
}

}  // namespace headrace::offload
