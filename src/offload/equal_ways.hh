#pragma once
/// \file
/// Ways through a chain that do the same with other values, such as those behind a routing table's outputs.

#include <functional>
#include <vector>

#include "offload/plan.hh"

namespace headrace::offload {

struct EqualWays {
  /// By step: this step, and those that do the same on the other ways. Empty for those: they are with the first.
  std::vector<std::vector<size_t>> members;
  /// By step: all its outputs lead to ways that are equal. Way number i begins at output i.
  std::vector<bool> fans;

  bool is_member(size_t step) const { return members[step].empty(); }
};

/// Finds steps all of whose outputs lead to equal ways: groups of shaders of the same classes, connected in the same manner,
/// to which nothing else leads.
/// \param suits whether a step may be part of such a way
EqualWays find_equal_ways(const Plan& plan, const std::function<bool(size_t)>& suits);

}  // namespace headrace::offload
