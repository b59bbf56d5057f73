#pragma once
/// \file
/// A machine that the simulator simulates, and what it can do at most.

#include <cstddef>
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
    double cpu_beside = 0;       ///< c, while many packets go to devices; 0: the same
    double batch_cycles = 0;     ///< of the CPU for a batch of any size
    std::vector<double> device;  ///< d by device, for full jobs and without what a job costs
    std::vector<double> mpps;    ///< by device: what the device itself can do
    int link_bytes = 64;         ///< of a packet, over the link
    bool payload = false;
    int most_job = 1024;
    int job_bytes = 0;  ///< of packets with link_bytes each
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
  double look_cycles = 0;  ///< that a look for finished jobs costs, and the way to it, while any are under way
  double cold_cycles = 0;  ///< that a chain costs once more on a side that it has not used for a millisecond
  double step_ms = 5;      ///< between decisions, as in BalanceLoop

  /// Cycles to look whether a lane's oldest job is done.
  static constexpr double kLook = 10;

  /// A packet's time on a device: itself and the link work at the same time.
  double device_ns(size_t chain, size_t device) const;
  /// Packets a second that come for a worker.
  double arrivals(size_t worker) const;
  /// The most packets a second, of all workers.
  double optimum() const;
  BalanceSetup setup() const;

 private:
  double optimum(bool with_devices) const;
};

/// A machine that changes: the first phase begins at 0.
struct Phase {
  double at_s = 0;
  Machine machine;
};

/// Reads a machine file: the fields of Machine, and `"steps": [{"at_s": 0.5, "change": {...}}]` with the fields that
/// change, as RFC 7396 merges them (lists as a whole). Empty, with a message, if the text is not one.
std::vector<Phase> read_machine(std::string_view text, std::string& error);

}  // namespace headrace::balance
