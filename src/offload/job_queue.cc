#include "offload/job_queue.hh"

#include <algorithm>
#include <climits>
#include <cmath>
#include <cstring>
#include <utility>

#include "headrace/packet_pool.hh"
#include "headrace/real_clock.hh"

namespace headrace::offload {

const char* const kEventNames[kEvents] = {"jobs",      "job_packets", "cpu_packets", "full_lane",   "behind", "resumed",
                                          "no_buffer", "escaped",     "late_jobs",   "failed_jobs", "waits"};

namespace {

/// A device counts as hung when all job places of a worker have been in quarantine for this many deadlines.
constexpr int64_t kHopelessDeadlines = 4;

}  // namespace

JobQueue::JobQueue(int worker, int first_device, const std::vector<Plan>& plans,
                   std::vector<std::unique_ptr<Device>>& devices, const std::vector<ChainEntry*>& entries,
                   const OffloadOptions& options)
    : worker_(worker),
      first_device_(first_device),
      plans_(plans),
      devices_(devices),
      entries_(entries),
      options_(options),
      quarantines_(devices.size()),
      lines_(plans.size()) {
  const bool rewrites = std::any_of(plans.begin(), plans.end(), [](const Plan& plan) { return plan.rewrites(); });
  size_t places = 0;
  for (size_t d = 0; d < devices.size(); ++d) {
    std::vector<Job> jobs(static_cast<size_t>(options.jobs));
    for (size_t i = 0; i < jobs.size(); ++i) {
      Job& job = jobs[i];
      job.device = static_cast<int>(d);
      job.place = static_cast<int>(i);
      job.packets.resize(static_cast<size_t>(options.job));
      if (rewrites) job.outputs.resize(static_cast<size_t>(options.job));
      job.untouched.resize(static_cast<size_t>(options.job));
    }
    places += jobs.size();
    jobs_.push_back(std::move(jobs));
    lanes_.push_back(&devices[d]->backend->lane(worker));
  }
  int counters = 1;
  for (const Plan& plan : plans) rows_.emplace_back(plan);
  for (const Plan& plan : plans) counters = std::max(counters, plan.counters());
  counts_.resize(static_cast<size_t>(counters));
  for (Line& line : lines_) {
    line.ring.resize(std::max<size_t>(places, 1));
    line.last_of_bucket.resize(kBuckets);
  }
  Tuning tuning;
  // Each other plan finds a place, however slow this one is.
  tuning.places = std::max(options.jobs - static_cast<int>(plans.size()) + 1, 1);
  tuning.job = options.job;
  tuning.max_wait_us = INT_MAX;  // the entries have their own
  tunings_.assign(plans.size(), tuning);
}

JobQueue::~JobQueue() {
  for (std::vector<Job>& jobs : jobs_)
    for (Job& job : jobs) {
      job.behind.kill();
      if (job.state != State::kFree && job.state != State::kQuarantine)
        for (int i = 0; i < job.size; ++i) job.packets[static_cast<size_t>(i)]->kill();
      // Output buffers to which a stuck device may still write are lost.
      const bool on_device = job.state == State::kSubmitted || job.state == State::kQuarantine;
      if (on_device && !devices_[static_cast<size_t>(job.device)]->stopped) continue;
      for (Packet* output : job.outputs)
        if (output) output->kill();
    }
  for (Line& line : lines_) line.parked.kill();
}

bool JobQueue::idle() const {
  for (const Line& line : lines_)
    if (!line.empty() || !line.parked.empty()) return false;
  return true;
}

int JobQueue::usable_device() const {
  const int n = static_cast<int>(devices_.size());
  for (int i = 0; i < n; ++i) {
    const int d = (first_device_ + i) % n;
    if (quarantines_[static_cast<size_t>(d)].places < options_.jobs &&
        !devices_[static_cast<size_t>(d)]->failed.load(std::memory_order_relaxed))
      return d;
  }
  return -1;
}

// --- Arrival

void JobQueue::arrive(const ChainEntry& entry, Batch& batch) {
  arrived_ = true;
  if (lines_[static_cast<size_t>(entry.plan())].parked.empty())
    send(entry, batch.begin(), batch.size());
  else
    park(entry, batch.begin(), batch.size());
  batch.clear();
}

void JobQueue::send(const ChainEntry& entry, Packet** packets, int n) {
  const OffloadOptions& options = entry.in_effect();
  using Mode = OffloadOptions::Mode;
  if (usable_device() < 0 || options.mode == Mode::kCpu || options.mode == Mode::kAuto) {
    to_cpu(entry.plan(), entry.step(), packets, nullptr, n);
    return;
  }
  if (options.mode == Mode::kDevice) {
    to_device(entry, packets, nullptr, n);
    return;
  }
  // By bucket, so that all packets of a flow take the same path.
  const auto below = static_cast<uint32_t>(std::lround(options.fraction * kBuckets));
  Packet* here[Batch::kCapacity];
  uint16_t buckets_here[Batch::kCapacity], buckets_there[Batch::kCapacity];
  int there = 0, stay = 0;
  for (int i = 0; i < n; ++i) {
    Packet* p = packets[i];
    // The lowest bits choose the worker, so higher bits choose the processor.
    const uint16_t bucket = bucket_of(*p);
    const bool device = bucket < below;
    here[stay] = p;
    buckets_here[stay] = bucket;
    packets[there] = p;
    buckets_there[there] = bucket;
    there += device;
    stay += !device;
  }
  if (there) to_device(entry, packets, buckets_there, there);
  if (stay) to_cpu(entry.plan(), entry.step(), here, buckets_here, stay);
}

void JobQueue::to_device(const ChainEntry& entry, Packet** packets, const uint16_t* buckets, int n) {
  const int plan = entry.plan();
  const OffloadOptions& options = entry.in_effect();
  const Tuning& tuning = tunings_[static_cast<size_t>(plan)];
  Line& line = lines_[static_cast<size_t>(plan)];
  while (n > 0) {
    Job* job = line.open ? line.open : open_job(plan);
    if (!job) {
      if (options.mode == OffloadOptions::Mode::kDevice && usable_device() >= 0) {
        park(entry, packets, n);
        return;
      }
      events_[kFullLane] += static_cast<uint64_t>(n);
      to_cpu(plan, entry.step(), packets, buckets, n);
      return;
    }
    // The entries of a chain may have different options.
    const int most = std::clamp(std::min(options.job, tuning.job), 1, options_.job);
    job->max_wait_us = std::min({job->max_wait_us, options.max_wait_us, tuning.max_wait_us});
    if (job->size < most) {
      const int k = append(*job, entry.step(), packets, buckets, std::min(n, most - job->size));
      packets += k;
      if (buckets) buckets += k;
      n -= k;
    }
    if (job->size >= most) submit(*job);
  }
}

void JobQueue::park(const ChainEntry& entry, Packet** packets, int n) {
  Line& line = lines_[static_cast<size_t>(entry.plan())];
  if (line.parked.empty()) {
    // Of packets that were parked before, some may have to go on waiting.
    if ((closed_gates_ & gate_of(entry.plan())) == 0) events_[kWaits] += 1;
    closed_gates_ |= gate_of(entry.plan());
    // Jobs of other plans may hold the places that are missing here.
    for (Line& other : lines_)
      if (other.open) submit(*other.open);
  }
  for (int i = 0; i < n; ++i) line.parked.push_back(packets[i], entry.id());
}

bool JobQueue::unpark(int plan) {
  Line& line = lines_[static_cast<size_t>(plan)];
  if (line.parked.empty()) return false;
  const bool for_device = entries_[line.parked.first->tag()]->in_effect().mode == OffloadOptions::Mode::kDevice;
  if (for_device && usable_device() >= 0 && !line.open && !free_job(plan)) return false;
  Held rest = std::exchange(line.parked, {});
  const Packet* const first = rest.first;
  while (!rest.empty() && line.parked.empty()) {
    Batch batch;
    const uint16_t id = rest.take(batch);
    send(*entries_[id], batch.begin(), batch.size());
  }
  // What found no place is in front of what was not tried.
  line.parked.append(rest);
  if (!line.parked.empty()) return line.parked.first != first;
  closed_gates_ = 0;
  for (size_t p = 0; p < lines_.size(); ++p)
    if (!lines_[p].parked.empty()) closed_gates_ |= gate_of(static_cast<int>(p));
  return true;
}

void JobQueue::to_cpu(int plan, uint16_t step, Packet** packets, const uint16_t* buckets, int n) {
  Line& line = lines_[static_cast<size_t>(plan)];
  events_[kCpuPackets] += static_cast<uint64_t>(n);
  ShaderElementBase* element = plans_[static_cast<size_t>(plan)].steps()[step].element;
  Batch batch;
  for (int i = 0; i < n; ++i) {
    Packet* p = packets[i];
    if (!line.empty()) {
      // A packet must not overtake packets of its bucket that are on a device.
      const uint64_t last = std::max(line.untracked, line.last_of_bucket[buckets ? buckets[i] : bucket_of(*p)]);
      if (last > line.released) {
        Job* job = line.at(static_cast<size_t>(last - line.released - 1));
        // No packet may join a job that other packets wait behind.
        if (job->state == State::kOpen) submit(*job);
        job->behind.push_back(p, step);
        events_[kBehind] += 1;
        continue;
      }
    }
    batch.push_back(p);
  }
  if (!batch.empty()) element->push(0, batch);
}

JobQueue::Job* JobQueue::free_job(int plan) {
  const int most = std::max(tunings_[static_cast<size_t>(plan)].places, 1);
  if (static_cast<int>(lines_[static_cast<size_t>(plan)].size) >= most) return nullptr;
  const int device = usable_device();
  if (device < 0) return nullptr;
  for (Job& job : jobs_[static_cast<size_t>(device)])
    if (job.state == State::kFree) return &job;
  return nullptr;
}

JobQueue::Job* JobQueue::open_job(int plan) {
  Job* const job = free_job(plan);
  if (!job) return nullptr;
  Line& line = lines_[static_cast<size_t>(plan)];
  job->state = State::kOpen;
  job->plan = plan;
  job->size = 0;
  job->sequence = line.released + line.size + 1;
  job->first_arrival = now_ns();
  job->max_wait_us = INT_MAX;
  job->rows = lane(*job).rows_in(job->place);
  line.push(job);
  line.open = job;
  return job;
}

void JobQueue::provide_outputs(Job& job, int first, int n) {
  Packet** const slots = job.outputs.data() + first;
  Packet* found[Batch::kCapacity];
  for (int done = 0; done < n;) {
    const int most = std::min(n - done, Batch::kCapacity);
    const auto missing = static_cast<uint32_t>(std::count(slots + done, slots + done + most, nullptr));
    uint32_t got = missing == 0 ? 0 : PacketPool::instance().allocate_bulk(found, missing);
    events_[kNoBuffer] += missing - got;
    for (int i = done; got > 0; ++i)
      if (!slots[i]) slots[i] = found[--got];
    done += most;
  }
}

int JobQueue::append(Job& job, uint16_t step, Packet** packets, const uint16_t* buckets, int n) {
  const Plan& plan = plans_[static_cast<size_t>(job.plan)];
  const int k = std::min(n, options_.job - job.size);
  if (plan.rewrites()) provide_outputs(job, job.size, k);
  rows_[static_cast<size_t>(job.plan)].pack(
      step, packets, plan.rewrites() ? job.outputs.data() + job.size : nullptr, k,
      job.rows + static_cast<size_t>(job.size) * static_cast<size_t>(plan.row().stride));
  std::copy_n(packets, k, job.packets.begin() + job.size);
  std::fill_n(job.untouched.begin() + job.size, k, plan.resume_at(step));
  Line& line = lines_[static_cast<size_t>(job.plan)];
  if (buckets) {
    for (int i = 0; i < k; ++i) line.last_of_bucket[buckets[i]] = job.sequence;
  } else {
    line.untracked = job.sequence;
  }
  job.size += k;
  return k;
}

void JobQueue::submit(Job& job) {
  lines_[static_cast<size_t>(job.plan)].open = nullptr;
  Device& device = *devices_[static_cast<size_t>(job.device)];
  job.submitted = now_ns();
  job.state = State::kSubmitted;
  // Its tables may be old. A job that is not pinned runs on the CPU when its turn comes.
  if (device.failed.load(std::memory_order_relaxed)) return;
  job.generation = device.parameters->enter(worker_);
  job.pinned = true;
  if (!lane(job).submit(job.place, job.plan, job.size, device.parameters->address(job.generation))) {
    device.failed.store(true, std::memory_order_relaxed);
    unpin(job);
  }
}

void JobQueue::unpin(Job& job) {
  if (!job.pinned) return;
  job.pinned = false;
  devices_[static_cast<size_t>(job.device)]->parameters->leave(worker_, job.generation);
}

// --- Release

bool JobQueue::poll() {
  bool worked = false;
  if (!releasing_) {
    worked = release_done();
    if (quarantined_) worked |= look_at_quarantine();
    for (size_t plan = 0; closed_gates_ != 0 && plan < lines_.size(); ++plan) worked |= unpark(static_cast<int>(plan));
  }
  const bool quiet = !arrived_;
  arrived_ = false;
  int64_t now = 0;
  for (size_t plan = 0; plan < lines_.size(); ++plan) {
    Line& line = lines_[plan];
    if (!line.open) continue;
    if (now == 0) now = now_ns();
    if ((quiet && tunings_[plan].at_quiet) ||
        now - line.open->first_arrival >= int64_t{line.open->max_wait_us} * 1000) {
      submit(*line.open);
      worked = true;
    }
  }
  return worked;
}

bool JobQueue::release_done() {
  if (releasing_) return false;
  bool worked = false;
  for (size_t plan = 0; plan < lines_.size(); ++plan) {
    Line& line = lines_[plan];
    while (!line.empty()) {
      Job& job = *line.front();
      if (job.state == State::kOpen) break;
      Lane::State state = job.pinned ? lane(job).poll(job.place) : Lane::State::kFailed;
      if (state == Lane::State::kPending) {
        if (now_ns() - job.submitted < int64_t{options_.deadline_ms} * 1'000'000) break;
      }
      finish_front(static_cast<int>(plan), state);
      worked = true;
    }
  }
  return worked;
}

void JobQueue::finish_front(int plan, Lane::State state) {
  Line& line = lines_[static_cast<size_t>(plan)];
  Job& job = *line.front();
  releasing_ = true;
  State then = State::kQuarantine;
  switch (state) {
    case Lane::State::kDone:
      unpin(job);
      release(job);
      then = State::kFree;
      break;
    case Lane::State::kPending:
      events_[kLateJobs] += 1;
      // The device may still write into the job's memory and read tables.
      run_again(job);
      quarantine(job);
      break;
    case Lane::State::kFailed:
      events_[kFailedJobs] += 1;
      devices_[static_cast<size_t>(job.device)]->failed.store(true, std::memory_order_relaxed);
      run_again(job);
      break;
  }
  // Only now, because packets for the CPU that arrived while the job's packets were pushed had to wait behind it.
  line.pop();
  ++line.released;
  push_held(plan, job.behind);
  // Only now, because pushing packets may ask for a free job, and this job still holds its packets.
  job.state = then;
  releasing_ = false;
}

void JobQueue::release(Job& job) {
  const Plan& plan = plans_[static_cast<size_t>(job.plan)];
  const RowLayout& layout = plan.row();
  const int64_t now = now_ns();
  doorbell_latency_.add(static_cast<uint64_t>(std::max<int64_t>(now - job.submitted, 0)));
  arrival_latency_.add(static_cast<uint64_t>(std::max<int64_t>(now - job.first_arrival, 0)));
  events_[kJobs] += 1;
  events_[kJobPackets] += static_cast<uint64_t>(job.size);

  lane(job).counts(job.place, counts_.data(), plan.counters());
  for (const Step& step : plan.steps()) step.element->add_counts(counts_.data() + step.first_counter);

  const uint8_t* row = lane(job).rows_out(job.place);
  const Rows& rows = rows_[static_cast<size_t>(job.plan)];
  uint16_t codes[Batch::kCapacity];
  for (int done = 0; done < job.size;) {
    const int n = std::min(job.size - done, Batch::kCapacity);
    Packet** slots = job.packets.data() + done;
    Packet** outputs = plan.rewrites() ? job.outputs.data() + done : nullptr;
    const bool host = rows.apply(row, slots, outputs, job.untouched.data() + done, n, codes);
    for (int result = 0; result < layout.results; ++result)
      release_results(plan, row + layout.result(result), slots, codes, job.untouched.data() + done, n);
    row += static_cast<size_t>(n) * static_cast<size_t>(layout.stride);
    done += n;
    for (int begin = 0; begin < n;) {
      int end = host ? begin : n;
      if (host && rows.for_host(codes[begin])) {
        // Packets for the host may meet the others again later, and must not change places with packets of their flow.
        // So only neighbors with the same code go together.
        while (end < n && codes[end] == codes[begin]) ++end;
      } else {
        while (end < n && !rows.for_host(codes[end])) ++end;
      }
      dispatch_all(plan, slots + begin, codes + begin, end - begin);
      begin = end;
    }
  }
}

void JobQueue::release_results(const Plan& plan, const uint8_t* results, Packet* const* packets, const uint16_t* codes,
                               const uint16_t* untouched, int n) {
  const auto stride = static_cast<size_t>(plan.row().stride);
  // The step by which packet `i` got this result, plus 1.
  const auto step_of = [&](int i) -> uint32_t {
    if (codes[i] == untouched[i]) return 0;
    uint32_t step;
    std::memcpy(&step, results + static_cast<size_t>(i) * stride, sizeof step);
    return step > plan.steps().size() ? 0 : step;
  };
  for (int begin = 0; begin < n;) {
    const uint32_t step = step_of(begin);
    int end = begin + 1;
    while (end < n && step_of(end) == step) ++end;
    if (step > 0)
      plan.steps()[step - 1].element->release(packets + begin, results + static_cast<size_t>(begin) * stride + 4,
                                              stride, end - begin);
    begin = end;
  }
}

void JobQueue::dispatch_all(const Plan& plan, Packet** slots, uint16_t* codes, int left) {
  while (left > 0) {
    const uint16_t code = codes[0];
    Batch out;
    int rest = 0, taken = 0;
    for (int i = 0; i < left; ++i) {
      Packet* p = slots[i];
      const uint16_t c = codes[i];
      const bool mine = c == code;
      out.begin()[taken] = p;
      slots[rest] = p;
      codes[rest] = c;
      taken += mine;
      rest += !mine;
    }
    left = rest;
    out.resize(taken);
    dispatch(plan, code, out);
  }
}

void JobQueue::dispatch(const Plan& plan, uint16_t code, Batch& batch) {
  const Exit& exit = plan.exits()[static_cast<size_t>(code - kExit)];
  ShaderElementBase* element = plan.steps()[exit.step].element;
  switch (exit.kind) {
    case Exit::Kind::kResume:
      events_[kResumed] += static_cast<uint64_t>(batch.size());
      element->push(0, batch);
      break;
    case Exit::Kind::kEscape:
      events_[kEscaped] += static_cast<uint64_t>(batch.size());
      element->leave(batch, kEscape);
      break;
    case Exit::Kind::kDrop:
    case Exit::Kind::kPort:
      element->leave(batch, exit.port);
      break;
  }
}

void JobQueue::run_again(Job& job) {
  const Plan& plan = plans_[static_cast<size_t>(job.plan)];
  for (int i = 0; i < job.size;) {
    const uint16_t untouched = job.untouched[static_cast<size_t>(i)];
    const uint16_t step = plan.exits()[static_cast<size_t>(untouched - kExit)].step;
    Batch batch;
    for (; i < job.size && !batch.full() && job.untouched[static_cast<size_t>(i)] == untouched; ++i)
      batch.push_back(job.packets[static_cast<size_t>(i)]);
    plan.steps()[step].element->push(0, batch);
  }
}

void JobQueue::push_held(int plan, Held& held) {
  // Packets that are pushed may hold back others in turn, but behind later jobs.
  Held packets = std::exchange(held, {});
  while (!packets.empty()) {
    Batch batch;
    const uint16_t step = packets.take(batch);
    plans_[static_cast<size_t>(plan)].steps()[step].element->push(0, batch);
  }
}

void JobQueue::quarantine(Job& job) {
  Quarantine& q = quarantines_[static_cast<size_t>(job.device)];
  ++quarantined_;
  if (++q.places == options_.jobs) q.full_since = now_ns();
}

bool JobQueue::look_at_quarantine() {
  bool any = false;
  for (size_t d = 0; d < devices_.size(); ++d) {
    Quarantine& q = quarantines_[d];
    if (q.places == 0) continue;
    std::atomic<bool>& failed = devices_[d]->failed;
    for (Job& job : jobs_[d]) {
      if (failed.load(std::memory_order_relaxed)) break;
      if (job.state != State::kQuarantine || !job.pinned) continue;
      const Lane::State state = lane(job).poll(job.place);
      if (state == Lane::State::kFailed) failed.store(true, std::memory_order_relaxed);
      if (state != Lane::State::kDone) continue;
      unpin(job);
      job.state = State::kFree;
      --q.places;
      --quarantined_;
      any = true;
    }
    if (q.places == options_.jobs &&
        now_ns() - q.full_since > kHopelessDeadlines * int64_t{options_.deadline_ms} * 1'000'000)
      failed.store(true, std::memory_order_relaxed);
    if (failed.load(std::memory_order_relaxed)) {
      // Its places are not used again, so there is nothing to poll for.
      quarantined_ -= q.places;
      q.places = 0;
    }
  }
  return any;
}

void JobQueue::drain() {
  for (Line& line : lines_)
    if (line.open) submit(*line.open);
  while (!idle()) {
    if (!poll()) __builtin_ia32_pause();
  }
}

bool JobQueue::uses(const Device& device, int generation) {
  bool any = false;
  for (std::vector<Job>& jobs : jobs_)
    for (Job& job : jobs) {
      if (!job.pinned || job.generation != generation || devices_[static_cast<size_t>(job.device)].get() != &device)
        continue;
      any |= lane(job).poll(job.place) == Lane::State::kPending;
    }
  return any;
}

void JobQueue::reset_statistics() {
  for (SingleWriter<uint64_t>& n : events_) n = 0;
  doorbell_latency_.clear();
  arrival_latency_.clear();
}

}  // namespace headrace::offload
