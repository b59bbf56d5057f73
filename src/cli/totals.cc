#include "cli/totals.hh"

#include <fmt/format.h>

#include <chrono>

namespace headrace::cli {

namespace {

/// Three or four digits that mean something, and the unit with its prefix.
std::string scaled(double value, const char* unit) {
  if (value <= 0) return fmt::format("0 {}", unit);
  constexpr const char* kPrefixes[] = {"", "k", "M", "G", "T"};
  size_t prefix = 0;
  // What would be rounded to 1000 belongs to the next prefix.
  while (value >= 999.5 && prefix + 1 < std::size(kPrefixes)) {
    value *= 1e-3;
    ++prefix;
  }
  const int digits = value >= 100 ? 1 : 2;
  return prefix == 0 && value >= 10 ? fmt::format("{:.0f} {}", value, unit)
                                    : fmt::format("{:.{}f} {}{}", value, digits, kPrefixes[prefix], unit);
}

}  // namespace

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

std::string packet_rate(uint64_t packets, double seconds) { return scaled(mpps(packets, seconds) * 1e6, "pps"); }
std::string bit_rate(uint64_t bytes, double seconds) { return scaled(gbps(bytes, seconds) * 1e9, "bps"); }

}  // namespace headrace::cli
