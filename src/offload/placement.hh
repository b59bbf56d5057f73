#pragma once
/// \file
/// Which device a worker uses first, on machines with several nodes of memory.

#include <functional>
#include <vector>

namespace headrace::offload {

/// A device for every worker: as near as may be (a copy to a device behind another node crosses the link between them),
/// but no device gets more than its even share of workers, rounded up.
/// \param workers, devices their NUMA nodes; -1: not known, and then all are as far
/// \param distance between two nodes, as firmware gives it (10: the same node)
std::vector<int> place_workers(const std::vector<int>& workers, const std::vector<int>& devices,
                               const std::function<int(int, int)>& distance);

/// The NUMA node of a CPU of this machine; -1 if unknown.
int node_of_cpu(int cpu);
/// What the kernel says of the way between two nodes of this machine.
int node_distance(int from, int to);

}  // namespace headrace::offload
