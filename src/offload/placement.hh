#pragma once
/// \file
/// Which device a worker uses first, on machines with several NUMA nodes.

#include <cstdint>
#include <functional>
#include <vector>

namespace headrace::offload {

/// Chooses a device for every worker: the nearest one (a copy to a device of another node crosses the link between the
/// nodes), but no device gets more than an even share of workers, rounded up.
/// \param workers, devices their NUMA nodes; -1: unknown, counts as the same node
/// \param distance between two nodes, as the firmware reports it (10: the same node)
std::vector<int> place_workers(const std::vector<int>& workers, const std::vector<int>& devices,
                               const std::function<int(int, int)>& distance);

/// The NUMA node of a CPU of this machine; -1 if unknown.
int node_of_cpu(int cpu);
/// While it lives, memory that the calling thread touches first comes from a node, as long as that has any.
class NearNode {
 public:
  /// \param node -1: wherever the kernel thinks best
  explicit NearNode(int node);
  ~NearNode();
  NearNode(const NearNode&) = delete;
  NearNode& operator=(const NearNode&) = delete;

 private:
  bool changed_ = false;
  int mode_ = 0;
  uint64_t nodes_[16] = {};
};

/// The distance between two nodes of this machine, as the kernel reports it.
int node_distance(int from, int to);

}  // namespace headrace::offload
