#include "cli/session.hh"

#include <fmt/format.h>
#include <sched.h>
#include <sys/utsname.h>
#include <unistd.h>
#include <x86intrin.h>

#include <cctype>
#include <chrono>
#include <fstream>
#include <iostream>
#include <iterator>
#include <sstream>

#include "lang/argument_text.hh"

namespace headrace::cli {

bool read_configuration(const std::string& file, std::string& text, Errors& errors) {
  if (file == "-") {
    text.assign(std::istreambuf_iterator<char>(std::cin), {});
  } else {
    std::ifstream in(file, std::ios::binary);
    std::stringstream whole;
    if (!in || !(whole << in.rdbuf()) || in.bad()) {
      (void)errors.error("{}: {}", file, std::strerror(errno ? errno : EIO));
      return false;
    }
    text = whole.str();
  }
  return true;
}

Status parse_configuration(const std::string& text, const std::string& file,
                           const std::map<std::string, std::string>& variables, lang::Configuration& out,
                           Errors& errors) {
  lang::Options options;
  options.variables = variables;
  options.library_path = {""};
  return lang::parse(text, file == "-" ? "<stdin>" : file, options, out, errors);
}

bool load_configuration(const std::string& file, const std::map<std::string, std::string>& variables,
                        lang::Configuration& out) {
  Errors errors(Errors::Output::kStderr);
  std::string text;
  return read_configuration(file, text, errors) && parse_configuration(text, file, variables, out, errors).ok() &&
         errors.error_count() == 0;
}

bool split_variable(const std::string& word, std::map<std::string, std::string>& variables) {
  const size_t equals = word.find('=');
  if (equals == std::string::npos || equals == 0) return false;
  for (size_t i = 0; i < equals; ++i)
    if (!std::isalnum(static_cast<unsigned char>(word[i])) && word[i] != '_') return false;
  variables[word.substr(0, equals)] = word.substr(equals + 1);
  return true;
}

void set_argument(lang::ElementDecl& element, const std::string& key, const std::string& value, int position) {
  std::vector<std::string> arguments = lang::split_arguments(element.config);
  const std::string text = key + " " + value;
  for (std::string& a : arguments) {
    const auto parts = lang::split_keyword(a);
    if (!parts || parts->first != key) continue;
    a = text;
    element.config = lang::unparse_arguments(arguments);
    return;
  }
  if (position >= 0 && position < static_cast<int>(arguments.size()) && !lang::split_keyword(arguments[position]))
    arguments[position] = text;
  else
    arguments.push_back(text);
  element.config = lang::unparse_arguments(arguments);
}

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
  options.real_time = plan_real_time(options.threads);
  if (options.real_time.refusal.empty()) return true;
  fmt::print(stderr, "{}: {}\n", program, options.real_time.refusal);
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
  return fmt::format("{}, {} CPUs, {} {}", model, usable_cpus().size(), name.sysname, name.release);
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

Totals read_totals(const Router& router) {
  Totals t;
  t.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
  t.in_of_worker.resize(router.worker_count());
  for (const PortRecord& port : router.ports()) {
    const bool in = port.direction == DevicePort::Direction::kIn;
    t.missed += port.missed;
    for (int thread = 0; thread < thread_count(); ++thread) {
      const PortTotals& one = port.of_thread[thread];
      PortTotals& sum = in ? t.in : t.out;
      sum.packets += one.packets;
      sum.bytes += one.bytes;
      if (in && thread < router.worker_count()) t.in_of_worker[thread] += one.packets;
    }
  }
  for (const Router::Drop& d : router.drops()) t.drops += d.packets;
  return t;
}

double mpps(uint64_t packets, double seconds) {
  return seconds > 0 ? static_cast<double>(packets) / seconds * 1e-6 : 0;
}
double gbps(uint64_t bytes, double seconds) {
  return seconds > 0 ? static_cast<double>(bytes) * 8 / seconds * 1e-9 : 0;
}

std::string grouped(uint64_t n) {
  std::string s = std::to_string(n);
  for (int at = static_cast<int>(s.size()) - 3; at > 0; at -= 3) s.insert(at, ",");
  return s;
}

}  // namespace headrace::cli
