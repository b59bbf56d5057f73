#include "unit/offload/balance/random_machines.hh"

#include <algorithm>
#include <cmath>
#include <random>
#include <string>

namespace headrace::balance {
namespace {

class Draw {
 public:
  explicit Draw(uint64_t seed) : bits_(seed) {}
  // Not std::uniform_real_distribution, which differs between libraries.
  double uniform(double least, double most) {
    return least + (most - least) * static_cast<double>(bits_() >> 11) * 0x1p-53;
  }
  double logarithmic(double least, double most) { return least * std::pow(most / least, uniform(0, 1)); }
  int whole(int least, int most) { return static_cast<int>(uniform(least, most + 0.999)); }
  bool chance(double p) { return uniform(0, 1) < p; }
  template <typename T>
  T one_of(std::initializer_list<T> all) {
    return all.begin()[whole(0, static_cast<int>(all.size()) - 1)];
  }

 private:
  std::mt19937_64 bits_;
};

void draw_costs(Draw& draw, Machine& m) {
  for (Machine::Chain& chain : m.chains) {
    chain.cpu = draw.logarithmic(60, 3000);
    chain.device.clear();
    chain.mpps.clear();
    for (size_t d = 0; d < m.devices.size(); ++d) {
      chain.device.push_back(draw.logarithmic(25, 300));
      // From a device that is no help to one that waits for the workers.
      const double workers = m.workers * m.ghz * 1e3 / (m.outside + chain.device[d]);
      chain.mpps.push_back(workers * draw.logarithmic(0.1, 3));
    }
  }
}

void draw_load(Draw& draw, Machine& m) {
  m.mpps.clear();
  if (draw.chance(0.5)) return;
  const double each = m.optimum() * 1e-6 / m.workers;
  m.mpps.push_back(each * draw.logarithmic(0.1, 1.2));
  if (m.workers > 1 && draw.chance(0.3)) m.mpps.push_back(m.mpps[0] * draw.uniform(0.1, 0.5));
}

/// \param most the part of the samples that may be missing, and that may be late
void draw_disturbance(Draw& draw, Machine& m, double most) {
  m.noise = draw.uniform(0, 0.05);
  m.missing = draw.uniform(0, most);
  m.late = draw.uniform(0, most);
  m.pause_ms = 0.2;
  m.pauses = draw.uniform(0, 2);
}

/// As many places as it takes to keep each device busy, and some more.
void draw_places(Draw& draw, Machine& m) {
  for (Machine::Chain& chain : m.chains) {
    for (size_t d = 0; d < m.devices.size(); ++d) {
      const Machine::Device& device = m.devices[d];
      const double job_ns = device.job_us * 1e3 + device.packet_ns * chain.most_job;
      const double stretch_ns = (64 * chain.cpu + m.burst * m.outside) / m.ghz;
      const double rate = std::min(chain.mpps[d] * 1e-3 / m.workers, m.ghz / (m.outside + chain.device[d]));
      // Jobs of other chains are before its own.
      double others_ns = 0;
      for (const Machine::Chain& other : m.chains)
        if (&other != &chain) others_ns += other.most_job * 1e3 / other.mpps[d];
      const double needed = rate * (job_ns + stretch_ns + others_ns) / chain.most_job;
      chain.most_places = std::max(chain.most_places, static_cast<int>(std::ceil(needed * draw.uniform(1.5, 4))) + 2);
    }
  }
}

}  // namespace

std::vector<Phase> random_machine(uint64_t seed, double step_s) {
  Draw draw(seed);
  Machine m;
  m.name = "random " + std::to_string(seed);
  m.workers = draw.whole(1, 4);
  // Slow workers, because simulating takes as long as they have bursts.
  m.ghz = draw.uniform(0.3, 1);
  m.outside = draw.logarithmic(30, 200);
  m.burst = draw.one_of({32, 64, 128});
  draw_disturbance(draw, m, 0.05);
  m.devices.resize(static_cast<size_t>(draw.one_of({1, 1, 1, 1, 1, 2, 2, 3})));
  for (Machine::Device& d : m.devices) {
    d.job_us = draw.logarithmic(3, 30);
    d.packet_ns = draw.logarithmic(3, 40);
    d.job_cycles = draw.logarithmic(300, 3000);
    d.link_gb = 1e3;
  }
  for (int w = 0; w < m.workers; ++w) m.first_device.push_back(w % static_cast<int>(m.devices.size()));
  m.chains.resize(draw.chance(0.2) ? 2 : 1);
  double left = 1;
  for (size_t k = 0; k < m.chains.size(); ++k) {
    Machine::Chain& chain = m.chains[k];
    chain.name = "chain " + std::to_string(k);
    chain.part = k + 1 == m.chains.size() ? left : draw.uniform(0.2, 0.8);
    left -= chain.part;
    chain.most_job = draw.one_of({64, 128, 256, 512});
    chain.most_places = 4;
    // A full job, also where packets come slowly: what half-full ones cost is not known to the optimum.
    chain.most_wait_us = 1000;
  }
  draw_costs(draw, m);
  draw_load(draw, m);
  draw_places(draw, m);
  std::vector<Phase> phases{{0, m}};
  if (draw.chance(0.5)) draw_costs(draw, m);
  draw_load(draw, m);
  draw_places(draw, m);
  // Places are no part of the traffic: all phases have as many.
  for (size_t k = 0; k < m.chains.size(); ++k) phases[0].machine.chains[k].most_places = m.chains[k].most_places;
  phases.push_back({step_s, m});
  return phases;
}

std::vector<Phase> random_gpu_machine(uint64_t seed, double step_s) {
  Draw draw(seed);
  Machine m;
  m.name = "random GPU " + std::to_string(seed);
  m.workers = draw.whole(4, 32);
  m.ghz = draw.uniform(1.5, 3);
  m.outside = draw.logarithmic(30, 120);
  m.burst = 128;
  draw_disturbance(draw, m, 0.03);
  m.devices.resize(1);
  Machine::Device& device = m.devices[0];
  device.job_us = draw.logarithmic(5, 300);
  device.packet_ns = draw.logarithmic(3, 2000);
  device.job_cycles = draw.logarithmic(300, 2000);
  device.link_gb = 1e3;
  m.chains.resize(1);
  Machine::Chain& chain = m.chains[0];
  chain.cpu = draw.logarithmic(150, 3000);
  chain.device = {draw.logarithmic(25, 200)};
  chain.mpps = {m.workers * m.ghz * 1e3 / (m.outside + chain.device[0]) * draw.logarithmic(0.1, 3)};
  chain.most_job = draw.one_of({64, 256, 1024});
  chain.most_places = 16;
  chain.most_wait_us = 1000;
  draw_places(draw, m);
  const double cpu_mpps = m.ghz * 1e3 / (m.outside + chain.cpu);
  const auto light = [&] {
    m.mpps.clear();
    for (int near = draw.whole(0, 2); near > 0; --near) m.mpps.push_back(cpu_mpps * draw.uniform(0.85, 1.2));
    m.mpps.push_back(cpu_mpps * draw.uniform(0.05, 0.7));
  };
  const auto heavy = [&] {
    m.mpps = {0};
    if (draw.chance(0.5)) m.mpps = {m.optimum() * 1e-6 / m.workers * draw.uniform(0.7, 0.97)};
  };
  std::vector<Phase> phases;
  for (int i = 0; i < 4; ++i) {
    if (i % 2 == 0)
      light();
    else
      heavy();
    phases.push_back({i * step_s, m});
  }
  return phases;
}

}  // namespace headrace::balance
