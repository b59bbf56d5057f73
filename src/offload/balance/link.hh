#pragma once
/// \file
/// What a worker and the balancer's thread give each other.

#include <atomic>
#include <cstdint>
#include <vector>

#include "headrace/balancer.hh"

namespace headrace::offload {

/// One place for a sample and one for a decision. Neither side ever waits for the other: a worker that finds its last sample
/// unread goes on adding up, and a decision that a worker has not taken yet stays as it is.
class BalanceLink {
 public:
  struct Decision {
    uint64_t number = 0;
    std::vector<ChainDecision> chains;
  };

  // The worker's side.

  /// Null while the last sample has not been read. What is there is for the worker to overwrite, without changing sizes.
  WorkerSample* sample_place() { return sampled_.load(std::memory_order_acquire) ? nullptr : &sample_; }
  /// \param decides whether the balancer decides for any of the worker's chains. If not, only how busy it was is of interest.
  void sample_ready(bool decides) {
    decides_ = decides;
    sampled_.store(true, std::memory_order_release);
  }
  /// A decision that has not been taken; null if there is none.
  const Decision* decision() const { return decided_.load(std::memory_order_acquire) ? &decision_ : nullptr; }
  void decision_taken() { decided_.store(false, std::memory_order_release); }

  // The balancer's side.

  const WorkerSample* sample() const { return sampled_.load(std::memory_order_acquire) ? &sample_ : nullptr; }
  /// Of the sample that is there.
  bool decides() const { return decides_; }
  void sample_read() { sampled_.store(false, std::memory_order_release); }
  Decision* decision_place() { return decided_.load(std::memory_order_acquire) ? nullptr : &decision_; }
  void decision_ready() { decided_.store(true, std::memory_order_release); }

  /// Before either side uses it.
  void shape(int worker, size_t chains, size_t devices) {
    sample_.worker = worker;
    sample_.chains.resize(chains);
    for (ChainSample& chain : sample_.chains) chain.devices.resize(devices);
    decision_.chains.resize(chains);
  }

 private:
  alignas(64) std::atomic<bool> sampled_{false};
  WorkerSample sample_;
  bool decides_ = false;
  alignas(64) std::atomic<bool> decided_{false};
  Decision decision_;
};

}  // namespace headrace::offload
