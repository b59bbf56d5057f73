#include "offload/balance/sanitize.hh"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <exception>

#include "offload/balance/formulas.hh"

namespace headrace::balance {

namespace {

enum Mistake {
  kWorkers,
  kChains,
  kDevices,
  kNotANumber,
  kRange,
  kSum,
  kJob,
  kWait,
  kPlaces,
  kSlice,
  kProbe,
  kStream,
  kOptimum,
  kMistakes
};
constexpr std::array<const char*, kMistakes> kTexts = {
    "as many lists of chains as there are workers",
    "as many chains as there are",
    "as many shares as there are devices",
    "a share that is a number",
    "a share from 0 to 1",
    "a sum of shares of at most 1",
    "a job size that the chain allows",
    "a waiting time that the chain allows",
    "a number of places that the chain allows",
    "a slice from 1 to 65536 packets",
    "a probe of at most four jobs, to a device that exists",
    "a run that a device offers: none takes jobs by stream",
    "an optimum that is a number",
};

class Judge {
 public:
  Judge(const BalanceSetup& setup, Corrections& corrections)
      : setup_(setup),
        streams_(std::any_of(setup.devices.begin(), setup.devices.end(),
                             [](const BalanceSetup::Device& d) { return d.stream; })),
        corrections_(corrections) {}

  void at(size_t worker, size_t chain) {
    worker_ = worker;
    chain_ = chain;
  }
  void wrong(Mistake mistake) {
    corrections_.add(fmt::format("expected {}", kTexts[mistake]), fmt::format("worker {}, chain {}", worker_, chain_));
  }
  void clamp(int& value, int least, int most, Mistake mistake) {
    const int good = std::clamp(value, least, std::max(least, most));
    if (good != value) wrong(mistake);
    value = good;
  }
  void check(ChainDecision& decision, const BalanceSetup::Chain& chain) {
    if (decision.shares.size() != setup_.devices.size()) {
      wrong(kDevices);
      decision.shares.resize(setup_.devices.size(), 0.0);
    }
    double sum = 0;
    for (double& share : decision.shares) {
      if (std::isnan(share)) {
        wrong(kNotANumber);
        share = 0;
      }
      if (share < 0 || share > 1) {
        wrong(kRange);
        share = std::clamp(share, 0.0, 1.0);
      }
      sum += share;
    }
    if (sum > 1) {
      // Sums like 0.7 + 0.2 + 0.1 are rounded up by a little, which is no mistake.
      if (sum > 1 + 1e-9) wrong(kSum);
      double left = 1;
      for (double& share : decision.shares) {
        share = std::min(share / sum, left);
        left -= share;
      }
    }
    clamp(decision.job, 1, chain.most_job, kJob);
    clamp(decision.max_wait_us, 0, chain.most_wait_us, kWait);
    clamp(decision.places, 1, chain.most_places, kPlaces);
    clamp(decision.slice, 1, 65536, kSlice);
    const int devices = static_cast<int>(setup_.devices.size());
    if (decision.probe < 0 || decision.probe > kMostProbeJobs * std::max(chain.most_job, 1) ||
        decision.probe_device < -1 || decision.probe_device >= devices) {
      wrong(kProbe);
      decision.probe = 0;
      decision.probe_device = -1;
    }
    if (decision.stream && !streams_) {
      wrong(kStream);
      decision.stream = false;
    }
  }

 private:
  const BalanceSetup& setup_;
  const bool streams_;  // some device does
  size_t worker_ = 0, chain_ = 0;
  Corrections& corrections_;
};

}  // namespace

void Corrections::add(const Kind& kind) {
  all_ += kind.count;
  const auto known = std::find_if(kinds_.begin(), kinds_.end(), [&](const Kind& k) { return k.text == kind.text; });
  // What a balancer throws may have another text each time.
  constexpr size_t kMostKinds = 32;
  if (known != kinds_.end())
    known->count += kind.count;
  else if (kinds_.size() < kMostKinds)
    kinds_.push_back(kind);
}

void Corrections::add(const Corrections& later) {
  const uint64_t all = all_ + later.all_;
  for (const Kind& kind : later.kinds_) add(kind);
  all_ = all;
}

std::vector<std::string> Corrections::lines() const {
  std::vector<std::string> lines;
  for (const Kind& k : kinds_)
    lines.push_back(fmt::format("{} ({} time{}, first at {})", k.text, k.count, k.count == 1 ? "" : "s", k.first));
  return lines;
}

std::vector<std::string> Corrections::kinds() const {
  std::vector<std::string> kinds;
  for (const Kind& k : kinds_) kinds.push_back(fmt::format("{}, first at {}", k.text, k.first));
  return kinds;
}

void sanitize(BalanceDecision& decision, const BalanceSetup& setup, Corrections& corrections) {
  Judge judge(setup, corrections);
  const size_t workers = static_cast<size_t>(std::max(setup.workers, 0));
  if (decision.workers.size() != workers) {
    judge.at(decision.workers.size(), 0);
    judge.wrong(kWorkers);
    decision.workers.resize(workers);
  }
  for (size_t w = 0; w < workers; ++w) {
    std::vector<ChainDecision>& chains = decision.workers[w];
    judge.at(w, chains.size());
    if (chains.size() != setup.chains.size()) {
      judge.wrong(kChains);
      const size_t had = chains.size();
      chains.resize(setup.chains.size());
      for (size_t k = had; k < chains.size(); ++k) chains[k] = chain_on_cpu(setup, k);
    }
    for (size_t k = 0; k < chains.size(); ++k) {
      judge.at(w, k);
      judge.check(chains[k], setup.chains[k]);
    }
  }
  if (!std::isfinite(decision.optimum_mpps) || decision.optimum_mpps < 0) {
    judge.wrong(kOptimum);
    decision.optimum_mpps = 0;
  }
}

std::string thrown_by(const char* name, const std::function<void()>& call) {
  try {
    call();
    return {};
  } catch (const std::exception& error) {
    return fmt::format("{} threw: {}", name, error.what());
  } catch (...) {
    return fmt::format("{} threw what is no std::exception", name);
  }
}

BalanceDecision decide(Balancer& balancer, const BalanceSample& sample, const BalanceDecision& last, uint64_t number,
                       Corrections& corrections) {
  BalanceDecision decision;
  const std::string threw = thrown_by("step()", [&] { decision = balancer.step(sample); });
  if (!threw.empty()) {
    corrections.add(threw, fmt::format("decision {}", number));
    // Packets go on as it has said before.
    decision = last.workers.empty() ? balancer.everything_on_cpu() : last;
  }
  sanitize(decision, balancer.setup(), corrections);
  return decision;
}

void teach(Balancer& balancer, const std::string& learnt, Corrections& corrections) {
  if (learnt.empty()) return;
  const std::string threw = thrown_by("learn()", [&] { balancer.learn(learnt); });
  if (!threw.empty()) corrections.add(threw, "the start");
}

}  // namespace headrace::balance
