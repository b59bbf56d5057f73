#include "cli/machine.hh"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sched.h>
#include <sys/utsname.h>
#include <x86intrin.h>

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

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

nlohmann::ordered_json cpu_details() {
  nlohmann::ordered_json details = nlohmann::ordered_json::object();
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line) && !line.empty();) {
    const size_t colon = line.find(':');
    const std::string key = line.substr(0, line.find_last_not_of(" \t", colon - 1) + 1);
    const std::string value = colon + 2 < line.size() ? line.substr(colon + 2) : "";
    if (key == "cpu family" || key == "model" || key == "stepping") details[key] = std::atoi(value.c_str());
    if (key != "flags") continue;
    std::string vectors;
    std::istringstream flags(value);
    for (std::string flag; flags >> flag;)
      if (flag == "avx" || flag == "avx2" || flag == "vaes" || flag == "sha_ni" || flag == "gfni" ||
          flag.starts_with("avx512") || flag.starts_with("amx"))
        vectors += (vectors.empty() ? "" : " ") + flag;
    details["vectors"] = vectors;
  }
  for (int index = 0; index < 8; ++index) {
    const std::string folder = fmt::format("/sys/devices/system/cpu/cpu0/cache/index{}/", index);
    std::string level, type;
    int kib = 0;
    if (!(std::ifstream(folder + "level") >> level) || !(std::ifstream(folder + "type") >> type) ||
        !(std::ifstream(folder + "size") >> kib) || type == "Instruction")
      continue;
    details[fmt::format("L{}{} KiB", level, type == "Data" ? "d" : "")] = kib;
  }
  return details;
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
  std::vector<std::string> more;
  const nlohmann::ordered_json details = cpu_details();
  for (const auto& [key, label] : {std::pair{"cpu family", "family"}, {"model", "model"}})
    if (details.contains(key)) more.push_back(fmt::format("{} {}", label, details[key].get<int>()));
  for (const char* const level : {"L1d", "L2", "L3"})
    if (const std::string key = fmt::format("{} KiB", level); details.contains(key))
      more.push_back(fmt::format("{} {} KiB", level, details[key].get<int>()));
  const std::string vectors = details.value("vectors", "");
  for (const auto& [flag, label] : {std::pair{"avx512f", "AVX-512"}, {"avx2", "AVX2"}, {"avx", "AVX"}})
    if (vectors.find(flag) != std::string::npos) {
      more.emplace_back(label);
      break;
    }
  if (!more.empty()) model += fmt::format(" ({})", fmt::join(more, ", "));
  utsname name{};
  uname(&name);
  const int cpus = available_cpus();
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
