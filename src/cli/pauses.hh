#pragma once
/// \file
/// What keeps workers from polling, so that a figure tells whose pauses it has in it.

#include <atomic>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <thread>

#include "headrace/histogram.hh"
#include "runtime/runtime.hh"

namespace headrace::cli {

/// Between reset() and report():
///
/// - the times of workers' steps, busy or not, by the runtime (Runtime::Options::time_steps): all pauses, whoever is to
///   blame; and of the longest ones whose task it was, how long the thread was without its CPU, and page faults;
/// - the same of a bystander, a thread that does nothing but look at the clock, on a CPU without a worker: the machine's
///   own pauses (a hypervisor, interrupts, frequencies);
/// - what the kernel says of workers: how often it took their CPU away, their page faults, and the time that the
///   hypervisor took from their CPUs ("steal").
class PauseMeter {
 public:
  /// \param spare_cpu the bystander's; -1: there is none, and no bystander
  PauseMeter(Runtime& runtime, int spare_cpu);
  ~PauseMeter();
  PauseMeter(const PauseMeter&) = delete;
  PauseMeter& operator=(const PauseMeter&) = delete;

  /// Call both while workers run.
  void reset();
  nlohmann::ordered_json report() const;

  /// Of all workers, since they or the machine started.
  struct KernelCounts {
    uint64_t preemptions = 0;
    uint64_t page_faults = 0;
    double steal_ms = 0;
  };

 private:
  KernelCounts kernel_counts() const;

  Runtime& runtime_;
  KernelCounts before_;
  Histogram bystander_times_;
  std::atomic<bool> stop_{false};
  std::thread bystander_;
};

}  // namespace headrace::cli
