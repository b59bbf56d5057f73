#include "cli/pauses.hh"

#include <fmt/format.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>

#include "headrace/real_clock.hh"

namespace headrace::cli {

namespace {

constexpr uint64_t kLongNs = 100'000;
constexpr size_t kShown = 8;

nlohmann::ordered_json report_times(const Histogram& h) {
  return {{"p999", static_cast<double>(h.quantile(0.999)) * 1e-3},
          {"max", static_cast<double>(h.max()) * 1e-3},
          {"over_100_us", h.above(kLongNs)}};
}

/// Reads the number behind `key` in a file of lines "key: value"; 0 if it is not there.
uint64_t number_behind(const std::string& file, const std::string& key) {
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);)
    if (line.starts_with(key)) return std::strtoull(line.c_str() + key.size(), nullptr, 10);
  return 0;
}

/// Minor and major faults of a thread: fields 10 and 12 of its `stat` (proc(5)), counted from behind the name.
uint64_t page_faults(const std::string& folder) {
  std::ifstream in(folder + "stat");
  std::string line;
  std::getline(in, line);
  std::istringstream fields(line.substr(std::min(line.rfind(')') + 1, line.size())));
  uint64_t faults = 0;
  std::string field;
  for (int number = 3; number <= 12 && fields >> field; ++number)
    if (number == 10 || number == 12) faults += std::strtoull(field.c_str(), nullptr, 10);
  return faults;
}

/// The eighth number of a CPU's line in /proc/stat, in ticks.
uint64_t steal_ticks(int cpu) {
  std::ifstream in("/proc/stat");
  const std::string name = fmt::format("cpu{}", cpu);
  for (std::string line; std::getline(in, line);) {
    std::istringstream fields(line);
    std::string first;
    if (!(fields >> first) || first != name) continue;
    uint64_t value = 0;
    for (int i = 0; i < 8; ++i) fields >> value;
    return fields ? value : 0;
  }
  return 0;
}

}  // namespace

PauseMeter::PauseMeter(Runtime& runtime, int spare_cpu) : runtime_(runtime) {
  if (spare_cpu < 0) return;
  bystander_ = std::thread([this, spare_cpu] {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(spare_cpu, &set);
    sched_setaffinity(0, sizeof set, &set);
    int64_t last = now_ns();
    while (!stop_.load(std::memory_order_relaxed)) {
      const int64_t now = now_ns();
      bystander_times_.add(static_cast<uint64_t>(now - last));
      last = now;
    }
  });
}

PauseMeter::~PauseMeter() {
  stop_.store(true);
  if (bystander_.joinable()) bystander_.join();
}

void PauseMeter::reset() {
  runtime_.reset_step_times();
  bystander_times_.clear();
  before_ = kernel_counts();
}

PauseMeter::KernelCounts PauseMeter::kernel_counts() const {
  KernelCounts counts;
  uint64_t steal = 0;
  for (int worker = 0; worker < runtime_.threads(); ++worker) {
    const std::string folder = fmt::format("/proc/self/task/{}/", runtime_.thread(worker).kernel_id.load());
    counts.preemptions += number_behind(folder + "status", "nonvoluntary_ctxt_switches:");
    counts.page_faults += page_faults(folder);
    if (runtime_.cpu_of(worker) >= 0) steal += steal_ticks(runtime_.cpu_of(worker));
  }
  counts.steal_ms = static_cast<double>(steal) * 1000 / static_cast<double>(sysconf(_SC_CLK_TCK));
  return counts;
}

nlohmann::ordered_json PauseMeter::report() const {
  const KernelCounts now = kernel_counts();
  nlohmann::ordered_json j;
  j["steps_us"] = report_times(runtime_.step_times());
  nlohmann::ordered_json longest = nlohmann::ordered_json::array();
  for (const LongStep& step : runtime_.longest_steps()) {
    if (longest.size() == kShown) break;
    longest.push_back({{"us", static_cast<double>(step.ns) * 1e-3},
                       {"off_cpu_us", static_cast<double>(step.off_cpu_ns) * 1e-3},
                       {"page_faults", step.page_faults},
                       {"worker", step.worker},
                       {"element", step.element}});
  }
  j["longest_steps"] = longest;
  if (bystander_.joinable()) j["bystander_us"] = report_times(bystander_times_);
  j["preemptions"] = now.preemptions - before_.preemptions;
  j["page_faults"] = now.page_faults - before_.page_faults;
  j["steal_ms"] = now.steal_ms - before_.steal_ms;
  return j;
}

}  // namespace headrace::cli
