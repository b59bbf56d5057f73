#include "backend/places.hh"

#include <cstring>

namespace headrace::offload {

void PlaceLane::counts(int job, uint64_t* counts, int n) {
  std::memcpy(counts, places_.counts(job), static_cast<size_t>(n) * sizeof *counts);
}

uint64_t PlaceLane::next(int job, int plan, int slots, uint64_t parameters) {
  Job& j = job_at(job);
  ++j.sequence;
  j.polls = 0;
  j.plan_class = classes_[static_cast<size_t>(plan)];
  __atomic_store_n(&places_.bell(job, j.plan_class).parameters, Doorbell::parameters_word(j.sequence, parameters),
                   __ATOMIC_RELAXED);
  return Doorbell::job_word(j.sequence, static_cast<uint32_t>(plan), static_cast<uint32_t>(slots));
}

}  // namespace headrace::offload
