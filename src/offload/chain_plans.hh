#pragma once
/// \file
/// The plans of a router's graph, and what of the graph no device can run.

#include <string>
#include <vector>

#include "offload/plan.hh"

namespace headrace::offload {

struct ChainPlans {
  std::vector<Plan> plans;
  /// Size of a parameter block with the images of all plans.
  size_t images = 0;
  /// What stays on the CPU and why, one line each: host elements that packets are pushed through, shaders that are in
  /// no chain, connections by which packets enter a chain on the CPU.
  std::vector<std::string> on_cpu;
};

/// The chains of a graph as plans, whether or not there is a device.
/// \param elements, edges, resolved the graph, by node
ChainPlans plan_chains(const std::vector<Element*>& elements, const std::vector<graph::Edge>& edges,
                       const graph::Resolved& resolved);
/// The chains to compile for the CPU. No shader stays out because a device cannot run it.
/// \param shortest the fewest shaders of a chain
ChainPlans plan_cpu_chains(const std::vector<Element*>& elements, const std::vector<graph::Edge>& edges,
                           const graph::Resolved& resolved, int shortest);

}  // namespace headrace::offload
