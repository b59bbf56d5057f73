#pragma once
/// \file
/// The clock of jobs, pauses and alarms.

#include <cstdint>
#include <ctime>

namespace headrace {

/// Nanoseconds of a monotonic clock that simulated time does not affect: devices and threads run in real time.
inline int64_t now_ns() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return int64_t{t.tv_sec} * 1'000'000'000 + t.tv_nsec;
}

}  // namespace headrace
