#pragma once
/// \file
/// The thread that asks the balancers.

#include <atomic>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "headrace/balancer.hh"
#include "headrace/error.hh"
#include "offload/balance/link.hh"
#include "offload/balance/sanitize.hh"
#include "offload/balance/trace_file.hh"

namespace headrace::offload {

/// Every few milliseconds, gives what workers have measured to a balancer, and its decision to the workers. Chains of one
/// router may have different balancers; each sees everything and decides for its own.
class BalanceLoop {
 public:
  /// \param names of the balancer of each chain, such as "Fixed=0.4"
  /// \returns null if one of them is not known
  static std::unique_ptr<BalanceLoop> make(const BalanceSetup& setup, const std::vector<std::string>& names,
                                           Errors& errors);
  ~BalanceLoop() { stop(); }

  BalanceLink& link(int worker) { return *links_[static_cast<size_t>(worker)]; }
  /// Writes the trace to a file from now on, behind that of the router before. From the first step on, it can be replayed.
  /// Call it behind learn(). False if it cannot be written.
  bool write_trace(const std::string& file);
  /// Begins to ask, in real time. The links must not move or end before stop().
  void start();
  void stop();
  /// One step, at `now_ns`. Called by the thread; by tests without one.
  void step(int64_t now_ns);

  /// What is measured and decided, for people: some lines for each chain.
  std::string describe() const;
  /// A few words on where the packets of all chains go.
  std::string summary() const;
  /// What balancers did wrong so far, each kind once, with its balancer's name.
  std::vector<std::string> mistakes() const;
  /// Of all workers by the model of the first balancer that states it; 0: none does.
  double optimum_mpps() const;
  /// How busy workers were, whether or not a balancer decides.
  struct Load {
    uint64_t cycles = 0;  ///< of all samples until now
    uint64_t busy = 0;    ///< of these, with packets
  };
  Load load() const;
  /// The trace: lines with the setup, and the last `steps` samples and decisions.
  std::string trace(size_t steps) const;
  /// What a balancer has learnt, for the one of this name in the next router.
  struct Learnt {
    std::string balancer, text;
    std::string threw;  ///< by learnt(), in words
  };
  std::vector<Learnt> learnt();
  /// Before start().
  void learn(const std::vector<Learnt>& before);

 private:
  static constexpr int64_t kPeriodNs = 5'000'000;
  /// Between two steps when no worker has anything to say.
  static constexpr int64_t kQuietPeriodNs = 20'000'000;
  /// Samples and decisions that are kept: of some seconds.
  static constexpr size_t kTraceSteps = 1000;

  struct One {
    std::string name;
    std::unique_ptr<Balancer> balancer;
    std::string taught;        // what learn() was called with
    std::vector<bool> chains;  // that are its
    BalanceDecision last;
    balance::Corrections corrections;
    balance::Corrections slow;  // steps
  };
  BalanceLoop() = default;
  void run();
  /// The trace's first lines, and those of a step.
  std::string head() const;
  struct Step {
    BalanceSample sample;
    std::vector<BalanceDecision> decisions;  // of each balancer
  };
  std::string lines(const Step& step) const;

  BalanceSetup setup_;
  std::vector<One> all_;
  std::vector<std::unique_ptr<BalanceLink>> links_;
  std::atomic<uint64_t> decisions_{0};
  mutable std::mutex asking_;  // of balancers
  bool heard_ = false;         // in the last step, a worker

  mutable std::mutex lock_;         // what follows; never taken by a worker
  std::vector<WorkerSample> seen_;  // by worker: the last
  Load load_;
  std::deque<Step> trace_;
  balance::TraceFile file_;
  std::string file_name_;
  int64_t longest_step_ns_ = 0;

  std::mutex stop_lock_;
  std::condition_variable stop_called_;
  bool stop_ = false;
  std::thread thread_;
};

}  // namespace headrace::offload
