#include "backend/reference/reference_backend.hh"

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "headrace/device/jobs.hh"
#include "headrace/thread_name.hh"
#include "offload/job_clock.hh"

namespace headrace::offload {

namespace {

constexpr size_t kAlignment = 256;
/// What is in a row where nothing has travelled.
constexpr int kNotThere = 0xdb;

/// Polls without a job before a thread of the device sleeps until a doorbell rings.
constexpr int kIdlePolls = 200;
/// Polls of a worker for one job between two moments at which it lends its CPU to the device.
constexpr uint32_t kPollsBetweenYields = 16;
/// A thread sleeps while its next job is due no sooner.
constexpr int64_t kShortNs = 100'000;
constexpr int64_t kLongestSleepNs = 1'000'000;

size_t rounded(size_t bytes) { return (std::max<size_t>(bytes, 1) + kAlignment - 1) / kAlignment * kAlignment; }

}  // namespace

void ReferenceMemory::Free::operator()(uint8_t* p) const { std::free(p); }

uint64_t ReferenceMemory::allocate(size_t bytes) {
  if (limit_ && used_ + bytes > limit_) return 0;
  auto* p = static_cast<uint8_t*>(std::aligned_alloc(kAlignment, rounded(bytes)));
  if (!p) return 0;
  std::memset(p, 0, rounded(bytes));
  used_ += bytes;
  const auto address = reinterpret_cast<uint64_t>(p);
  blocks_.emplace(address, std::pair{std::unique_ptr<uint8_t, Free>(p), bytes});
  return address;
}

void ReferenceMemory::release(uint64_t address) {
  const auto it = blocks_.find(address);
  if (it == blocks_.end()) return;
  used_ -= it->second.second;
  blocks_.erase(it);
}

Status ReferenceMemory::send(uint64_t to, const void* from, size_t bytes) {
  std::memcpy(reinterpret_cast<void*>(to), from, bytes);
  return {};
}

class ReferenceBackend::ReferenceLane final : public PlaceLane {
 public:
  using Memory = std::unique_ptr<uint8_t, void (*)(void*)>;

  ReferenceLane(ReferenceBackend& backend, const Places& places, int first_place, Memory memory)
      : PlaceLane(places, backend.jobs_of_lane_, backend.kinds_),
        backend_(backend),
        first_place_(first_place),
        memory_(std::move(memory)) {}

  const Places& places() const { return places_; }

  bool submit(int job, int plan, int slots, uint64_t parameters) override {
    if (backend_.failed_.load(std::memory_order_acquire)) return false;
    ring(job, next(job, plan, slots, parameters));
    if (backend_.options_.threads > 0) {
      backend_.rings_.fetch_add(1, std::memory_order_release);
      backend_.rings_.notify_all();
    } else {
      backend_.hear(first_place_ + job);
    }
    return true;
  }
  State poll(int job) override {
    if (done(job)) return State::kDone;
    if (backend_.options_.threads == 0) {
      backend_.serve_place(first_place_ + job);
      if (done(job)) return State::kDone;
    }
    if (backend_.failed_.load(std::memory_order_acquire)) return State::kFailed;
    if (++job_at(job).polls % kPollsBetweenYields == 0) sched_yield();
    return State::kPending;
  }

 private:
  ReferenceBackend& backend_;
  const int first_place_;
  const Memory memory_;
};

ReferenceBackend::ReferenceBackend(const OffloadOptions& options, size_t memory_limit)
    : memory_(memory_limit ? memory_limit : size_t{1'000'000} * static_cast<size_t>(options.reference.memory_mb)),
      options_(options.reference) {}

ReferenceBackend::~ReferenceBackend() { stop(); }

Status ReferenceBackend::open(const Program& program, const LaneOptions& options, Errors&) {
  plans_ = program.objects;
  for (const Program::Plan& plan : program.plans) kinds_.push_back({class_of(plan.row), plan.row.in_place != 0});
  layout_ = lay_out_places(program.plans, options.job_size);
  lane_bytes_ = rounded(layout_.stride * static_cast<size_t>(options.jobs));
  jobs_of_lane_ = options.jobs;
  int lanes = 0;
  for (const auto& [run, wanted] : {std::pair{Run::kResident, options.resident}, {Run::kStream, options.stream}})
    if (wanted) first_lane_[static_cast<size_t>(run)] = std::exchange(lanes, lanes + options.workers);
  place_count_ = lanes * options.jobs;
  lanes_.resize(static_cast<size_t>(lanes));
  open_ = std::make_unique<std::atomic<const ReferenceLane*>[]>(lanes_.size());
  if (options_.threads == 0) without_threads_.resize(static_cast<size_t>(place_count_));
  for (int t = 0; t < options_.threads; ++t)
    threads_.emplace_back([this, t] {
      name_thread("reference " + std::to_string(t));
      serve(t);
    });
  return {};
}

Status ReferenceBackend::open_lanes(const std::vector<LaneFor>& lanes, Errors& errors) {
  for (const LaneFor& lane : lanes)
    for (const int first : first_lane_) {
      if (first < 0) continue;
      ReferenceLane::Memory memory(static_cast<uint8_t*>(std::aligned_alloc(kAlignment, lane_bytes_)), &std::free);
      if (!memory) return errors.error("no memory for {} jobs: {} MB wanted", jobs_of_lane_, lane_bytes_ >> 20);
      std::memset(memory.get(), 0, lane_bytes_);
      Places places = layout_;
      places.host = memory.get();
      const int number = first + lane.worker;
      std::unique_ptr<ReferenceLane>& made = lanes_[static_cast<size_t>(number)];
      made = std::make_unique<ReferenceLane>(*this, places, number * jobs_of_lane_, std::move(memory));
      open_[static_cast<size_t>(number)].store(made.get(), std::memory_order_release);
    }
  return {};
}

Lane* ReferenceBackend::lane(int worker, Run run) {
  const int first = first_lane_[static_cast<size_t>(run)];
  return first < 0 ? nullptr : lanes_[static_cast<size_t>(first + worker)].get();
}

bool ReferenceBackend::stop() {
  stop_.store(true, std::memory_order_release);
  rings_.fetch_add(1, std::memory_order_release);
  rings_.notify_all();
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
  return true;
}

void ReferenceBackend::serve(int thread) {
  std::vector<uint32_t> seen(static_cast<size_t>(place_count_), 0);
  std::vector<Seen> jobs;
  int idle = 0;
  while (!stop_.load(std::memory_order_acquire)) {
    const uint32_t rings = rings_.load(std::memory_order_acquire);
    bool found = false;
    for (int place = thread; place < place_count_; place += options_.threads) {
      Seen job;
      if (!look(place, seen[static_cast<size_t>(place)], job)) continue;
      found = true;
      if (plan_job(job)) jobs.push_back(job);
    }
    int64_t wait = INT64_MAX;
    const int64_t now = JobClock::ns();
    std::erase_if(jobs, [&](const Seen& job) {
      if (job.ready > now) {
        wait = std::min(wait, job.ready - now);
        return false;
      }
      run(job);
      return true;
    });
    if (found) {
      idle = 0;
    } else if (!jobs.empty()) {
      // A doorbell that rings meanwhile is heard when the first of these jobs is due.
      if (wait > kShortNs)
        std::this_thread::sleep_for(std::chrono::nanoseconds(std::min(wait - kShortNs / 2, kLongestSleepNs)));
      else
        sched_yield();
    } else if (++idle > kIdlePolls) {
      rings_.wait(rings, std::memory_order_acquire);
      idle = 0;
    }
  }
}

void ReferenceBackend::hear(int place) {
  Place& p = without_threads_[static_cast<size_t>(place)];
  if (!p.waiting && look(place, p.seen, p.job)) p.waiting = plan_job(p.job);
}

void ReferenceBackend::serve_place(int place) {
  Place& p = without_threads_[static_cast<size_t>(place)];
  if (!p.waiting || p.job.ready > JobClock::ns()) return;
  p.waiting = false;
  run(p.job);
}

bool ReferenceBackend::look(int place, uint32_t& seen, Seen& job) const {
  const ReferenceLane* const lane = open_[static_cast<size_t>(place / jobs_of_lane_)].load(std::memory_order_acquire);
  if (!lane) return false;
  for (const PlanClass c : {kHeaderPlans, kPayloadPlans}) {
    const Doorbell& bell = lane->places().bell(place % jobs_of_lane_, c);
    job.word = __atomic_load_n(&bell.job, __ATOMIC_ACQUIRE);
    const auto sequence = static_cast<uint32_t>(job.word >> 32);
    // The bell of the other class still tells of an older job.
    if (static_cast<int32_t>(sequence - seen) <= 0) continue;
    job.parameters = __atomic_load_n(&bell.parameters, __ATOMIC_RELAXED);
    if ((sequence & 0xffff) != job.parameters >> 48) continue;
    seen = sequence;
    job.lane = lane;
    job.place = place % jobs_of_lane_;
    return true;
  }
  return false;
}

bool ReferenceBackend::plan_job(Seen& job) {
  const uint64_t number = jobs_.fetch_add(1, std::memory_order_relaxed) + 1;
  if (options_.fail_at && number >= options_.fail_at) failed_.store(true, std::memory_order_release);
  const bool hangs = options_.hang_at && number >= options_.hang_at;
  if (failed_.load(std::memory_order_acquire) || (hangs && options_.hang_ms == 0)) return false;
  const int64_t now = JobClock::ns();
  const double slowness = slowness_.load(std::memory_order_relaxed);
  job.ready = now + static_cast<int64_t>(options_.delay_us * 1e3 * slowness);
  if (hangs) {
    int64_t end = 0;
    const int64_t mine = now + int64_t{options_.hang_ms} * 1'000'000;
    if (hang_end_ns_.compare_exchange_strong(end, mine)) end = mine;
    job.ready = std::max(job.ready, end);
  }
  const auto low = static_cast<uint32_t>(job.word);
  const double packets = low & ((1u << Doorbell::kSlotBits) - 1);
  // What does one job after the other, for `ns` each.
  const auto queue_for = [&](std::atomic<int64_t>& free_at, double ns) {
    const auto takes = static_cast<int64_t>(ns * slowness);
    int64_t free = free_at.load(std::memory_order_relaxed);
    while (!free_at.compare_exchange_weak(free, std::max(free, now) + takes, std::memory_order_relaxed)) {
    }
    job.ready = std::max(job.ready, std::max(free, now) + takes);
  };
  if (options_.gbps > 0) {
    const RowLayout& row = (*plans_)[low >> Doorbell::kSlotBits].row();
    queue_for(link_free_ns_, 8.0 * (row.there + row.back) * packets / options_.gbps);
  }
  if (const double mpps = capacity_.load(std::memory_order_relaxed); mpps > 0)
    queue_for(busy_until_ns_, packets * 1e3 / mpps);
  if (options_.late_every && number % options_.late_every == 0) job.ready += int64_t{options_.late_ms} * 1'000'000;
  return true;
}

void ReferenceBackend::run(const Seen& job) {
  const auto low = static_cast<uint32_t>(job.word);
  const auto plan = static_cast<int>(low >> Doorbell::kSlotBits);
  const auto slots = static_cast<int>(low & ((1u << Doorbell::kSlotBits) - 1));
  const auto* parameters = reinterpret_cast<const uint8_t*>(job.parameters << 16 >> 12);
  const offload::Plan& p = (*plans_)[static_cast<size_t>(plan)];
  const Places& places = job.lane->places();
  auto* const counts = reinterpret_cast<uint64_t*>(places.counts(job.place));
  std::fill_n(counts, p.counters(), 0);
  const RowLayout& row = p.row();
  const auto stride = static_cast<size_t>(row.stride), there = static_cast<size_t>(row.there),
             back = static_cast<size_t>(row.back), header = static_cast<size_t>(row.header);
  const auto results = static_cast<size_t>(row.result(row.results));
  constexpr int kTile = 64;
  Slot tile[kTile];
  alignas(16) uint8_t rows[kTile * kMaxStride];
  for (int first = 0; first < slots; first += kTile) {
    const int n = std::min(kTile, slots - first);
    for (int i = 0; i < n; ++i) {
      Slot& s = tile[i];
      s.row = rows + static_cast<size_t>(i) * stride;
      // Who reads what has not travelled shall notice.
      std::memset(s.row, kNotThere, stride);
      std::memset(s.row, 0, results);
      std::memcpy(s.row + header, places.there(job.place) + static_cast<size_t>(first + i) * there, there);
      std::memcpy(&s.header, s.row + header, sizeof s.header);
      s.counts = counts;
      s.window_at = s.header.data;
      s.stopped = s.whole = false;
      s.fault = Fault::kNone;
      if (runner_) runner_(plan, &s, parameters);
    }
    if (!runner_) p.run(tile, n, parameters);
    for (int i = 0; i < n; ++i) {
      Slot& s = tile[i];
      const auto at = static_cast<size_t>(first + i);
      if (s.whole) s.header.flags |= RowHeader::kWhole;
      std::memcpy(s.row + header, &s.header, sizeof s.header);
      std::memcpy((row.in_place ? places.there(job.place) : places.back(job.place)) + at * back, s.row, back);
      if (s.whole) std::memcpy(places.whole(job.place) + at * stride, s.row, stride);
      if (s.fault != Fault::kNone) [[unlikely]]
        blame(p, s);
    }
  }
  __atomic_store_n(places.done(job.place, kinds_[static_cast<size_t>(plan)].plan_class),
                   static_cast<uint32_t>(job.word >> 32), __ATOMIC_RELEASE);
}

void ReferenceBackend::blame(const offload::Plan& plan, const Slot& slot) {
  if (blamed_.exchange(true)) return;
  const std::string who =
      slot.fault_step < plan.steps().size() ? plan.steps()[slot.fault_step].element->declaration() : "?";
  const std::lock_guard guard(fault_lock_);
  fault_ = fmt::format("{} {}", who,
                       slot.fault == Fault::kTorn ? "wrote or counted before it asked for bytes that have not travelled"
                       : slot.fault == Fault::kNotSet ? "did not write an annotation that it declares to Set"
                                                      : "used bytes that it does not declare");
  fmt::print(stderr, "reference device: {}\n", fault_);
}

std::string ReferenceBackend::describe() const {
  std::string text = "name: reference (this process)\n";
  const std::lock_guard guard(fault_lock_);
  if (!fault_.empty()) text += fmt::format("fault: {}\n", fault_);
  if (const std::string options = options_.text(); !options.empty()) text += fmt::format("options: {}\n", options);
  return text;
}

}  // namespace headrace::offload
