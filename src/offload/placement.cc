#include "offload/placement.hh"

#include <fmt/format.h>
#include <linux/mempolicy.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <fstream>
#include <tuple>

namespace headrace::offload {

namespace {
constexpr int kSameNode = 10;
constexpr int kOtherNode = 20;
constexpr int kMostNodes = 64;
constexpr unsigned long kNodeBits = 1024;  // the most nodes that any kernel is built for
}  // namespace

std::vector<int> place_workers(const std::vector<int>& workers, const std::vector<int>& devices,
                               const std::function<int(int, int)>& distance) {
  std::vector<int> placed(workers.size(), -1);
  if (devices.empty()) return placed;
  const auto far = [&](size_t w, size_t d) {
    return workers[w] < 0 || devices[d] < 0 ? kSameNode : distance(workers[w], devices[d]);
  };
  // Nearest pairs first. Among equals, the device with fewer workers, so that workers of one node are spread, too.
  const size_t share = (workers.size() + devices.size() - 1) / devices.size();
  std::vector<size_t> load(devices.size(), 0);
  for (size_t n = 0; n < workers.size(); ++n) {
    std::tuple<int, size_t, size_t, size_t> best{INT_MAX, 0, 0, 0};  // distance, load, worker, device
    for (size_t w = 0; w < workers.size(); ++w) {
      if (placed[w] >= 0) continue;
      for (size_t d = 0; d < devices.size(); ++d)
        if (load[d] < share) best = std::min(best, {far(w, d), load[d], w, d});
    }
    const size_t w = std::get<2>(best), d = std::get<3>(best);
    placed[w] = static_cast<int>(d);
    ++load[d];
  }
  return placed;
}

int node_of_cpu(int cpu) {
  if (cpu < 0) return -1;
  for (int node = 0; node < kMostNodes; ++node)
    if (access(fmt::format("/sys/devices/system/cpu/cpu{}/node{}", cpu, node).c_str(), F_OK) == 0) return node;
  return -1;
}

NearNode::NearNode(int node) {
  static_assert(sizeof nodes_ * 8 == kNodeBits);
  if (node < 0 || node >= kMostNodes) return;
  // Where this is not allowed, or there is one node, memory comes from wherever it does.
  if (syscall(SYS_get_mempolicy, &mode_, nodes_, kNodeBits, nullptr, 0) != 0) return;
  const uint64_t wanted[16] = {uint64_t{1} << node};
  changed_ = syscall(SYS_set_mempolicy, MPOL_PREFERRED, wanted, kNodeBits) == 0;
}

NearNode::~NearNode() {
  if (changed_) syscall(SYS_set_mempolicy, mode_, nodes_, kNodeBits);
}

int node_distance(int from, int to) {
  std::ifstream file(fmt::format("/sys/devices/system/node/node{}/distance", from));
  int distance = 0;
  for (int i = 0; i <= to; ++i)
    if (!(file >> distance)) return from == to ? kSameNode : kOtherNode;
  return distance;
}

}  // namespace headrace::offload
