#include "offload/job_queue.hh"

#include <algorithm>
#include <climits>
#include <cmath>
#include <utility>

#include "headrace/packet_pool.hh"
#include "offload/balance/formulas.hh"
#include "offload/job_clock.hh"

namespace headrace::offload {

const char* const kEventNames[kEvents] = {"jobs",      "job_packets", "cpu_packets", "full_lane",   "behind", "resumed",
                                          "no_buffer", "escaped",     "late_jobs",   "failed_jobs", "waits"};

namespace {

/// A device counts as hung when all job places of a worker have been in quarantine for this many deadlines.
constexpr int64_t kHopelessDeadlines = 4;
/// How often a device that hangs is asked for its late jobs.
constexpr int64_t kHungPollNs = 1'000'000;

}  // namespace

JobQueue::JobQueue(int worker, int first_device, const std::vector<Plan>& plans,
                   std::vector<std::unique_ptr<Device>>& devices, const std::vector<ChainEntry*>& entries,
                   const OffloadOptions& options, BalanceLink& link, double cycles_per_us)
    : worker_(worker),
      plans_(plans),
      devices_(devices),
      entries_(entries),
      options_(options),
      quarantines_(devices.size()),
      link_(link),
      cycles_per_us_(cycles_per_us) {
  jobs_.resize(devices.size());
  for (size_t d = 0; d < devices.size(); ++d)
    epochs_.push_back(std::make_unique<std::atomic<rcu::Epoch>[]>(static_cast<size_t>(options.jobs)));
  lanes_.resize(devices.size());
  wanted_lanes_.resize(devices.size());
  refused_lanes_.resize(devices.size());
  for (size_t d = 0; d < devices.size(); ++d) {
    use_lane(static_cast<int>(d));
    lacks_lanes_ |= !has_lane(static_cast<int>(d));
  }
  Tuning tuning;
  // Each other plan finds two places, one to fill while the device works on the other, however slow this plan is.
  const int others = static_cast<int>(plans.size()) - 1;
  tuning.places = std::max({options.jobs - 2 * others, options.jobs / (others + 1), 1});
  tuning.job = options.job;
  tuning.max_wait_us = INT_MAX;  // the entries have their own
  tuning.device = first_device;
  int counters = 1;
  size_t exits = 0;
  for (const Plan& plan : plans) {
    exits = std::max(exits, plan.exits().size());
    OfPlan& of_plan = of_plan_.emplace_back(plan);
    of_plan.tuning = of_plan.balance.tuning = tuning;
    of_plan.lines.resize(devices.size());
    for (Line& line : of_plan.lines) line.ring.resize(static_cast<size_t>(options.jobs));
    of_plan.entry_at.resize(plan.steps().size());
    of_plan.balance.shares.resize(devices.size());
    of_plan.balance.reported.resize(devices.size());
    of_plan.balance.followed.resize(devices.size());
    of_plan.balance.given.resize(devices.size());
    of_plan.balance.decision.shares.resize(devices.size());
    of_plan.balance.devices.resize(devices.size());
    of_plan.balance.side.resize(kBuckets);
    of_plan.fixed.side.resize(kBuckets);
    of_plan.balance.weight.resize(kBuckets);
    counters = std::max(counters, plan.counters());
  }
  for (ChainEntry* entry : entries) {
    OfPlan& of_plan = of_plan_[static_cast<size_t>(entry->plan())];
    of_plan.entry_at[entry->step()] = entry;
    if (!of_plan.entry) of_plan.entry = entry;
  }
  missing_.resize(devices.size() + 1);
  room_.resize(devices.size() + 1);
  usable_now_.resize(devices.size());
  counts_.resize(static_cast<size_t>(counters));
  next_of_code_.resize(exits);
}

void JobQueue::use_lane(int device) {
  const auto d = static_cast<size_t>(device);
  if (has_lane(device)) return;
  for (const Run run : {Run::kResident, Run::kStream})
    lanes_[d][static_cast<size_t>(run)] = devices_[d]->backend->lane(worker_, run);
  if (!has_lane(device)) return;
  const bool rewrites = std::any_of(plans_.begin(), plans_.end(), [](const Plan& plan) { return plan.rewrites(); });
  std::vector<Job> jobs(static_cast<size_t>(options_.jobs));
  for (size_t i = 0; i < jobs.size(); ++i) {
    Job& job = jobs[i];
    job.device = device;
    job.place = static_cast<int>(i);
    job.packets.resize(static_cast<size_t>(options_.job));
    if (rewrites) job.outputs.resize(static_cast<size_t>(options_.job));
    job.untouched.resize(static_cast<size_t>(options_.job));
  }
  jobs_[d] = std::move(jobs);
}

void JobQueue::settle_wanted_lanes() {
  lacks_lanes_ = wants_lanes_ = false;
  for (size_t d = 0; d < devices_.size(); ++d) {
    const int device = static_cast<int>(d);
    if (std::exchange(wanted_lanes_[d], 0)) {
      use_lane(device);
      refused_lanes_[d] = devices_[d]->well() && !has_lane(device);
    }
    lacks_lanes_ |= !has_lane(device);
  }
}

// A router that has run leaves no packets here: each worker's last act in it is drain(), which ends when idle() is true, and
// packets that come later, from threads that are no workers, never get here (Engine::arrive). So only what a test left in
// jobs is killed, for its pool. A count would come too late: the router whose handlers show it is gone.
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
  for (OfPlan& of_plan : of_plan_) {
    of_plan.gathered.batch->kill();
    for (Line& line : of_plan.lines) line.parked.kill();
  }
}

bool JobQueue::rests(const OfPlan& of_plan) {
  return of_plan.gathered.batch->empty() &&
         std::all_of(of_plan.lines.begin(), of_plan.lines.end(),
                     [](const Line& line) { return line.empty() && line.parked.empty(); });
}

bool JobQueue::idle() const { return std::all_of(of_plan_.begin(), of_plan_.end(), rests); }

bool JobQueue::usable(int device) const {
  const auto d = static_cast<size_t>(device);
  return has_lane(device) && quarantines_[d].places < options_.jobs && devices_[d]->well();
}

int JobQueue::nth_device(int first, int n) const {
  // The workers of a device that is not well spread over the others.
  const int others = static_cast<int>(devices_.size()) - 1;
  return n == 0 ? first : (first + 1 + (worker_ + n - 1) % others) % (others + 1);
}

int JobQueue::usable_device(int first) const {
  for (int n = 0; n < static_cast<int>(devices_.size()); ++n)
    if (const int d = nth_device(first, n); usable(d)) return d;
  return -1;
}

void JobQueue::look_for_lanes() {
  if (!lacks_lanes_) [[likely]]
    return;
  const auto want = [this](int device) {
    const auto d = static_cast<size_t>(device);
    if (!devices_[d]->well() || has_lane(device) || refused_lanes_[d]) return false;
    wanted_lanes_[d] = wants_lanes_ = true;
    return true;
  };
  const int devices = static_cast<int>(devices_.size());
  for (const OfPlan& of_plan : of_plan_) {
    const auto is_auto = [](const ChainEntry* e) { return e && e->in_effect().mode == OffloadOptions::Mode::kAuto; };
    if (std::any_of(of_plan.entry_at.begin(), of_plan.entry_at.end(), is_auto)) {
      for (int d = 0; d < devices; ++d) want(d);
      continue;
    }
    const int first = of_plan.tuning.device;
    for (int n = 0; n < devices; ++n)
      if (const int d = nth_device(first, n); usable(d) || want(d)) break;
  }
}

// --- Arrival

bool JobQueue::arrive(ChainEntry& entry, Batch& batch) {
  if (--until_tick_ <= 0 && !releasing_) tick();
  const OffloadOptions::Mode mode = entry.in_effect().mode;
  if (mode == OffloadOptions::Mode::kAuto) return arrive_balanced(entry, batch);
  if (mode == OffloadOptions::Mode::kCpu && rests(of_plan_[static_cast<size_t>(entry.plan())])) {
    events_[kCpuPackets] += static_cast<uint64_t>(batch.size());
    // Not a cost of a chain that the balancer decides on.
    const bool timed = meter_.timed();
    const LoadMeter::Part part = timed ? meter_.begin() : LoadMeter::Part{};
    entry.process(batch);
    if (timed) (void)meter_.end(part);
    return false;
  }
  arrived_ = true;
  send(entry, batch.begin(), batch.size());
  batch.clear();
  return true;
}

void JobQueue::send(const ChainEntry& entry, Packet** packets, int n, int only) {
  const OffloadOptions& options = entry.in_effect();
  using Mode = OffloadOptions::Mode;
  if (options.mode == Mode::kAuto) {
    send_balanced(entry, packets, n, only);
    return;
  }
  OfPlan& of_plan = of_plan_[static_cast<size_t>(entry.plan())];
  const int device = only >= 0 ? only : usable_device(of_plan.tuning.device);
  const bool to_some = device >= 0 && (options.mode == Mode::kDevice || options.mode == Mode::kFixed);
  if (!to_some || options.mode != Mode::kFixed) release_gathered(of_plan);
  if (devices_.size() == 1) {
    if (only < 0 && !of_plan.line(0).parked.empty()) {
      park(entry, 0, packets, nullptr, n);
      return;
    }
    if (!to_some) {
      to_cpu(entry.plan(), entry.step(), packets, nullptr, n);
      return;
    }
    if (options.mode == Mode::kDevice) {
      to_device(entry, 0, packets, nullptr, n);
      return;
    }
  }
  if (!to_some && only < 0 && rests(of_plan)) {
    to_cpu(entry.plan(), entry.step(), packets, nullptr, n);
    return;
  }
  const uint32_t below = !to_some ? 0
                         : options.mode == Mode::kFixed
                             ? static_cast<uint32_t>(std::lround(options.fraction * kBuckets))
                             : kBuckets;
  use_fixed_sides(of_plan, below, device);
  send_divided(entry, packets, n, only, true);
}

void JobQueue::send_behind(const ChainEntry& entry, Packet* packet, uint16_t bucket, int device) {
  const OfPlan& of_plan = of_plan_[static_cast<size_t>(entry.plan())];
  const int theirs = device_of(of_plan, bucket);
  if (of_plan.buckets.parked[bucket] > 0)
    park(entry, theirs, &packet, &bucket, 1);
  else if (device >= 0 && usable(theirs))
    to_device(entry, theirs, &packet, &bucket, 1);
  else
    to_cpu(entry.plan(), entry.step(), &packet, &bucket, 1);
}

void JobQueue::to_device(const ChainEntry& entry, int device, Packet** packets, const uint16_t* buckets, int n,
                         uint64_t given) {
  const int plan = entry.plan();
  const OffloadOptions& options = entry.in_effect();
  OfPlan& of_plan = of_plan_[static_cast<size_t>(plan)];
  const Tuning& tuning = tuning_of(of_plan);
  Line& line = of_plan.line(device);
  while (n > 0) {
    Job* job = line.open ? line.open : open_job(plan, device);
    if (!job) {
      if (options.mode == OffloadOptions::Mode::kAuto) {
        overflow(entry, device, packets, buckets, n, given);
        return;
      }
      if (options.mode == OffloadOptions::Mode::kDevice && usable_device(tuning.device) >= 0) {
        park(entry, device, packets, buckets, n, given);
        return;
      }
      events_[kFullLane] += static_cast<uint64_t>(n);
      to_cpu(plan, entry.step(), packets, buckets, n);
      return;
    }
    // The entries of a chain may have different options.
    const int most = std::clamp(std::min(options.job, tuning.job), 1, options_.job);
    job->max_wait_us = std::min({job->max_wait_us, options.max_wait_us, tuning.max_wait_us});
    const int fit = count_fitting(*job, packets, std::min(n, most - job->size), options);
    if (fit > 0) {
      const int k = append(*job, entry.step(), packets, buckets, fit, given);
      packets += k;
      if (buckets) buckets += k;
      n -= k;
    }
    if (job->size >= most || has_enough_bytes(job->size, job->bytes, options)) submit(*job);
  }
}

bool JobQueue::has_enough_bytes(int packets, int bytes, const OffloadOptions& options) {
  return options.job_bytes > 0 && packets >= balance::kLeastFullJob && bytes >= options.job_bytes;
}

int JobQueue::count_fitting(Job& job, Packet* const* packets, int n, const OffloadOptions& options) {
  if (options.job_bytes == 0) return n;
  int fit = 0;
  for (; fit < n && !has_enough_bytes(job.size + fit, job.bytes, options); ++fit)
    job.bytes += static_cast<int>(packets[fit]->length());
  return fit;
}

void JobQueue::park(const ChainEntry& entry, int device, Packet** packets, const uint16_t* buckets, int n,
                    uint64_t given) {
  OfPlan& of_plan = of_plan_[static_cast<size_t>(entry.plan())];
  if (given != of_plan.division) {
    of_plan.settled = false;
    of_plan.parked_strayed = true;
  }
  Line& line = of_plan.line(device);
  if (of_plan.all_on != device) of_plan.all_on = -1;
  if (line.parked.empty()) {
    line.shunned_for = -1;
    // Jobs of other plans may hold the places that are missing here.
    for (OfPlan& other : of_plan_)
      if (Job* const open = other.line(device).open) submit(*open);
  }
  for (int i = 0; i < n; ++i) {
    line.parked.push_back(packets[i], entry.id());
    const uint16_t bucket = buckets ? buckets[i] : bucket_of(*packets[i]);
    if (device_of(of_plan, bucket) != device) move_bucket(of_plan, bucket, device);
    ++of_plan.buckets.parked[bucket];
  }
  update_gate(entry.plan());
}

void JobQueue::update_gate(int plan) {
  // Packets that wait for others of their flows on a device that the plan no longer uses stop no source, if they are few.
  bool close = false;
  for (int p = 0; p < static_cast<int>(of_plan_.size()); ++p) {
    if (gate_of(p) != gate_of(plan)) continue;
    const OfPlan& of_plan = of_plan_[static_cast<size_t>(p)];
    const int device = usable_device(of_plan.tuning.device);
    for (int d = 0; d < static_cast<int>(of_plan.lines.size()); ++d) {
      const Held& parked = of_plan.lines[static_cast<size_t>(d)].parked;
      // Where packets are divided, the CPU has work meanwhile.
      const bool divided = is_balanced(of_plan) && of_plan.balance.all_to == Balance::kMixed;
      const Tuning& tuning = tuning_of(of_plan);
      const size_t few =
          divided ? static_cast<size_t>(tuning.job) * static_cast<size_t>(std::max(tuning.places, 1)) : many();
      close |= of_plan.lines[static_cast<size_t>(d)].behind > many();
      close |= !parked.empty() && ((d == device && !divided) || device < 0 || parked.size > few);
    }
  }
  if (close && (closed_gates_ & gate_of(plan)) == 0) events_[kWaits] += 1;
  closed_gates_ = close ? closed_gates_ | gate_of(plan) : closed_gates_ & ~gate_of(plan);
}

bool JobQueue::unpark(int plan, int device) {
  OfPlan& of_plan = of_plan_[static_cast<size_t>(plan)];
  Line& line = of_plan.line(device);
  if (line.parked.empty()) return false;
  const int wanted = usable_device(of_plan.tuning.device);
  const OffloadOptions::Mode mode = entries_[line.parked.first->tag()]->in_effect().mode;
  const bool for_device = mode == OffloadOptions::Mode::kDevice || mode == OffloadOptions::Mode::kAuto;
  const auto forget = [&](const Packet* p) { --of_plan.buckets.parked[bucket_of(*p)]; };
  Held rest;
  if (usable(device) && (!for_device || line.open || free_job(plan, device))) {
    rest = std::exchange(line.parked, {});
    const Packet* const first = rest.first;
    // What goes to the CPU may lead to here again, for another line.
    const bool again = std::exchange(unparking_, true);
    const bool sends_before = std::exchange(sends_waiting_, true);
    while (!rest.empty() && line.parked.empty()) {
      Batch batch;
      const uint16_t id = rest.take(batch);
      std::for_each(batch.begin(), batch.end(), forget);
      send(*entries_[id], batch.begin(), batch.size(), device);
    }
    unparking_ = again;
    sends_waiting_ = sends_before;
    // What found no place is in front of what was not tried.
    line.parked.append(rest);
    update_gate(plan);
    return line.parked.first != first;
  }
  if (device == wanted || (usable(device) && line.shunned_for == wanted)) return false;
  // To another device, or the CPU: as if they arrived now.
  rest = std::exchange(line.parked, {});
  for (const Packet* p = rest.first; p; p = p->next()) forget(p);
  const bool sends_before = std::exchange(sends_waiting_, true);
  while (!rest.empty()) {
    Batch batch;
    const uint16_t id = rest.take(batch);
    send(*entries_[id], batch.begin(), batch.size());
  }
  sends_waiting_ = sends_before;
  line.shunned_for = wanted;
  update_gate(plan);
  return true;
}

void JobQueue::to_cpu(int plan, uint16_t step, Packet** packets, const uint16_t* buckets, int n) {
  OfPlan& of_plan = of_plan_[static_cast<size_t>(plan)];
  events_[kCpuPackets] += static_cast<uint64_t>(n);
  const bool any = std::any_of(of_plan.lines.begin(), of_plan.lines.end(), [](const Line& l) { return !l.empty(); });
  Batch batch;
  int free = 0;
  for (int i = 0; i < n; ++i) {
    Packet* p = packets[i];
    if (any) {
      // A packet must not overtake packets of its bucket that are on a device.
      const uint16_t bucket = buckets ? buckets[i] : bucket_of(*p);
      Line& line = of_plan.line(device_of(of_plan, bucket));
      const uint64_t last = last_job(of_plan, bucket);
      if (last > line.released) {
        Job* job = line.at(static_cast<size_t>(last - line.released - 1));
        // No packet may join a job that other packets wait behind.
        if (job->state == State::kOpen) submit(*job);
        job->probe |= probing_;
        job->behind.push_back(p, step);
        // If its bucket is given to another side, the next ones must look for it.
        if (of_plan.side == nullptr || int{of_plan.side[bucket]} - 1 != device_of(of_plan, bucket)) {
          of_plan.settled = false;
          line.strayed = std::max(line.strayed, last);
        }
        events_[kBehind] += 1;
        // A full device is no reason to take all buffers.
        if (++line.behind > many() && (closed_gates_ & gate_of(plan)) == 0) [[unlikely]]
          update_gate(plan);
        continue;
      }
    }
    batch[free++] = p;
  }
  if (free == 0) return;
  batch.resize(free);
  process_in_slices(plan, step, batch);
}

void JobQueue::process(int plan, uint16_t step, Batch& batch) {
  OfPlan& of_plan = of_plan_[static_cast<size_t>(plan)];
  Measured& cpu = of_plan.balance.cpu;
  const auto n = static_cast<uint64_t>(batch.size());
  if (!meter_.timed()) [[likely]] {
    cpu.packets += n;
    of_plan.entry_at[step]->process(batch);
    return;
  }
  if (of_plan.balance.warming > 0) [[unlikely]] {
    process_warming(plan, step, batch);
    return;
  }
  cpu.packets += n;
  const LoadMeter::Part part = meter_.begin();
  of_plan.entry_at[step]->process(batch);
  const uint64_t cycles = meter_.end(part);
  cpu.cycles += cycles;
  cpu.timed += n;
  of_plan.balance.cpu_batches.add(n, cycles);
}

void JobQueue::process_warming(int plan, uint16_t step, Batch& batch) {
  OfPlan& of_plan = of_plan_[static_cast<size_t>(plan)];
  const int n = std::min(of_plan.balance.warming, batch.size());
  of_plan.balance.warming -= n;
  of_plan.balance.cpu.packets += static_cast<uint64_t>(n);
  Batch first, rest;
  for (int i = 0; i < batch.size(); ++i) (i < n ? first : rest).push_back(batch[i]);
  batch.clear();
  // What is inside of this part is not charged to an outer one, either.
  const LoadMeter::Part part = meter_.begin();
  of_plan.entry_at[step]->process(first);
  (void)meter_.end(part);
  if (!rest.empty()) process(plan, step, rest);
}

JobQueue::Job* JobQueue::free_job(int plan, int device) {
  OfPlan& of_plan = of_plan_[static_cast<size_t>(plan)];
  const int most = std::max(tuning_of(of_plan).places, 1);
  if (static_cast<int>(of_plan.line(device).size) >= most || !usable(device)) return nullptr;
  for (Job& job : jobs_[static_cast<size_t>(device)])
    if (job.state == State::kFree) return &job;
  return nullptr;
}

Run JobQueue::run_for(const OfPlan& of_plan, int device) const {
  // A line's jobs are released in their order, whatever lanes they are in, so a change of kind moves no packet.
  const bool stream = is_balanced(of_plan) && of_plan.balance.decision.stream;
  const Run wanted = stream ? Run::kStream : Run::kResident, other = stream ? Run::kResident : Run::kStream;
  return lanes_[static_cast<size_t>(device)][static_cast<size_t>(wanted)] ? wanted : other;
}

JobQueue::Job* JobQueue::open_job(int plan, int device) {
  Job* const job = free_job(plan, device);
  if (!job) return nullptr;
  Line& line = of_plan_[static_cast<size_t>(plan)].line(device);
  job->state = State::kOpen;
  job->plan = plan;
  job->size = job->bytes = 0;
  job->probe = job->warms = false;
  job->sequence = line.released + line.size + 1;
  job->first_arrival = JobClock::ns();
  job->max_wait_us = INT_MAX;
  job->run = run_for(of_plan_[static_cast<size_t>(plan)], device);
  job->lane = lanes_[static_cast<size_t>(device)][static_cast<size_t>(job->run)];
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

int JobQueue::append(Job& job, uint16_t step, Packet** packets, const uint16_t* buckets, int n, uint64_t given) {
  const Plan& plan = plans_[static_cast<size_t>(job.plan)];
  const int k = std::min(n, options_.job - job.size);
  if (plan.rewrites()) provide_outputs(job, job.size, k);
  OfPlan& of_plan = of_plan_[static_cast<size_t>(job.plan)];
  of_plan.rows.pack(step, packets, plan.rewrites() ? job.outputs.data() + job.size : nullptr, k,
                    job.rows + static_cast<size_t>(job.size) * static_cast<size_t>(plan.row().there));
  std::copy_n(packets, k, job.packets.begin() + job.size);
  std::fill_n(job.untouched.begin() + job.size, k, plan.resume_at(step));
  if (of_plan.all_on != job.device) of_plan.all_on = -1;
  if (buckets) {
    uint16_t* const job_of = of_plan.buckets.job.data();
    for (int i = 0; i < k; ++i) job_of[buckets[i]] = static_cast<uint16_t>(job.sequence);
    if (devices_.size() > 1) {
      uint8_t* const device_of = of_plan.buckets.device.data();
      for (int i = 0; i < k; ++i) device_of[buckets[i]] = static_cast<uint8_t>(job.device);
    }
  } else {
    of_plan.line(job.device).untracked = job.sequence;
  }
  if (given != of_plan.division) {
    of_plan.settled = false;
    of_plan.line(job.device).strayed = job.sequence;
  }
  job.size += k;
  job.probe |= probing_;
  job.warms |= probing_ && of_plan.balance.warming_there > 0;
  return k;
}

void JobQueue::submit(Job& job) {
  of_plan_[static_cast<size_t>(job.plan)].line(job.device).open = nullptr;
  Device& device = *devices_[static_cast<size_t>(job.device)];
  job.submitted = JobClock::ns();
  job.state = State::kSubmitted;
  // Its tables may be old. A job that is not pinned runs on the CPU when its turn comes.
  if (!pin(job)) return;
  if (!lane(job).submit(job.place, job.plan, job.size, device.parameters->address(job.generation))) {
    device.fail();
    unpin(job);
    epoch_of(job).store(0);
  }
}

bool JobQueue::pin(Job& job) {
  const Device& device = *devices_[static_cast<size_t>(job.device)];
  Parameters& parameters = *device.parameters;
  do {
    unpin(job);
    job.generation = parameters.enter(worker_);
    job.pinned = true;
    // In this order: whoever does not see it finds tables by then that this job has not got.
    epoch_of(job).store(parameters.epoch(job.generation));
    if (device.health.load() != Device::Health::kWell) {
      unpin(job);
      epoch_of(job).store(0);
      return false;
    }
  } while (!parameters.is_current(job.generation));
  return true;
}

rcu::Epoch JobQueue::oldest() const {
  rcu::Epoch oldest = 0;
  for (const auto& of_device : epochs_)
    for (int place = 0; place < options_.jobs; ++place)
      if (const rcu::Epoch epoch = of_device[static_cast<size_t>(place)].load(); epoch != 0)
        oldest = oldest == 0 ? epoch : std::min(oldest, epoch);
  return oldest;
}

void JobQueue::unpin(Job& job) {
  if (!job.pinned) return;
  job.pinned = false;
  devices_[static_cast<size_t>(job.device)]->parameters->leave(worker_, job.generation);
}

// --- Polls; late jobs

bool JobQueue::poll() {
  bool worked = false;
  if (--until_tick_ <= 0 && !releasing_) tick();
  const bool any = !idle();
  if (!releasing_) {
    worked = release_done();
    if (quarantined_) worked |= look_at_quarantine();
    look_for_lanes();
    for (size_t plan = 0; plan < of_plan_.size(); ++plan)
      for (size_t d = 0; d < devices_.size(); ++d) worked |= unpark(static_cast<int>(plan), static_cast<int>(d));
  }
  const bool quiet = !arrived_;
  arrived_ = false;
  const bool rested = std::exchange(bursts_polled_, meter_.bursts().all) == meter_.bursts().all;
  int64_t now = releasing_ ? 0 : looked_ns_;
  for (OfPlan& of_plan : of_plan_) {
    if (of_plan.gathered.began != 0 && !releasing_) {
      if (now == 0) now = JobClock::ns();
      if (quiet || now - of_plan.gathered.began >= int64_t{of_plan.gathered.max_wait_us} * 1000) {
        release_gathered(of_plan);
        worked = true;
      }
    }
    for (Line& line : of_plan.lines) {
      if (!line.open) continue;
      if (now == 0) now = JobClock::ns();
      if ((quiet && tuning_of(of_plan).at_quiet) ||
          now - line.open->first_arrival >= int64_t{line.open->max_wait_us} * 1000) {
        submit(*line.open);
        worked = true;
      }
    }
  }
  if (any) meter_.look(quiet && rested && !worked);
  return worked;
}

void JobQueue::quarantine(Job& job) {
  Quarantine& q = quarantines_[static_cast<size_t>(job.device)];
  ++quarantined_;
  devices_[static_cast<size_t>(job.device)]->late.fetch_add(1);
  if (++q.places == options_.jobs) q.full_since = JobClock::ns();
}

bool JobQueue::look_at_quarantine() {
  bool any = false;
  for (size_t d = 0; d < devices_.size(); ++d) {
    Quarantine& q = quarantines_[d];
    if (q.places == 0) continue;
    Device& device = *devices_[d];
    if (!device.well()) {
      // There is no hurry.
      const int64_t now = JobClock::ns();
      if (now - q.looked < kHungPollNs) continue;
      q.looked = now;
    }
    for (Job& job : jobs_[d]) {
      if (device.failed()) break;
      if (job.state != State::kQuarantine || !job.pinned) continue;
      const Lane::State state = lane(job).poll(job.place);
      if (state == Lane::State::kFailed) device.fail();
      if (state != Lane::State::kDone) continue;
      unpin(job);
      job.state = State::kFree;
      --q.places;
      --quarantined_;
      device.late.fetch_sub(1);
      note_done(device);
      any = true;
    }
    if (q.places == options_.jobs &&
        JobClock::ns() - q.full_since > kHopelessDeadlines * int64_t{options_.deadline_ms} * 1'000'000)
      device.move(Device::Health::kWell, Device::Health::kHung);
    if (device.failed()) {
      // Its places are not used again, so there is nothing to poll for.
      quarantined_ -= q.places;
      q.places = 0;
    }
  }
  return any;
}

void JobQueue::drain() {
  for (OfPlan& of_plan : of_plan_)
    for (Line& line : of_plan.lines)
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
  for (OfPlan& of_plan : of_plan_) {
    of_plan.doorbell_latency.clear();
    of_plan.arrival_latency.clear();
  }
}

}  // namespace headrace::offload
