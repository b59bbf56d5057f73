// Balancers that decide badly: workers must not lose, double or reorder a packet for that.

#include <algorithm>
#include <chrono>
#include <limits>
#include <random>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>

#include "headrace/balancer.hh"

namespace headrace::testing {
namespace {

/// Other shares, jobs, places and probes at each step.
class FlipsAll : public Balancer {
 public:
  BalanceDecision step(const BalanceSample&) override {
    BalanceDecision decision = everything_on_cpu();
    for (auto& worker : decision.workers)
      for (ChainDecision& chain : worker) {
        if (const size_t n = chain.shares.size(); n > 0) {
          const unsigned kind = random_() % 4;
          if (kind == 1) chain.shares[random_() % n] = 1;
          if (kind == 2) chain.shares[random_() % n] = 0.5;
          if (kind == 3) chain.shares.assign(n, 0.9 / static_cast<double>(n));
        }
        chain.follow = random_() % 2;
        chain.job = 1 + static_cast<int>(random_() % static_cast<unsigned>(chain.job));
        chain.places = 1 + static_cast<int>(random_() % static_cast<unsigned>(chain.places));
        chain.slice = 1 + static_cast<int>(random_() % 256);
        chain.max_wait_us = static_cast<int>(random_() % 20);
        chain.probe = static_cast<int>(random_() % static_cast<unsigned>(chain.job + 1));
        chain.probe_device = static_cast<int>(random_() % (chain.shares.size() + 1)) - 1;
        chain.stream = std::any_of(setup().devices.begin(), setup().devices.end(),
                                   [](const BalanceSetup::Device& d) { return d.stream; }) &&
                       random_() % 2;
      }
    return decision;
  }

 private:
  std::minstd_rand random_;
};
HEADRACE_BALANCER(FlipsAll, "for tests: decides differently each time")

/// Everything to devices, by stream and to the resident kernel in turn, whether there is both or not.
class FlipsRun : public Balancer {
 public:
  BalanceDecision step(const BalanceSample&) override {
    BalanceDecision decision = everything_on_cpu();
    stream_ = !stream_;
    for (auto& worker : decision.workers)
      for (ChainDecision& chain : worker) {
        if (!chain.shares.empty()) chain.shares[0] = 1;
        chain.stream = stream_;
      }
    return decision;
  }

 private:
  bool stream_ = false;
};
HEADRACE_BALANCER(FlipsRun, "for tests: sends jobs by stream at every second step")

/// What is no number, is not there, or is too large.
class Rubbish : public Balancer {
 public:
  BalanceDecision step(const BalanceSample&) override {
    BalanceDecision decision = everything_on_cpu();
    for (auto& worker : decision.workers)
      for (ChainDecision& chain : worker) {
        ++steps_;
        chain.shares.assign(steps_ % 9, steps_ % 2 ? std::numeric_limits<double>::quiet_NaN() : 1e300);
        chain.job = steps_ % 3 ? -5 : std::numeric_limits<int>::max();
        chain.places = steps_ % 3 ? std::numeric_limits<int>::max() : -1;
        chain.slice = steps_ % 2 ? 0 : -7;
        chain.max_wait_us = steps_ % 2 ? -1 : std::numeric_limits<int>::max();
        chain.probe = steps_ % 2 ? -1 : std::numeric_limits<int>::max();
        chain.probe_device = 77;
      }
    if (steps_ % 5 == 0) decision.workers.resize(steps_ % 7);
    decision.optimum_mpps = std::numeric_limits<double>::infinity();
    return decision;
  }

 private:
  unsigned steps_ = 0;
};
HEADRACE_BALANCER(Rubbish, "for tests: answers nonsense")

/// What a mistake in the code of a balancer may look like.
class Throws : public Balancer {
 public:
  BalanceDecision step(const BalanceSample&) override {
    if (++steps_ > 2) throw std::runtime_error("out of its depth");
    return everything_on_cpu();
  }

 private:
  unsigned steps_ = 0;
};
HEADRACE_BALANCER(Throws, "for tests: throws at its third step")

/// What is no std::exception, where the argument says: configure, start, step, learn or learnt.
class ThrowsAnything : public Balancer {
 public:
  bool configure(std::string_view argument) override {
    where_ = argument;
    throws_at("configure");
    return true;
  }
  void start() override { throws_at("start"); }
  BalanceDecision step(const BalanceSample&) override {
    throws_at("step");
    return everything_on_cpu();
  }
  std::string learnt() const override {
    throws_at("learnt");
    return "something";
  }
  void learn(std::string_view) override { throws_at("learn"); }

 private:
  void throws_at(std::string_view here) const {
    if (where_ == here) throw 1;
  }
  std::string where_;
};
HEADRACE_BALANCER(ThrowsAnything, "for tests: throws a number")

class Slow : public Balancer {
 public:
  BalanceDecision step(const BalanceSample&) override {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    BalanceDecision decision = everything_on_cpu();
    for (auto& worker : decision.workers)
      for (ChainDecision& chain : worker)
        if (!chain.shares.empty()) chain.shares[0] = steps_ % 2 ? 0.7 : 0;
    ++steps_;
    return decision;
  }

 private:
  int steps_ = 0;
};
HEADRACE_BALANCER(Slow, "for tests: takes 100 ms")

}  // namespace
}  // namespace headrace::testing
