#include "offload/balance/machine.hh"

#include <algorithm>

#include "offload/balance/formulas.hh"

namespace headrace::balance {

double Machine::device_ns(size_t chain, size_t device) const {
  const Device& d = devices[device];
  const double mpps = chains[chain].mpps[device];
  const double self = mpps > 0 ? 1e3 / mpps : 1e9;
  return d.slow * std::max(self, chains[chain].link_bytes / d.link_gb);
}

double Machine::arrivals(size_t worker) const {
  // More than any worker takes.
  constexpr double kAll = 1e9;
  if (mpps.empty()) return kAll;
  const double mine = mpps[std::min(worker, mpps.size() - 1)];
  return mine > 0 ? mine * 1e6 : kAll;
}

double Machine::optimum() const { return std::max(optimum(true), optimum(false)); }

double Machine::optimum(bool with_devices) const {
  const BalanceSetup all = setup();
  Shop shop;
  shop.devices = devices.size();
  for (size_t w = 0; w < static_cast<size_t>(workers); ++w) {
    Shop::Worker& worker = shop.workers.emplace_back();
    worker.cycles = ghz * 1e9;
    worker.outside = outside + burst_cycles / burst;
    worker.arrivals = arrivals(w);
    for (size_t k = 0; k < chains.size(); ++k) {
      Shop::Use& use = worker.chains.emplace_back();
      use.packets = chains[k].part;
      use.cpu = (with_devices && chains[k].cpu_beside > 0 ? chains[k].cpu_beside : chains[k].cpu) +
                (chains[k].part > 0 ? chains[k].batch_cycles / (burst * chains[k].part) : 0);
      for (size_t d = 0; d < devices.size(); ++d) {
        // Each burst has a look at each device in use: at the least, if all of the chain's packets go to one.
        const double looks = chains[k].part > 0 ? kLook / (burst * chains[k].part) : 0;
        const int job = largest_job(all.chains[k], chains[k].link_bytes);
        use.device.push_back(chains[k].device[d] + devices[d].job_cycles / job + devices[d].steal_cycles + looks);
        use.device_ns.push_back(with_devices && devices[d].well ? device_ns(k, d) : 1e12);
      }
    }
  }
  return highest_rate(shop);
}

BalanceSetup Machine::setup() const {
  BalanceSetup setup;
  setup.workers = workers;
  setup.cycles_per_second = ghz * 1e9;
  setup.first_device = first_device;
  if (!devices.empty()) setup.first_device.resize(static_cast<size_t>(workers));
  for (const Chain& c : chains) {
    BalanceSetup::Chain& chain = setup.chains.emplace_back();
    chain.name = c.name;
    chain.payload = c.payload;
    chain.bytes_there = chain.bytes_back = c.link_bytes / 2;
    chain.most_job = c.most_job;
    chain.job_bytes = c.job_bytes;
    chain.most_places = c.most_places;
    chain.most_wait_us = c.most_wait_us;
    chain.p99_us = c.p99_us;
  }
  for (const Device& d : devices)
    setup.devices.push_back({.name = d.name,
                             .node = d.node,
                             .resident = d.resident,
                             .stream = d.stream,
                             .resident_idle_us = d.resident_idle_us});
  return setup;
}

}  // namespace headrace::balance
