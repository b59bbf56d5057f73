#include "offload/balance/loop.hh"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <utility>

#include "headrace/thread_name.hh"
#include "offload/balance/trace.hh"
#include "offload/job_clock.hh"

namespace headrace::offload {

std::unique_ptr<BalanceLoop> BalanceLoop::make(const BalanceSetup& setup, const std::vector<std::string>& names,
                                               Errors& errors) {
  std::unique_ptr<BalanceLoop> loop(new BalanceLoop);
  loop->setup_ = setup;
  for (size_t k = 0; k < names.size(); ++k) {
    auto one = std::find_if(loop->all_.begin(), loop->all_.end(), [&](const One& o) { return o.name == names[k]; });
    if (one == loop->all_.end()) {
      std::string why;
      std::unique_ptr<Balancer> balancer = make_balancer(names[k], why);
      if (!balancer) {
        (void)errors.error("--balancer: {}", why);
        return nullptr;
      }
      BalanceSetup own = setup;
      for (size_t i = 0; i < own.chains.size(); ++i) own.chains[i].balanced &= names[i] == names[k];
      const std::string threw = balance::thrown_by("start()", [&] { balancer->set_setup(std::move(own)); });
      if (!threw.empty()) {
        (void)errors.error("--balancer: {}: {}", names[k], threw);
        return nullptr;
      }
      one = loop->all_.emplace(loop->all_.end());
      one->name = names[k];
      one->balancer = std::move(balancer);
      one->chains.resize(names.size());
    }
    one->chains[k] = true;
  }
  for (int w = 0; w < setup.workers; ++w) {
    loop->links_.push_back(std::make_unique<BalanceLink>());
    loop->links_.back()->shape(w, setup.chains.size(), setup.devices.size());
  }
  loop->seen_.resize(loop->links_.size());
  return loop;
}

void BalanceLoop::start() {
  if (!JobClock::simulated())
    thread_ = std::thread([this] {
      name_thread("balancer");
      run();
    });
}

void BalanceLoop::stop() {
  {
    const std::lock_guard guard(stop_lock_);
    stop_ = true;
  }
  stop_called_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void BalanceLoop::run() {
  std::unique_lock guard(stop_lock_);
  while (!stop_) {
    const int64_t period = heard_ ? kPeriodNs : kQuietPeriodNs;
    if (stop_called_.wait_for(guard, std::chrono::nanoseconds(period), [this] { return stop_; })) return;
    guard.unlock();
    step(JobClock::ns());
    guard.lock();
  }
}

void BalanceLoop::step(int64_t now) {
  BalanceSample sample;
  sample.at_ns = now;
  heard_ = false;
  Load load;
  for (const auto& link : links_)
    if (const WorkerSample* const from = link->sample()) {
      heard_ = true;
      load.cycles += from->cycles;
      load.busy += from->busy;
      if (link->decides()) sample.workers.push_back(*from);
      link->sample_read();
    }
  if (heard_) {
    const std::lock_guard guard(lock_);
    load_.cycles += load.cycles;
    load_.busy += load.busy;
  }
  if (sample.workers.empty()) return;
  const uint64_t number = decisions_.load() + 1;
  BalanceDecision together;
  for (One& one : all_) {
    BalanceDecision decision;
    balance::Corrections corrections;
    bool slow = false;
    {
      const std::lock_guard asking(asking_);
      const int64_t begin = JobClock::ns();
      decision = balance::decide(*one.balancer, sample, one.last, number, corrections);
      slow = JobClock::ns() - begin > kPeriodNs;
    }
    const std::lock_guard guard(lock_);
    one.corrections.add(corrections);
    if (slow)
      one.slow.add(fmt::format("step() took longer than the {} ms between steps", kPeriodNs / 1'000'000),
                   fmt::format("decision {}", number));
    if (together.workers.empty()) {
      together = decision;
    } else {
      for (size_t w = 0; w < together.workers.size(); ++w)
        for (size_t k = 0; k < one.chains.size(); ++k)
          if (one.chains[k]) together.workers[w][k] = decision.workers[w][k];
    }
    one.last = std::move(decision);
  }
  decisions_.store(number);
  for (size_t w = 0; w < links_.size(); ++w) {
    BalanceLink::Decision* const place = links_[w]->decision_place();
    if (!place) continue;  // the worker sleeps, or is late
    place->number = number;
    std::copy(together.workers[w].begin(), together.workers[w].end(), place->chains.begin());
    links_[w]->decision_ready();
  }
  const std::lock_guard guard(lock_);
  Step& noted = trace_.emplace_back();
  noted.sample = sample;
  for (const One& one : all_) noted.decisions.push_back(one.last);
  if (file_.is_open() && !file_.write(lines(noted)))
    Errors(Errors::Output::kStderr)
        .warning("--balance-trace: {}: no more can be written ({}), so the trace ends", file_name_,
                 std::strerror(errno));
  if (trace_.size() > kTraceSteps) trace_.pop_front();
  for (WorkerSample& s : sample.workers) seen_[static_cast<size_t>(s.worker)] = std::move(s);
  longest_step_ns_ = std::max(longest_step_ns_, JobClock::ns() - now);
}

std::string BalanceLoop::head() const {
  std::string text;
  for (const One& one : all_)
    text +=
        balance::trace_line(balance::TraceHead{one.balancer->setup(), one.name, one.taught, &one != &all_[0]}) + '\n';
  return text;
}

std::string BalanceLoop::lines(const Step& step) const {
  std::string text = balance::trace_line(step.sample) + '\n';
  for (size_t i = 0; i < all_.size(); ++i)
    text += balance::trace_line(step.decisions[i], all_.size() > 1 ? all_[i].name : "") + '\n';
  return text;
}

bool BalanceLoop::write_trace(const std::string& file) {
  file_name_ = file;
  return file_.open(file, head());
}

std::string BalanceLoop::trace(size_t steps) const {
  const std::lock_guard guard(lock_);
  std::string text = head();
  for (size_t i = trace_.size() - std::min(steps, trace_.size()); i < trace_.size(); ++i) text += lines(trace_[i]);
  return text;
}

std::vector<BalanceLoop::Learnt> BalanceLoop::learnt() {
  std::vector<Learnt> all;
  const std::lock_guard asking(asking_);
  for (const One& one : all_) {
    Learnt& of = all.emplace_back();
    of.balancer = one.name;
    of.threw = balance::thrown_by("learnt()", [&] { of.text = one.balancer->learnt(); });
  }
  return all;
}

void BalanceLoop::learn(const std::vector<Learnt>& before) {
  for (One& one : all_) {
    const auto of = std::find_if(before.begin(), before.end(), [&](const Learnt& l) { return l.balancer == one.name; });
    if (of == before.end()) continue;
    // The balancer that threw ends with its router, and so do its mistakes.
    if (!of->threw.empty()) one.corrections.add(of->threw, "the start");
    one.taught = of->text;
    balance::teach(*one.balancer, one.taught, one.corrections);
  }
}

std::string BalanceLoop::summary() const {
  const std::lock_guard guard(lock_);
  std::string text;
  for (const One& one : all_)
    if (!one.last.why.empty()) text += fmt::format("{}{}", text.empty() ? "" : "; ", one.last.why);
  return text;
}

std::vector<std::string> BalanceLoop::mistakes() const {
  const std::lock_guard guard(lock_);
  std::vector<std::string> all;
  for (const One& one : all_)
    for (const std::string& kind : one.corrections.kinds()) all.push_back(fmt::format("{}: {}", one.name, kind));
  return all;
}

double BalanceLoop::optimum_mpps() const {
  const std::lock_guard guard(lock_);
  for (const One& one : all_)
    if (one.last.optimum_mpps > 0) return one.last.optimum_mpps;
  return 0;
}

BalanceLoop::Load BalanceLoop::load() const {
  const std::lock_guard guard(lock_);
  return load_;
}

std::string BalanceLoop::describe() const {
  const std::lock_guard guard(lock_);
  std::string text;
  for (const One& one : all_) {
    text += fmt::format("balancer: {}\n", one.name);
    text += fmt::format("why: {}\n", !one.last.why.empty()      ? one.last.why
                                     : one.last.workers.empty() ? "no traffic yet"
                                                                : "(the balancer gives no reason)");
    if (one.last.optimum_mpps > 0) text += fmt::format("optimum: {:.2f} Mpps by its model\n", one.last.optimum_mpps);
    if (one.corrections.all() > 0)
      text += fmt::format("corrected: {} values of its decisions\n", one.corrections.all());
    for (const std::string& line : one.corrections.lines()) text += fmt::format("corrected: {}\n", line);
    for (const std::string& line : one.slow.lines()) text += fmt::format("slow: {}\n", line);
  }
  text += fmt::format("decisions: {}, the longest took {} us\n", decisions_.load(), longest_step_ns_ / 1000);
  for (size_t k = 0; k < setup_.chains.size(); ++k) {
    // Sums over workers of their last samples.
    double mpps = 0, cpu = 0, cpu_timed = 0, p99 = 0;
    std::vector<double> device(setup_.devices.size()), timed(device), share(device), full(device), went(device);
    std::vector<uint64_t> jobs(device.size()), job_ns(jobs), stream_jobs(jobs), stream_job_ns(jobs);
    size_t workers = 0;
    for (const WorkerSample& s : seen_) {
      if (s.chains.size() <= k || s.ns == 0) continue;
      const ChainSample& c = s.chains[k];
      ++workers;
      mpps += static_cast<double>(c.arrived) * 1e3 / static_cast<double>(s.ns);
      cpu += static_cast<double>(c.cpu.cycles);
      cpu_timed += static_cast<double>(c.cpu.timed);
      p99 = std::max(p99, static_cast<double>(c.delay_p99_ns) * 1e-3);
      for (size_t d = 0; d < c.devices.size(); ++d) {
        device[d] += static_cast<double>(c.devices[d].cycles);
        timed[d] += static_cast<double>(c.devices[d].timed);
        share[d] += c.devices[d].share;
        full[d] += static_cast<double>(c.devices[d].full);
        went[d] += static_cast<double>(c.devices[d].packets);
        stream_jobs[d] += c.devices[d].stream_jobs;
        stream_job_ns[d] += c.devices[d].stream_job_ns;
        jobs[d] += c.devices[d].jobs - c.devices[d].stream_jobs;
        job_ns[d] += c.devices[d].job_ns - c.devices[d].stream_job_ns;
      }
    }
    text += fmt::format("chain {}: {}, {:.2f} Mpps, p99 {:.1f} us, CPU {}\n", k, setup_.chains[k].name, mpps, p99,
                        cpu_timed > 0 ? fmt::format("{:.0f} cycles per packet", cpu / cpu_timed) : "not measured now");
    const auto of_jobs = [](const char* kind, uint64_t n, uint64_t ns) {
      return n == 0 ? std::string()
                    : fmt::format(", {} {} jobs of {:.1f} us", n, kind,
                                  static_cast<double>(ns) * 1e-3 / static_cast<double>(n));
    };
    for (size_t d = 0; d < device.size(); ++d)
      text +=
          fmt::format("chain {} device {}: share {:.3f}, {}, full {:.3f}{}{}\n", k, d,
                      workers > 0 ? share[d] / static_cast<double>(workers) : 0,
                      timed[d] > 0 ? fmt::format("{:.0f} cycles per packet", device[d] / timed[d]) : "not measured now",
                      full[d] + went[d] > 0 ? full[d] / (full[d] + went[d]) : 0,
                      of_jobs("resident", jobs[d], job_ns[d]), of_jobs("stream", stream_jobs[d], stream_job_ns[d]));
  }
  for (size_t w = 0; w < seen_.size(); ++w) {
    const WorkerSample& s = seen_[w];
    if (s.cycles == 0) continue;
    const auto part = [&](uint64_t of) { return static_cast<double>(of) / static_cast<double>(s.cycles); };
    double arrived = 0, in_chains = 0;
    const auto add = [&](const SideSample& side) {
      if (side.timed > 0)
        in_chains +=
            static_cast<double>(side.cycles) / static_cast<double>(side.timed) * static_cast<double>(side.packets);
    };
    for (const ChainSample& c : s.chains) {
      arrived += static_cast<double>(c.arrived);
      add(c.cpu);
      for (const DeviceSample& d : c.devices) add(d);
    }
    const double outside = arrived > 0 ? std::max(static_cast<double>(s.busy) - in_chains, 0.0) / arrived : 0;
    text += fmt::format(
        "worker {}: busy {:.2f}, outside of chains {:.0f} cycles per packet, waiting {:.2f}, full bursts {:.2f}, "
        "longest stretch {:.1f} us\n",
        w, part(s.busy), outside, part(s.waiting),
        s.bursts > 0 ? static_cast<double>(s.full_bursts) / static_cast<double>(s.bursts) : 0,
        static_cast<double>(s.stretch_ns) * 1e-3);
  }
  return text;
}

}  // namespace headrace::offload
