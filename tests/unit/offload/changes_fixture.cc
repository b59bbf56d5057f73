#include "changes_fixture.hh"

#include "headrace/real_clock.hh"

namespace headrace::testing {

using Mode = OffloadOptions::Mode;

OffloadOptions OffloadChanges::usual() const {
  OffloadOptions o = options(Mode::kDevice);
  o.job = 64;
  return o;
}

OffloadOptions OffloadChanges::with_late_jobs() {
  devices(2);
  OffloadOptions o = usual();
  o.devices = 2;
  o.deadline_ms = 5;
  o.reference.late_every = 20;
  o.reference.late_ms = 30;
  return o;
}

void OffloadChanges::run(const OffloadOptions& options, int least_steps, const std::string& second,
                         uint64_t least_late) {
  if (has_controls())
    for (int d = 0; d < devices_->count(); ++d) (*devices_)[d].threads = true;
  ASSERT_NO_FATAL_FAILURE(prepare());
  LiveRouter r(text(""), options, kWorkers, compile(CompileOptions::Mode::kAuto));
  ASSERT_TRUE(r.ok()) << r.errors();
  ASSERT_NO_FATAL_FAILURE(begin(r));
  std::mt19937 random(5);
  const int64_t start = now_ns() / 1'000'000;
  int steps = 0, swaps = 0;
  uint64_t late = 0, jobs = 0;
  const auto add_events = [&] {
    if (r.engine() == nullptr) return;
    late += r.engine()->event(offload::kLateJobs);
    jobs += r.engine()->event(offload::kJobs);
  };
  r.run([&] {
    for (int i = 0; i < 5; ++i, ++steps) change(r, random);
    if (!second.empty() && steps % (least_steps / 5) == 0) {
      add_events();
      EXPECT_TRUE(r.swap(++swaps % 2 ? text(second) : text(""))) << r.errors();
    }
    const int64_t time = now_ns() / 1'000'000 - start;
    const auto event = [&](offload::Event e) { return r.engine() ? r.engine()->event(e) : 0; };
    // Fewer steps on a busy machine, or under a sanitizer.
    const bool done = (steps >= least_steps || (time > 3000 && steps >= 30)) && enough(r) &&
                      late + event(offload::kLateJobs) >= least_late &&
                      (on_cpu() || jobs + event(offload::kJobs) > 0) && r.router().first<FlowSink>()->received() > 5000;
    return !::testing::Test::HasFailure() && ((!done || time < 100) && time < 30000);
  });
  add_events();
  EXPECT_GE(late, least_late);
  if (!on_cpu()) {
    EXPECT_GT(jobs, 0u);
  }
  EXPECT_EQ(r.router().first<FlowSink>()->late(), 0u);
  EXPECT_EQ(r.router().first<FlowSink>()->missing(), 0u);
  EXPECT_EQ(r.router().first<FlowSink>()->damaged(), 0u);
  compare(r, swaps);
}

void OffloadChanges::count_while_it_changes() {
  OffloadOptions o = usual();
  o.reference.delay_us = 50;
  run(o, 500);
  if (on_cpu()) return;
  o.mode = Mode::kFixed;
  o.fraction = 0.5;
  run(o, 200);
}

void OffloadChanges::count_from_late_jobs() {
  if (!has_controls()) GTEST_SKIP() << "needs a device that is late when told";
  const OffloadOptions o = with_late_jobs();
  (*devices_)[0].lose = 3;
  run(o, 60, "", 3);
}

void OffloadChanges::count_from_a_device_that_hangs_and_one_that_fails() {
  if (!has_controls()) GTEST_SKIP() << "needs devices that hang and fail when told";
  for (const bool fails : {false, true}) {
    devices(1);
    OffloadOptions o = usual();
    o.deadline_ms = 5;
    if (fails) {
      o.reference.fail_at = 30;
    } else {
      o.reference.hang_at = 30;
      o.reference.hang_ms = 100;
    }
    run(o, 200, "", fails ? 0 : 1);
  }
}

void OffloadChanges::count_before_and_after_swaps() {
  OffloadOptions o = usual();
  o.reference.delay_us = 50;
  run(o, 60, "n :: Counter -> ");
  if (!has_controls()) return;
  o = with_late_jobs();
  o.reference.delay_us = 50;
  run(o, 50, "Paint(2) -> ", 2);
}

}  // namespace headrace::testing
