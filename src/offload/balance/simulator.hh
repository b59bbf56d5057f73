#pragma once
/// \file
/// A machine that does not exist: workers, chains and devices in simulated time, for balancers to be tried on.
///
/// Every worker is simulated burst by burst: it receives, runs packets in slices on the CPU, packs jobs, submits them,
/// looks for finished ones, and moves its shares by follow_share() every millisecond. Devices do jobs in the order in
/// which they come. What is left out: caches, packet lengths within a chain, flows.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "headrace/balancer.hh"

namespace headrace::balance {

/// A machine and its traffic. Costs in cycles per packet.
struct Machine {
  struct Chain {
    std::string name = "chain";
    double part = 1;             ///< of a worker's packets; the parts of all chains add up to 1
    double cpu = 500;            ///< c
    double batch_cycles = 0;     ///< of the CPU for a batch of any size
    std::vector<double> device;  ///< d by device, for full jobs and without what a job costs
    std::vector<double> mpps;    ///< by device: what the device itself can do
    int link_bytes = 64;         ///< of a packet, over the link
    bool payload = false;
    int most_job = 1024;
    int most_places = 8;
    int most_wait_us = 20;
    double p99_us = 0;
  };
  struct Device {
    std::string name = "device";
    int node = 0;
    double link_gb = 50;       ///< GB/s
    double job_us = 6;         ///< what a job takes at least
    double packet_ns = 26;     ///< and for each packet besides; many run at the same time
    double job_cycles = 1000;  ///< of the worker, for a job of any size
    double steal_cycles = 0;  ///< of the worker, for a packet, if they share a CPU: measured as part of what they delay
    double slow = 1;          ///< all of its times are multiplied by this
    bool well = true;         ///< false: it takes no jobs
    bool resident = true, stream = false;         ///< the kinds of jobs that it takes
    int resident_idle_us = 0;                     ///< BalanceSetup::Device; 0: the kernel is always there
    double start_us = 0, start_cycles = 0;        ///< a job takes more that has to start the resident kernel
    double stream_us = 0, stream_job_cycles = 0;  ///< likewise a job by stream; both of the worker, too
    double stays = 0;  ///< part of the device's time that a resident kernel takes from the jobs of the other class
  };
  std::string name = "machine";
  int workers = 1;
  double ghz = 2.1;
  double outside = 100;     ///< o
  double burst_cycles = 0;  ///< outside of chains for a burst of any size
  int burst = 256;          ///< the most packets that a worker receives at once
  int ring = 4096;          ///< packets that wait to be received; others are dropped
  std::vector<double>
      mpps;  ///< by worker: what arrives; the last one is for all further workers. 0: as much as it takes
  std::vector<int> first_device;
  std::vector<Chain> chains;
  std::vector<Device> devices;
  double noise = 0.02;     ///< of measured costs
  double missing = 0.01;   ///< part of the samples
  double late = 0.01;      ///< likewise; they come with the next step
  double pause_ms = 0;     ///< a worker stands still this long
  double pauses = 0;       ///< times in a second, by worker
  double cold_cycles = 0;  ///< that a chain costs once more on a side that it has not used for a millisecond
  double step_ms = 5;      ///< between decisions, as in BalanceLoop

  /// The most packets a second, of all workers.
  double optimum() const;
  BalanceSetup setup() const;
};

/// A machine that changes: the first phase begins at 0.
struct Phase {
  double at_s = 0;
  Machine machine;
};

/// Reads a machine file: the fields of Machine, and `"steps": [{"at_s": 0.5, "change": {...}}]` with the fields that
/// change, as RFC 7396 merges them (lists as a whole). Empty, with a message, if the text is not one.
std::vector<Phase> read_machine(std::string_view text, std::string& error);

/// What the simulation saw in one step.
struct SimulatedStep {
  double at_s = 0;           ///< its end
  double mpps = 0;           ///< packets that workers received
  double p99_us = 0;         ///< of the time in the router, of the chain where it is longest as a part of its bound
  double share = 0;          ///< part of the packets that devices did
  double worst_us = 0;       ///< p99 of the chain with a bound, 0: none has one
  double worker_cycles = 0;  ///< busy cycles of all workers, in a second
  std::string why;
};

/// The outcome of one phase.
struct SimulatedPhase {
  double at_s = 0;
  double optimum_mpps = 0;
  double mpps = 0;           ///< from 100 ms behind its begin on; if it is shorter, in its second half
  double at_95_ms = -1;      ///< from here on the rate of any 30 ms is at least 0.95 of the optimum; -1: never
  double at_98_ms = -1;      ///< likewise 0.98
  double cycling = 0;        ///< highest less lowest rate of 50 ms, from 100 ms on, as a part of the optimum
  double p99_us = 0;         ///< the median of the steps' p99
  double bound_us = 0;       ///< the least bound of a chain; 0: none
  double over_bound = 0;     ///< part of the steps from 100 ms on whose p99 was over it
  double share = 0;          ///< of devices
  double worker_cycles = 0;  ///< busy, in a second
  double stated_mpps = 0;    ///< the optimum by the balancer itself, at the end
  std::string why;           ///< at the end
};

/// How many phases are as they should be (docs/balancing.md).
struct SimulatedScore {
  int phases = 0;
  int near = 0;     ///< reach 0.98 of the optimum
  int soon_95 = 0;  ///< reach 0.95 of it within 100 ms, for good
  int soon_98 = 0;  ///< likewise 0.98
  int steady = 0;   ///< do not cycle by more than 2 %
  int held = 0;     ///< hold their bound in 98 % of the steps, or have none

  void add(const SimulatedPhase& phase);
};

struct Simulated {
  std::vector<SimulatedStep> steps;
  std::vector<SimulatedPhase> phases;
  uint64_t jobs = 0, stream_jobs = 0;  ///< that came back; of these, those by stream
  uint64_t complaints = 0;             ///< values that sanitize() had to change
  std::vector<std::string> trace;      ///< if it was asked for
  double step_us = 0;                  ///< a decision took on average; of real time
};

/// Runs `balancer` on the machine for `seconds`. The same seed gives the same samples.
/// \param trace_as writes a trace with this name of a balancer; empty: none
Simulated simulate(const std::vector<Phase>& phases, Balancer& balancer, double seconds, uint64_t seed,
                   const std::string& trace_as = {});

}  // namespace headrace::balance
