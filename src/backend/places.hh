#pragma once
/// \file
/// The host's half of the protocol between a worker and a device that polls: job places with doorbells.

#include <vector>

#include "headrace/device/jobs.hh"
#include "offload/backend.hh"

namespace headrace::offload {

/// Job places in memory that the host and a device share; one after the other, see headrace/device/jobs.hh for what is
/// in each.
struct Places {
  uint8_t* host = nullptr;
  uint64_t address = 0;  ///< the device's
  size_t stride = 0;
  RowPlaces at_rows{};

  Doorbell& bell(int i, PlanClass c) const { return *reinterpret_cast<Doorbell*>(at(i) + bell_at(c)); }
  uint32_t* done(int i, PlanClass c) const { return reinterpret_cast<uint32_t*>(at(i) + done_at(c)); }
  uint8_t* counts(int i) const { return at(i) + kCountsAt; }
  uint8_t* there(int i) const { return at(i) + at_rows.there; }
  uint8_t* back(int i) const { return at(i) + at_rows.back; }
  uint8_t* whole(int i) const { return at(i) + at_rows.whole; }
  uint8_t* at(int i) const { return host + static_cast<size_t>(i) * stride; }
};

/// Where everything lies in places for jobs of up to `job_size` rows of these plans.
Places lay_out_places(const std::vector<Program::Plan>& plans, int job_size);

/// What a lane must know of a plan.
struct PlanKind {
  PlanClass plan_class = kHeaderPlans;
  bool in_place = false;  ///< see RowLayout
};

/// A lane whose jobs lie in places.
class alignas(128) PlaceLane : public Lane {
 public:
  /// \param kinds of all plans
  PlaceLane(const Places& places, int jobs, const std::vector<PlanKind>& kinds)
      : places_(places), kinds_(kinds), jobs_(static_cast<size_t>(jobs + kGroup - 1) / kGroup) {}

  uint8_t* rows_in(int job) override { return places_.there(job); }
  const uint8_t* rows_out(int job) override {
    return job_at(job).kind.in_place ? places_.there(job) : places_.back(job);
  }
  const uint8_t* whole_rows(int job) override { return places_.whole(job); }
  void counts(int job, uint64_t* counts, int n) override;

 protected:
  struct Job {
    uint32_t sequence = 0;  // of the last job handed over here
    uint32_t polls = 0;     // for it
    PlanKind kind;
  };

  bool done(int job) const {
    const Job& handed_over = jobs_[static_cast<size_t>(job / kGroup)].of[job % kGroup];
    return __atomic_load_n(places_.done(job, handed_over.kind.plan_class), __ATOMIC_ACQUIRE) == handed_over.sequence;
  }
  Job& job_at(int job) { return jobs_[static_cast<size_t>(job / kGroup)].of[job % kGroup]; }
  /// Fills the doorbell for the next job, without ringing: the word `job` is the caller's to store.
  uint64_t next(int job, int plan, int slots, uint64_t parameters);
  /// Hands a job over: the device that reads the word sees all that was written before.
  void ring(int job, uint64_t word) {
    __atomic_store_n(&places_.bell(job, job_at(job).kind.plan_class).job, word, __ATOMIC_RELEASE);
  }

  const Places places_;

 private:
  static constexpr int kGroup = 16;
  /// In cache lines of their own: each poll writes to them, and other workers' lanes are near.
  struct alignas(128) Jobs {
    Job of[kGroup];
  };
  const std::vector<PlanKind>& kinds_;
  std::vector<Jobs> jobs_;
};

}  // namespace headrace::offload
