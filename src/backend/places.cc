#include "backend/places.hh"

#include <algorithm>
#include <cstring>

namespace headrace::offload {

Places lay_out_places(const std::vector<Program::Plan>& plans, int job_size) {
  RowLayout most;
  int counters = 1;
  for (const Program::Plan& plan : plans) {
    most.stride = std::max(most.stride, plan.row.stride);
    most.there = std::max(most.there, plan.row.there);
    most.back = std::max(most.back, plan.row.back);
    counters = std::max(counters, plan.counters);
  }
  const auto lines = [](size_t bytes) { return (bytes + 127) / 128 * 128; };
  const auto rows = static_cast<size_t>(job_size);
  const size_t back = rows_at(static_cast<uint32_t>(counters));
  const size_t there = lines(back + rows * static_cast<size_t>(most.back));
  const size_t whole = lines(there + rows * static_cast<size_t>(most.there));
  Places places;
  places.at_rows = {static_cast<uint32_t>(back), static_cast<uint32_t>(there), static_cast<uint32_t>(whole)};
  // Not all places at the same offset of a page: they would share few sets of the CPU's caches.
  places.stride = lines(whole + rows * static_cast<size_t>(most.stride)) + 128;
  return places;
}

void PlaceLane::counts(int job, uint64_t* counts, int n) {
  std::memcpy(counts, places_.counts(job), static_cast<size_t>(n) * sizeof *counts);
}

uint64_t PlaceLane::next(int job, int plan, int slots, uint64_t parameters) {
  Job& j = job_at(job);
  ++j.sequence;
  j.polls = 0;
  j.kind = kinds_[static_cast<size_t>(plan)];
  __atomic_store_n(&places_.bell(job, j.kind.plan_class).parameters, Doorbell::parameters_word(j.sequence, parameters),
                   __ATOMIC_RELAXED);
  return Doorbell::job_word(j.sequence, static_cast<uint32_t>(plan), static_cast<uint32_t>(slots));
}

}  // namespace headrace::offload
