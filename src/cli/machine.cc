#include "cli/machine.hh"

#include <fmt/format.h>
#include <sched.h>
#include <sys/utsname.h>
#include <x86intrin.h>

#include <chrono>
#include <fstream>

#include "cli/output.hh"

namespace headrace::cli {

std::vector<int> usable_cpus() {
  cpu_set_t set;
  CPU_ZERO(&set);
  std::vector<int> cpus;
  if (sched_getaffinity(0, sizeof set, &set) == 0)
    for (int c = 0; c < CPU_SETSIZE; ++c)
      if (CPU_ISSET(c, &set)) cpus.push_back(c);
  return cpus;
}

bool plan_scheduling(const char* program, Runtime::Options& options) {
  if (const int cpus = available_cpus(); options.threads > cpus)
    complain("{}: {} workers on {} CPU{} take turns, which costs throughput and latency\n", program, options.threads,
             cpus, cpus == 1 ? "" : "s");
  options.real_time = plan_real_time(options.threads);
  if (options.real_time.refusal.empty()) return true;
  complain("{}: {}\n", program, options.real_time.refusal);
  return false;
}

std::string machine_name() {
  std::string model = "unknown CPU";
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);) {
    if (!line.starts_with("model name")) continue;
    const size_t colon = line.find(':');
    if (colon != std::string::npos) model = line.substr(colon + 2);
    break;
  }
  utsname name{};
  uname(&name);
  const size_t cpus = usable_cpus().size();
  return fmt::format("{}, {} CPU{}, {} {}", model, cpus, cpus == 1 ? "" : "s", name.sysname, name.release);
}

double tsc_hz() {
  static const double hz = [] {
    using Clock = std::chrono::steady_clock;
    const auto t0 = Clock::now();
    const uint64_t c0 = __rdtsc();
    while (Clock::now() - t0 < std::chrono::milliseconds(20)) {
    }
    const auto t1 = Clock::now();
    const uint64_t c1 = __rdtsc();
    return static_cast<double>(c1 - c0) / std::chrono::duration<double>(t1 - t0).count();
  }();
  return hz;
}

}  // namespace headrace::cli
