#include "offload/balance/formulas.hh"

#include <algorithm>
#include <cmath>

namespace headrace::balance {

size_t first_device(const BalanceSetup& setup, size_t worker) {
  const int device = worker < setup.first_device.size() ? setup.first_device[worker] : 0;
  return device < 0 || static_cast<size_t>(device) >= setup.devices.size() ? 0 : static_cast<size_t>(device);
}

int largest_job(const BalanceSetup::Chain& chain, double bytes) {
  if (chain.job_bytes == 0) return chain.most_job;
  const int least = std::min(kLeastFullJob, chain.most_job);
  if (!(bytes > 0)) return least;
  return static_cast<int>(std::clamp<double>(std::ceil(chain.job_bytes / bytes), least, chain.most_job));
}

ChainDecision chain_on_cpu(const BalanceSetup& setup, size_t chain) {
  ChainDecision decision;
  decision.shares.assign(setup.devices.size(), 0.0);
  if (chain >= setup.chains.size()) return decision;
  decision.job = setup.chains[chain].most_job;
  decision.max_wait_us = setup.chains[chain].most_wait_us;
  decision.places = setup.chains[chain].most_places;
  return decision;
}

double rate(const Sides& s, double x) {
  const double worker = s.outside + s.cpu - x * (s.cpu - s.device);
  double best = worker > 0 ? s.cycles / worker : 0;
  if (x > 0) best = std::min(best, s.capacity / x);
  return best;
}

double best_share(const Sides& s) {
  if (s.device >= s.cpu || s.capacity <= 0) return 0;
  if (s.cycles <= s.capacity * (s.outside + s.device)) return 1;
  // Workers and device are busy at the same time: W f / (o + c - x (c - d)) = B / x.
  return std::clamp(s.capacity * (s.outside + s.cpu) / (s.cycles + s.capacity * (s.cpu - s.device)), 0.0, 1.0);
}

double best_rate(const Sides& s) { return rate(s, best_share(s)); }

double foretold_p99_ns(const DevicePath& p) {
  double fill = p.max_wait_ns;
  if (p.arrivals > 0) fill = std::min(fill, 1e9 * p.job / p.arrivals);
  double queue = 0;
  if (p.capacity > 0) {
    // Below its capacity a device has few jobs to do; above, the places are all taken.
    const double load = std::min(p.arrivals / p.capacity, 1.0);
    queue = load * load * std::max(1e9 * p.places * p.job / p.capacity - p.job_ns, 0.0);
  }
  return fill + queue + p.job_ns + p.stretch_ns;
}

int places_needed(const DevicePath& p) {
  if (p.capacity <= 0 || p.job <= 0) return 1;
  const double packets = p.capacity * 1e-9 * (p.job_ns + p.stretch_ns);
  return 1 + static_cast<int>(std::ceil(std::min(packets / p.job, 1e6)));
}

void order_by_saving(std::vector<Errand>& errands) {
  std::erase_if(errands, [](const Errand& e) { return !(e.saved > 0) || !(e.packets > 0); });
  std::stable_sort(errands.begin(), errands.end(), [](const Errand& a, const Errand& b) {
    return a.saved * std::max(b.device_ns, 1e-9) > b.saved * std::max(a.device_ns, 1e-9);
  });
}

std::vector<double> greedy_rates(const Shop& shop) {
  std::vector<double> saved(shop.workers.size(), 0.0), cost(shop.workers.size(), 0.0);
  std::vector<Errand> errands;
  for (size_t w = 0; w < shop.workers.size(); ++w) {
    const Shop::Worker& worker = shop.workers[w];
    cost[w] = worker.outside;
    for (size_t k = 0; k < worker.chains.size(); ++k) {
      const Shop::Use& use = worker.chains[k];
      cost[w] += use.packets * use.cpu;
      for (size_t d = 0; d < shop.devices; ++d)
        errands.push_back({w, k, d, worker.arrivals * use.packets, use.cpu - use.device[d], use.device_ns[d]});
    }
  }
  order_by_saving(errands);
  const auto done = [&](size_t w) {
    const Shop::Worker& worker = shop.workers[w];
    return std::min(worker.arrivals, cost[w] > 0 ? (worker.cycles + saved[w]) / cost[w] : worker.arrivals);
  };
  // By worker and chain: packets that a device has taken.
  std::vector<std::vector<double>> sent(shop.workers.size());
  for (size_t w = 0; w < sent.size(); ++w) sent[w].assign(shop.workers[w].chains.size(), 0.0);
  std::vector<double> time(shop.devices, 1e9);
  for (const Errand& e : errands) {
    const Shop::Worker& worker = shop.workers[e.worker];
    const double part = worker.chains[e.chain].packets;
    // What the worker can send is a part of what it does, which grows with what it sends: cycles + saved * y = cost * y
    // / part.
    double most = worker.arrivals * part - sent[e.worker][e.chain];
    const double gain = cost[e.worker] - part * e.saved;
    if (gain > 0)
      most =
          std::min(most, (part * (worker.cycles + saved[e.worker]) - cost[e.worker] * sent[e.worker][e.chain]) / gain);
    // And no more than it needs.
    most = std::min(most, (worker.arrivals * cost[e.worker] - worker.cycles - saved[e.worker]) / e.saved);
    const double y = std::clamp(e.device_ns > 0 ? time[e.device] / e.device_ns : most, 0.0, std::max(most, 0.0));
    time[e.device] -= y * e.device_ns;
    saved[e.worker] += y * e.saved;
    sent[e.worker][e.chain] += y;
  }
  std::vector<double> rates;
  for (size_t w = 0; w < shop.workers.size(); ++w) rates.push_back(done(w));
  return rates;
}

namespace {

/// The simplex method on a table whose last row is the aim and whose last column the limits, which are not negative.
double solve(std::vector<std::vector<double>>& table, size_t variables) {
  const size_t rows = table.size() - 1;
  const size_t last = table[0].size() - 1;
  for (int round = 0; round < 100000; ++round) {
    size_t column = last;
    for (size_t j = 0; j < variables + rows; ++j)
      if (table[rows][j] < -1e-9 && (column == last || table[rows][j] < table[rows][column])) column = j;
    if (column == last) break;
    size_t pivot = rows;
    for (size_t i = 0; i < rows; ++i) {
      if (table[i][column] <= 1e-12) continue;
      if (pivot == rows || table[i][last] * table[pivot][column] < table[pivot][last] * table[i][column]) pivot = i;
    }
    if (pivot == rows) break;  // without limit, which arrivals rule out
    const double by = table[pivot][column];
    for (double& v : table[pivot]) v /= by;
    for (size_t i = 0; i <= rows; ++i) {
      const double times = table[i][column];
      if (i == pivot || times == 0) continue;
      for (size_t j = 0; j <= last; ++j) table[i][j] -= times * table[pivot][j];
    }
  }
  return table[rows][last];
}

}  // namespace

double highest_rate(const Shop& shop) {
  // Variables: by worker the rate, then by worker, chain and device what goes there; in millions, as the pivots compare
  // with small numbers. Rows: cycles and arrivals by worker, packets by chain, time by device.
  constexpr double kUnit = 1e6;
  const size_t workers = shop.workers.size();
  size_t variables = workers, rows = 2 * workers + shop.devices;
  for (const Shop::Worker& w : shop.workers) {
    variables += w.chains.size() * shop.devices;
    rows += w.chains.size();
  }
  const size_t last = variables + rows;
  std::vector<std::vector<double>> table(rows + 1, std::vector<double>(last + 1, 0.0));
  size_t next = workers, row = 0;
  const size_t device_row = rows - shop.devices;
  for (size_t d = 0; d < shop.devices; ++d) table[device_row + d][last] = 1e9 / kUnit;
  for (size_t w = 0; w < workers; ++w) {
    const Shop::Worker& worker = shop.workers[w];
    const size_t cycles = row++;
    table[cycles][last] = 1;  // scaled: a second of the worker
    double cost = worker.outside;
    for (const Shop::Use& use : worker.chains) cost += use.packets * use.cpu;
    table[cycles][w] = cost * kUnit / worker.cycles;
    table[row][w] = 1;
    table[row++][last] = worker.arrivals / kUnit;
    for (const Shop::Use& use : worker.chains) {
      const size_t packets = row++;
      table[packets][w] = -use.packets;
      for (size_t d = 0; d < shop.devices; ++d, ++next) {
        table[packets][next] = 1;
        table[cycles][next] = -(use.cpu - use.device[d]) * kUnit / worker.cycles;
        table[device_row + d][next] = use.device_ns[d];
      }
    }
    table[rows][w] = -1;
  }
  for (size_t i = 0; i < rows; ++i) table[i][variables + i] = 1;
  return solve(table, variables) * kUnit;
}

}  // namespace headrace::balance
