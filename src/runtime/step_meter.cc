#include "runtime/step_meter.hh"

#include <sys/resource.h>

#include <algorithm>
#include <ctime>
#include <iterator>
#include <utility>

#include "headrace/element.hh"
#include "headrace/real_clock.hh"

namespace headrace {

StepMeter::Usage StepMeter::usage(int64_t now) {
  timespec cpu;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &cpu);
  rusage kernel{};
  getrusage(RUSAGE_THREAD, &kernel);
  return {now, int64_t{cpu.tv_sec} * 1'000'000'000 + cpu.tv_nsec,
          static_cast<uint64_t>(kernel.ru_minflt) + static_cast<uint64_t>(kernel.ru_majflt)};
}

void StepMeter::note(const Element* element) {
  const int64_t now = now_ns();
  if (last_ == 0) {
    before_ = usage(now);
  } else {
    times_.add(static_cast<uint64_t>(now - last_));
    if (now - last_ > kLongNs) [[unlikely]]
      look_at(now, now - last_, element);
  }
  last_ = now;
}

void StepMeter::look_at(int64_t now, int64_t took, const Element* element) {
  // Since the last look: what was lost in short steps meanwhile is little, and counts here.
  const Usage then = std::exchange(before_, usage(now));
  LongStep step;
  step.ns = took;
  step.off_cpu_ns = std::clamp<int64_t>((before_.wall_ns - then.wall_ns) - (before_.cpu_ns - then.cpu_ns), 0, took);
  step.page_faults = before_.page_faults - then.page_faults;
  step.worker = worker_;
  if (element) element->name().copy(step.element, sizeof step.element - 1);
  const std::lock_guard guard(lock_);
  LongStep& shortest = *std::min_element(longest_.begin(), longest_.end(),
                                         [](const LongStep& a, const LongStep& b) { return a.ns < b.ns; });
  if (step.ns > shortest.ns) shortest = step;
}

std::vector<LongStep> StepMeter::longest() const {
  std::vector<LongStep> all;
  {
    const std::lock_guard guard(lock_);
    std::copy_if(longest_.begin(), longest_.end(), std::back_inserter(all), [](const LongStep& s) { return s.ns > 0; });
  }
  std::sort(all.begin(), all.end(), [](const LongStep& a, const LongStep& b) { return a.ns > b.ns; });
  return all;
}

void StepMeter::reset() {
  times_.clear();
  const std::lock_guard guard(lock_);
  longest_ = {};
}

}  // namespace headrace
