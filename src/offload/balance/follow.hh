#pragma once
/// \file
/// How a worker moves its shares between decisions: the same in the engine and in the simulator.

#include <algorithm>
#include <cstddef>
#include <vector>

#include "headrace/balancer.hh"

namespace headrace::balance {

/// A share that differs by no more from nothing, or from everything, is that.
constexpr double kNothing = 5e-4;
inline bool is_everything(double share) { return share >= 1 - kNothing; }

/// What packets of one chain cost the worker on both sides, in cycles, as they were measured last. Where the CPU costs
/// much more, a packet too many for it does more harm than one too many for the device.
class Lean {
 public:
  void see_cpu(double cycles, double packets) {
    if (packets > 0) cpu_ = cycles / packets;
  }
  void see_devices(double cycles, double packets) {
    if (packets > 0) device_ = cycles / packets;
  }
  /// How much a packet without a place counts, at most 1.
  double weight() const {
    constexpr double kLeast = 0.05;
    return cpu_ > 0 && device_ > 0 ? std::clamp(device_ / cpu_, kLeast, 1.0) : 1;
  }

 private:
  double cpu_ = 0, device_ = 0;
};

/// How many packets of a probe of the CPU only warm its caches: where a device does everything, the first packets of the
/// chain find its code and tables cold, and cost several times what they do in a row. The others are measured. Of few
/// packets, most of the second half would be cold, too: they are measured as a whole.
inline int warming_packets(int probe) {
  constexpr int kFew = 64;
  return probe < kFew ? 0 : probe / 2;
}
/// Likewise of a probe of a device, in jobs of `job` packets: the first job, if there are others.
inline int warming_packets(int probe, int job) { return probe < 2 * job ? 0 : job; }

/// The part of a worker's time that it may wait for a device before it is worth while to divide packets among the sides.
/// A worker that waits for the part w of its time spends t = (1 - w) f / R cycles on each of R packets a second. If each
/// costs `dividing` more, the CPU gains packets by it only if w f > R dividing, which is w > dividing / (t + dividing) for
/// the t that is spent while it does not wait.
/// \param dividing what it costs to find a packet's bucket, and to sort packets by side, in cycles per packet
/// \param cycles that the worker spends on a packet otherwise; 0: not known
inline double worth_dividing(double dividing, double cycles) {
  return dividing > 0 ? dividing / (std::max(cycles, 0.0) + dividing) : 0;
}

/// What a worker has seen of one device and chain since it looked last.
struct Followed {
  double full = 0;     ///< part of the packets for the device that found no place
  double starved = 0;  ///< part of the looks that found no job there
  double waiting = 0;  ///< part of the worker's time that it waits for devices
};

/// Moves the shares of one chain: follow_share() for each device that has one, with regard to what packets cost, and to
/// places. If a device gets everything, packets without a place wait, and what shows that it is too much is the time in
/// which the worker waits. Otherwise they take the CPU, and the worker does not wait. What a share grows by is the
/// CPU's; but where the CPU has none, a device without enough to do gets what another one has no place for.
/// \param shares by device
/// \param seen likewise
/// \param dividing the part of its time that a worker may wait before packets are divided: worth_dividing()
inline void follow_shares(std::vector<double>& shares, const std::vector<Followed>& seen, const Lean& lean,
                          double dividing, double ms) {
  double cpu = 1;
  for (const double share : shares) cpu -= share;
  const size_t devices = shares.size();
  size_t full = devices, idle = devices;
  for (size_t d = 0; d < devices; ++d) {
    if (shares[d] <= 0) continue;
    if (seen[d].full > 0 && (full == devices || seen[d].full > seen[full].full)) full = d;
    if (seen[d].full <= 0 && (idle == devices || seen[d].starved > seen[idle].starved)) idle = d;
  }
  if (cpu < 2 * kNothing && full < devices && idle < devices) {
    constexpr double kPerMs = 0.25;
    const double moved = std::min(kPerMs * std::min(ms, 4.0) * seen[full].full, 0.1) * shares[full];
    shares[full] -= moved;
    shares[idle] += moved;
    return;
  }
  for (size_t d = 0; d < devices; ++d) {
    const double before = shares[d];
    if (before <= 0) continue;
    const double none = lean.weight() * seen[d].full;
    double next;
    if (is_everything(before))
      next = follow_share(before, seen[d].waiting > dividing ? kFullWanted + lean.weight() * seen[d].waiting : 0,
                          seen[d].starved, ms);
    else
      next = follow_share(before, none, seen[d].starved, ms);
    if (!is_everything(before) && seen[d].full > std::max(dividing, kFullWanted))
      next = std::min(next, 1 - 2 * kNothing);
    next = std::min(next, before + std::max(cpu, 0.0));
    cpu -= next - before;
    shares[d] = next;
  }
}

}  // namespace headrace::balance
