#pragma once
/// \file
/// Durations as messages have them.

#include <algorithm>

#include "control/openflow/pipeline/flow_entry.hh"

namespace headrace::openflow {

/// Seconds and nanoseconds of anything that has `duration_s` and `duration_ns`.
template <typename Statistics>
void set_duration(Statistics& statistics, Time duration) {
  constexpr Time kSecond = 1'000'000'000;
  duration = std::max<Time>(duration, 0);
  statistics.duration_s = static_cast<uint32_t>(duration / kSecond);
  statistics.duration_ns = static_cast<uint32_t>(duration % kSecond);
}

}  // namespace headrace::openflow
