#pragma once
/// \file
/// The sums behind the balancer: pure functions of costs, without state and without time. docs/balancing.md derives
/// them.
///
/// Costs are in cycles per packet, rates in packets per second unless a name says otherwise.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "headrace/balancer.hh"

namespace headrace::balance {

/// The most packets of a probe, in full jobs.
inline constexpr int kMostProbeJobs = 4;

/// A job of fewer packets is not full, however many bytes they have.
inline constexpr int kLeastFullJob = 64;

/// a / b; 0 if b is 0.
inline double ratio(uint64_t a, uint64_t b) { return b == 0 ? 0 : static_cast<double>(a) / static_cast<double>(b); }

/// The device that is nearest to a worker, one that exists (0 if the setup does not say).
size_t first_device(const BalanceSetup& setup, size_t worker);

/// The packets of a full job of a chain, if they have `bytes` each; 0: not known.
int largest_job(const BalanceSetup::Chain& chain, double bytes);

/// The decision that sends nothing of a chain to devices.
ChainDecision chain_on_cpu(const BalanceSetup& setup, size_t chain);

/// Workers that run one chain with one device.
struct Sides {
  double cycles = 0;    ///< of all workers in a second: W f
  double outside = 0;   ///< o: what a packet costs outside the chain
  double cpu = 0;       ///< c: what it costs in the chain on the CPU
  double device = 0;    ///< d: what it costs the worker to have the device do it
  double capacity = 0;  ///< B: packets that device and link let through
};
/// Packets that get through when the part `x` of them goes to the device.
double rate(const Sides& sides, double x);
/// The share with the highest rate. Where several have it, the one that costs least cycles. 0 if d >= c.
double best_share(const Sides& sides);
/// The highest rate, R*.
double best_rate(const Sides& sides);

/// What decides how long a packet is in the router if it takes the way over a device. Times in nanoseconds.
struct DevicePath {
  double arrivals = 0;     ///< packets for this device from this worker and chain
  double capacity = 0;     ///< of them, those that the device can do; 0: not known
  double job_ns = 0;       ///< from submission to release, of a job that waits for no other
  double stretch_ns = 0;   ///< the longest time between two looks for finished jobs
  double max_wait_ns = 0;  ///< a job leaves when its first packet has waited this long
  int job = 1;             ///< packets of a full job
  int places = 1;          ///< jobs that may be under way
};
/// The time that 99 of 100 packets stay below: they wait until their job is full, then for jobs before theirs, for the
/// device, and for the worker to look.
double foretold_p99_ns(const DevicePath& path);

/// The jobs that must be under way so that the device always has one: those that it does in the time in which one of
/// them comes back and the next is sent.
int places_needed(const DevicePath& path);

/// Several workers and chains that share devices.
struct Shop {
  struct Use {
    double packets = 1;             ///< parts of the worker's packets that are this chain's; they add up to 1
    double cpu = 0;                 ///< c
    std::vector<double> device;     ///< d by device
    std::vector<double> device_ns;  ///< by device: its time for one packet
  };
  struct Worker {
    double cycles = 0;   ///< in a second
    double outside = 0;  ///< o
    double arrivals = 0;
    std::vector<Use> chains;
  };
  std::vector<Worker> workers;
  size_t devices = 0;
};

/// What one chain of one worker may send to one device.
struct Errand {
  size_t worker = 0, chain = 0, device = 0;
  double packets = 0;    ///< in a second, at most
  double saved = 0;      ///< worker cycles per packet: c - d
  double device_ns = 0;  ///< of the device's time per packet
};
/// Puts first what saves most worker cycles per unit of device time. Errands that save nothing are left out.
void order_by_saving(std::vector<Errand>& errands);

/// By worker: the packets that get through when device time goes to those who save most with it, until each worker does
/// all that arrives. Quick, feasible, and exact for one chain and one device; never above highest_rate().
std::vector<double> greedy_rates(const Shop& shop);

/// The packets of all workers that get through at best: the linear program, solved exactly. It takes seconds for
/// hundreds of workers; it is there to judge balancers by.
double highest_rate(const Shop& shop);

}  // namespace headrace::balance
