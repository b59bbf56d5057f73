#include "headrace/offload_options.hh"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>

namespace headrace {

namespace {

/// The whole text as a number from `least` to `most`.
template <typename T>
bool read_number(std::string_view text, T least, T most, T& value) {
  const std::from_chars_result r = std::from_chars(text.data(), text.data() + text.size(), value);
  return r.ec == std::errc() && r.ptr == text.data() + text.size() && value >= least && value <= most;
}

}  // namespace

bool ReferenceOptions::set(std::string_view text) {
  constexpr uint64_t kAnyJob = UINT64_MAX;
  ReferenceOptions wanted = *this;
  while (!text.empty()) {
    const std::string_view item = text.substr(0, text.find(','));
    text.remove_prefix(std::min(item.size() + 1, text.size()));
    const size_t equals = item.find('=');
    if (equals == std::string_view::npos) return false;
    const std::string_view key = item.substr(0, equals), value = item.substr(equals + 1);
    const bool good = key == "threads"    ? read_number(value, 0, 64, wanted.threads)
                      : key == "delay"    ? read_number(value, 0, 1'000'000, wanted.delay_us)
                      : key == "gbps"     ? read_number(value, 0.0, 1e6, wanted.gbps)
                      : key == "memory"   ? read_number(value, 0, 1'000'000, wanted.memory_mb)
                      : key == "late"     ? read_number(value, uint64_t{0}, kAnyJob, wanted.late_every)
                      : key == "late-by"  ? read_number(value, 0, 60'000, wanted.late_ms)
                      : key == "hang"     ? read_number(value, uint64_t{0}, kAnyJob, wanted.hang_at)
                      : key == "hang-for" ? read_number(value, 0, 60'000, wanted.hang_ms)
                      : key == "fail"     ? read_number(value, uint64_t{0}, kAnyJob, wanted.fail_at)
                                          : false;
    if (!good) return false;
  }
  *this = wanted;
  return true;
}

std::string ReferenceOptions::text() const {
  const ReferenceOptions usual;
  std::string all;
  const auto add = [&all](const char* key, const auto& value, const auto& common) {
    if (value != common) all += fmt::format("{}{}={}", all.empty() ? "" : ",", key, value);
  };
  add("threads", threads, usual.threads);
  add("delay", delay_us, usual.delay_us);
  add("gbps", gbps, usual.gbps);
  add("memory", memory_mb, usual.memory_mb);
  add("late", late_every, usual.late_every);
  add("late-by", late_ms, usual.late_ms);
  add("hang", hang_at, usual.hang_at);
  add("hang-for", hang_ms, usual.hang_ms);
  add("fail", fail_at, usual.fail_at);
  return all;
}

bool OffloadOptions::set_mode(std::string_view text) {
  if (text == "auto") {
    mode = Mode::kAuto;
  } else if (text == "cpu") {
    mode = Mode::kCpu;
  } else if (text == "device") {
    mode = Mode::kDevice;
  } else if (text == "fixed") {
    mode = Mode::kFixed;
  } else if (text.starts_with("fixed=")) {
    const std::string number(text.substr(6));
    char* end = nullptr;
    const double value = std::strtod(number.c_str(), &end);
    if (number.empty() || *end != 0 || !(value >= 0 && value <= 1)) return false;
    mode = Mode::kFixed;
    fraction = value;
  } else {
    return false;
  }
  return true;
}

bool OffloadOptions::set_run(std::string_view text) {
  if (text == "auto")
    run = Run::kAuto;
  else if (text == "resident")
    run = Run::kResident;
  else if (text == "stream")
    run = Run::kStream;
  else
    return false;
  return true;
}

std::string OffloadOptions::run_text() const {
  switch (run) {
    case Run::kAuto:
      return "resident or stream";
    case Run::kResident:
      return "resident";
    case Run::kStream:
      return "stream";
  }
  return {};
}

bool OffloadOptions::set_p99(std::string_view text) {
  double us = 1e6;
  if (text.ends_with("us"))
    us = 1;
  else if (text.ends_with("ms"))
    us = 1e3;
  else if (text != "0" && !text.ends_with("s"))
    return false;
  if (text != "0") text.remove_suffix(us == 1e6 ? 1 : 2);
  double value = 0;
  if (!read_number(text, 0.0, 1e9, value)) return false;
  p99_us = value * us;
  return true;
}

std::string OffloadOptions::mode_text() const {
  switch (mode) {
    case Mode::kAuto:
      return "auto";
    case Mode::kCpu:
      return "cpu";
    case Mode::kDevice:
      return "device";
    case Mode::kFixed:
      return fmt::format("fixed={}", fraction);
  }
  return {};
}

}  // namespace headrace
