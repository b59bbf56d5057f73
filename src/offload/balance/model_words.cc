// What Model says to people.

#include <fmt/format.h>

#include "offload/balance/Model.hh"

namespace headrace::balance {

double Model::optimum() const {
  Shop shop;
  shop.devices = devices_.size();
  for (const WorkerState& w : workers_) {
    if (!w.known) continue;
    Shop::Worker& worker = shop.workers.emplace_back();
    worker.cycles = hz();
    worker.outside = std::max(outside_in_full(w), 1.0);
    worker.arrivals = 1e12;
    for (size_t k = 0; k < w.chains.size(); ++k) {
      Shop::Use& use = worker.chains.emplace_back();
      use.packets = w.chains[k].part;
      use.cpu = cpu_cost_in_full(w, k);
      for (size_t d = 0; d < devices_.size(); ++d) {
        const double cost = device_cost_of(w, k, d);
        use.device.push_back(cost > 0 && devices_[d].pause.over(now_) && !lacks(w, d) ? cost : use.cpu);
        use.device_ns.push_back(device_ns(k, d));
      }
    }
  }
  double sum = 0;
  for (const double rate : greedy_rates(shop)) sum += rate;
  return std::isfinite(sum) ? std::min(sum, 1e15) : 0;
}

double Model::device_ns(size_t k, size_t d) const {
  if (now_ - devices_[d].bound_ns > 1e9) return 0;
  return 1e9 * devices_[d].times.seconds(k);
}

int Model::places_lacked(const WorkerState& w, size_t k, size_t d) const {
  const DeviceState& device = devices_[d];
  if (w.chains[k].lanes[d].full <= kMuch || now_ - device.full_ns < kSettled) return 0;
  DevicePath path;
  path.capacity = device.full_capacity / users_of(w, d);
  path.job = w.chains[k].job > 0 ? std::min(w.chains[k].job, most_job(k)) : most_job(k);
  path.job_ns = pairs_[k][d].times.at_least(path.job);
  path.stretch_ns = w.stretch_ns;
  const int needed = places_needed(path);
  return needed > setup().chains[k].most_places ? needed : 0;
}

std::string Model::why() const {
  const WorkerState* hottest = nullptr;
  size_t number = 0;
  for (size_t w = 0; w < workers_.size(); ++w)
    if (workers_[w].known && (!hottest || workers_[w].load > hottest->load)) {
      hottest = &workers_[w];
      number = w;
    }
  if (!hottest) return "no traffic yet";
  std::string text;
  // The chain with most packets speaks for all that are this balancer's.
  size_t k = hottest->chains.size();
  for (size_t i = 0; i < hottest->chains.size(); ++i)
    if (setup().chains[i].balanced &&
        (k == hottest->chains.size() || hottest->chains[i].part > hottest->chains[k].part))
      k = i;
  if (k == hottest->chains.size()) return "no chains";
  const ChainState& chain = hottest->chains[k];
  const double c = cpu_cost_of(*hottest, k);
  double share = 0;
  bool full = false, any_pause = false, refused = false;
  double d = 0;
  int needed = 0;
  for (size_t i = 0; i < devices_.size(); ++i) {
    share += chain.lanes[i].share;
    full |= chain.lanes[i].share > 0 && now_ - devices_[i].bound_ns < 100 * kMs;
    any_pause |= !devices_[i].pause.over(now_) || lacks(*hottest, i);
    refused |= hottest->judge.refuses(i, now_);
    needed = std::max(needed, places_lacked(*hottest, k, i));
    const double cost = device_cost_of(*hottest, k, i);
    if (cost > 0 && (d == 0 || cost < d)) d = cost;
  }
  if (devices_.empty()) {
    text = fmt::format("no device (load {:.2f})", hottest->load);
  } else if (chain.on_device) {
    text = needed > 0              ? fmt::format("places bind: {}, needs {}", setup().chains[k].most_places, needed)
           : full && share < 0.985 ? fmt::format("device binds at {:.2f}", share)
           : hottest->saturated
               ? fmt::format("worker binds (c {:.0f}, d {:.0f})", c, d)
               : fmt::format("device saves cycles (d {:.0f} < c {:.0f}, load {:.2f})", d, c, hottest->load);
  } else if (!hottest->on_devices) {
    text = fmt::format("CPU suffices (load {:.2f})", hottest->load);
  } else if (judge_.refuses(now_)) {
    text = fmt::format("devices lowered the rate ({:.2f} to {:.2f} Mpps): CPU for now", judge_.before() * 1e-6,
                       judge_.after() * 1e-6);
  } else if (refused) {
    text = fmt::format("device lowered the rate ({:.2f} to {:.2f} Mpps): CPU for now", hottest->judge.before() * 1e-6,
                       hottest->judge.after() * 1e-6);
  } else if (any_pause) {
    text = "device is not well or too slow: CPU";
  } else if (d <= 0) {
    text = "learning what the device costs";
  } else if (d >= c * kGain) {
    text = fmt::format("device costs more cycles (d {:.0f} >= c {:.0f})", d, c);
  } else if (setup().chains[k].p99_us <= 0) {
    text = fmt::format("device is left to other chains (d {:.0f} < c {:.0f})", d, c);
  } else {
    text =
        fmt::format("device would break the bound (p99 {:.0f} us foretold)", (chain.foretold + chain.extra_ns) * 1e-3);
  }
  if (chain.undivided >= 0) text += fmt::format("; one bucket of flows has {:.2f} of the packets", chain.heaviest);
  for (size_t i = 0; i < setup().chains.size(); ++i) {
    const double bound = setup().chains[i].p99_us;
    if (hottest->chains[i].late) {
      text += fmt::format("; p99 bound {} us out of reach (seen {:.0f})", bound, hottest->chains[i].p99_ns * 1e-3);
      break;
    }
  }
  if (workers_.size() > 1 && hottest->load > kLeave) text += fmt::format(" on worker {}", number);
  return text;
}

}  // namespace headrace::balance
