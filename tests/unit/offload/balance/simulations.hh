#pragma once
/// \file
/// What tests of balancers on simulated machines have in common.

#include <algorithm>
#include <filesystem>
#include <memory>
#include <utility>
#include <vector>

#include "headrace/balancer.hh"
#include "offload/balance/assignment.hh"
#include "offload/balance/simulator.hh"

namespace headrace::balance {

std::unique_ptr<Balancer> balancer_of(const char* text);

std::vector<Phase> machine_file(const std::filesystem::path& path);
/// That of bench/machines.
std::vector<Phase> machine(const char* name);
/// What workers of the H100 machine do with bursts of any size: a packet costs three to five times as much in one of two
/// or three packets as in a full one.
std::vector<Phase> small_bursts(bool matcher);

inline double share_of_optimum(const SimulatedPhase& p) { return p.mpps / p.optimum_mpps; }

/// One setting for each chain, the same all the time.
class Settings : public Balancer {
 public:
  struct Setting {
    double share = 0;
    int job = 1024, places = 1024;  ///< or as many as the chain may have
  };
  explicit Settings(std::vector<Setting> settings) : settings_(std::move(settings)) {}
  BalanceDecision step(const BalanceSample&) override {
    BalanceDecision d = everything_on_cpu();
    for (auto& worker : d.workers)
      for (size_t k = 0; k < worker.size(); ++k) {
        worker[k].shares[0] = settings_[k].share;
        worker[k].job = std::min(worker[k].job, settings_[k].job);
        worker[k].places = std::min(worker[k].places, settings_[k].places);
        worker[k].slice = 16;
      }
    return d;
  }

 private:
  std::vector<Setting> settings_;
};

/// Knows what everything costs, and what changes when: the shares of the linear program from the first step of a phase
/// on. What it misses, noise and whole jobs take.
class AllKnowing : public Balancer {
 public:
  explicit AllKnowing(std::vector<Phase> phases) : phases_(std::move(phases)) {}
  BalanceDecision step(const BalanceSample& sample) override;

 private:
  void plan(const Machine& m);

  std::vector<Phase> phases_;
  size_t planned_ = 0;  ///< phases
  Assignment plan_;     ///< each worker is a group of its own
};

}  // namespace headrace::balance
