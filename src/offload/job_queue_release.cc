// What a worker does with jobs that are done: it gives their results to shaders, and sends their packets on.

#include <algorithm>
#include <cstring>
#include <utility>

#include "offload/job_clock.hh"
#include "offload/job_queue.hh"

namespace headrace::offload {

namespace {

/// Of each line, at one look. While a worker releases many jobs it sends none, and the device runs out of them.
constexpr int kMostReleased = 8;

/// Packets with more different codes are sorted.
constexpr int kMostBatches = 8;

}  // namespace

bool JobQueue::release_done() {
  if (sends_waiting_) return false;
  bool worked = false;
  looked_ns_ = 0;
  if (meter_.timed()) {
    const uint64_t now = LoadMeter::now();
    // Longer ones are sleep.
    if (polled_ != 0 && now > polled_) longest_stretch_ = std::max(longest_stretch_, now - polled_);
    polled_ = now;
  } else {
    polled_ = 0;
  }
  for (size_t plan = 0; plan < of_plan_.size(); ++plan)
    for (size_t d = 0; d < devices_.size(); ++d) {
      Line& line = of_plan_[plan].lines[d];
      for (int n = 0; n < kMostReleased && !line.empty(); ++n) {
        Job& job = *line.front();
        if (job.state == State::kOpen) break;
        Lane::State state = job.pinned ? lane(job).poll(job.place) : Lane::State::kFailed;
        if (state == Lane::State::kPending) {
          if (looked_ns_ == 0) looked_ns_ = JobClock::ns();
          if (looked_ns_ - job.submitted < int64_t{options_.deadline_ms} * 1'000'000) break;
        }
        finish_front(static_cast<int>(plan), static_cast<int>(d), state);
        worked = true;
        looked_ns_ = 0;
      }
      Measured& measured = of_plan_[plan].balance.devices[d];
      measured.polls += 1;
      measured.starved += line.empty() || line.front()->state == State::kOpen;
    }
  return worked;
}

void JobQueue::finish_front(int plan, int device, Lane::State state) {
  Line& line = of_plan_[static_cast<size_t>(plan)].line(device);
  Job& job = *line.front();
  releasing_ = true;
  const bool timed_before = job.probe ? meter_.time_all() : meter_.timed();
  State then = State::kQuarantine;
  switch (state) {
    case Lane::State::kDone:
      unpin(job);
      release_measured(job);
      note_done(*devices_[static_cast<size_t>(device)]);
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
      if (job.pinned)
        devices_[static_cast<size_t>(device)]->fail();
      else
        then = State::kFree;
      run_again(job);
      break;
  }
  // The results are released, or will be ignored when they come.
  epoch_of(job).store(0, std::memory_order_release);
  // Only now, because packets for the CPU that arrived while the job's packets were pushed had to wait behind it.
  line.pop();
  ++line.released;
  line.behind -= job.behind.size;
  push_held(plan, job.behind);
  if ((closed_gates_ & gate_of(plan)) != 0) [[unlikely]]
    update_gate(plan);
  // Only now, because pushing packets may ask for a free job, and this job still holds its packets.
  job.state = then;
  releasing_ = false;
  meter_.restore(timed_before);
}

void JobQueue::note_done(Device& device) {
  if (!device.well() && device.late.load() == 0) device.move(Device::Health::kHung, Device::Health::kBack);
}

void JobQueue::release_measured(Job& job) {
  OfPlan& of_plan = of_plan_[static_cast<size_t>(job.plan)];
  Measured& measured = of_plan.balance.devices[static_cast<size_t>(job.device)];
  const int64_t now = JobClock::ns();
  measured.jobs += 1;
  const auto job_ns = static_cast<uint64_t>(std::max<int64_t>(now - job.submitted, 0));
  measured.job_ns += job_ns;
  if (job.run == Run::kStream) {
    measured.stream_jobs += 1;
    measured.stream_job_ns += job_ns;
  }
  measured.packets += static_cast<uint64_t>(job.size);
  if (meter_.timed()) {
    const LoadMeter::Part part = meter_.begin();
    release(job);
    const uint64_t cycles = meter_.end(part);
    measured.cycles += job.warms ? 0 : cycles;
    measured.timed += job.warms ? 0 : static_cast<uint64_t>(job.size);
  } else {
    release(job);
  }
  of_plan.balance.delays.add(static_cast<uint64_t>(std::max<int64_t>(JobClock::ns() - job.first_arrival, 0)) +
                                 static_cast<uint64_t>(static_cast<double>(look_cycles_) * 1e3 / cycles_per_us_),
                             static_cast<uint32_t>(job.size));
}

void JobQueue::release(Job& job) {
  const Plan& plan = plans_[static_cast<size_t>(job.plan)];
  const RowLayout& layout = plan.row();
  const int64_t now = JobClock::ns();
  OfPlan& of_plan = of_plan_[static_cast<size_t>(job.plan)];
  of_plan.doorbell_latency.add(static_cast<uint64_t>(std::max<int64_t>(now - job.submitted, 0)));
  of_plan.arrival_latency.add(static_cast<uint64_t>(std::max<int64_t>(now - job.first_arrival, 0)));
  events_[kJobs] += 1;
  events_[kJobPackets] += static_cast<uint64_t>(job.size);

  lane(job).counts(job.place, counts_.data(), plan.counters());
  for (const Step& step : plan.steps()) {
    // Most shaders counted nothing: their counters are of drops and errors.
    const uint64_t* const counts = counts_.data() + step.first_counter;
    const uint64_t* const end = counts + step.element->counter_count();
    if (std::any_of(counts, end, [](uint64_t n) { return n != 0; })) step.element->add_counts(counts);
  }

  const uint8_t* row = lane(job).rows_out(job.place);
  const uint8_t* whole = lane(job).whole_rows(job.place);
  const Rows& rows = of_plan.rows;
  uint16_t codes[Batch::kCapacity];
  for (int done = 0; done < job.size;) {
    const int n = std::min(job.size - done, Batch::kCapacity);
    Packet** slots = job.packets.data() + done;
    Packet** outputs = plan.rewrites() ? job.outputs.data() + done : nullptr;
    const bool host = rows.apply(row, whole, slots, outputs, job.untouched.data() + done, n, codes);
    int left = n;
    if (layout.results > 0) {
      for (int result = 0; result < layout.results; ++result)
        release_results(of_plan, plan, row + layout.result(result), slots, host ? codes : nullptr,
                        job.untouched.data() + done, n);
      if (of_plan.takes_packets) {
        left = 0;
        for (int i = 0; i < n; ++i) {
          if (slots[i] == nullptr) continue;
          slots[left] = slots[i];
          codes[left++] = codes[i];
        }
      }
    }
    row += static_cast<size_t>(n) * static_cast<size_t>(layout.back);
    whole += static_cast<size_t>(n) * static_cast<size_t>(layout.stride);
    done += n;
    for (int begin = 0; begin < left;) {
      int end = host ? begin : left;
      if (host && rows.for_host(codes[begin])) {
        // Packets for the host may meet the others again later, and must not change places with packets of their flow.
        // So only neighbors with the same code go together.
        while (end < left && codes[end] == codes[begin]) ++end;
      } else {
        while (end < left && !rows.for_host(codes[end])) ++end;
      }
      dispatch_all(plan, slots + begin, codes + begin, end - begin);
      begin = end;
    }
  }
}

void JobQueue::release_results(const OfPlan& of_plan, const Plan& plan, const uint8_t* results, Packet** packets,
                               const uint16_t* codes, const uint16_t* untouched, int n) {
  const auto stride = static_cast<size_t>(plan.row().back);
  const auto word_of = [&](int i) {
    uint32_t step;
    std::memcpy(&step, results + static_cast<size_t>(i) * stride, sizeof step);
    return step;
  };
  const auto release_by = [&](uint32_t step, int begin, int end) {
    if (step > 0 && step <= plan.steps().size())
      plan.steps()[step - 1].element->release(packets + begin, results + static_cast<size_t>(begin) * stride + 4,
                                              stride, end - begin);
  };
  if (codes == nullptr && !of_plan.takes_packets) {
    // Most often all come from one step.
    const uint32_t first = word_of(0);
    uint32_t others = 0;
    for (int i = 1; i < n; ++i) others |= word_of(i) ^ first;
    if (others == 0) return release_by(first, 0, n);
  }
  // The step by which packet `i` got this result, plus 1.
  const auto step_of = [&](int i) -> uint32_t {
    if (codes != nullptr && codes[i] == untouched[i]) return 0;
    if (of_plan.takes_packets && packets[i] == nullptr) return 0;
    return word_of(i);
  };
  for (int begin = 0; begin < n;) {
    const uint32_t step = step_of(begin);
    int end = begin + 1;
    while (end < n && step_of(end) == step) ++end;
    release_by(step, begin, end);
    begin = end;
  }
}

void JobQueue::dispatch_all(const Plan& plan, Packet** slots, uint16_t* codes, int left) {
  int same = 1;
  while (same < left && codes[same] == codes[0]) ++same;
  if (same >= left) {
    Batch out;
    for (int i = 0; i < left; ++i) out.push_back(slots[i]);
    dispatch(plan, codes[0], out);
    return;
  }
  // A batch for each code. While packets are dealt out, `number` holds the number of a code's batch, from 1.
  Batch out[kMostBatches];
  uint16_t codes_of[kMostBatches];
  uint16_t* const number = next_of_code_.data();
  int found = 0, dealt = 0;
  for (; dealt < left; ++dealt) {
    uint16_t& n = number[codes[dealt] - kExit];
    if (n == 0) [[unlikely]] {
      if (found == kMostBatches) break;
      codes_of[found] = codes[dealt];
      n = static_cast<uint16_t>(++found);
    }
    out[n - 1].push_back(slots[dealt]);
  }
  for (int i = 0; i < found; ++i) number[codes_of[i] - kExit] = 0;
  if (dealt == left) {
    for (int i = 0; i < found; ++i) dispatch(plan, codes_of[i], out[i]);
    return;
  }
  sort_by_code(slots, codes, left);
  for (int begin = 0, end = 0; begin < left; begin = end) {
    out[0].clear();
    for (; end < left && codes[end] == codes[begin]; ++end) out[0].push_back(slots[end]);
    dispatch(plan, codes[begin], out[0]);
  }
}

void JobQueue::sort_by_code(Packet** slots, uint16_t* codes, int n) {
  // By counting; `next` has room for every code of a plan.
  uint16_t* const next = next_of_code_.data();
  uint16_t different[Batch::kCapacity];
  int found = 0;
  for (int i = 0; i < n; ++i)
    if (next[codes[i] - kExit]++ == 0) different[found++] = codes[i];
  uint16_t at = 0;
  for (int i = 0; i < found; ++i) at += std::exchange(next[different[i] - kExit], at);
  Packet* sorted_slots[Batch::kCapacity];
  uint16_t sorted_codes[Batch::kCapacity];
  for (int i = 0; i < n; ++i) {
    const uint16_t to = next[codes[i] - kExit]++;
    sorted_slots[to] = slots[i];
    sorted_codes[to] = codes[i];
  }
  std::copy_n(sorted_slots, n, slots);
  std::copy_n(sorted_codes, n, codes);
  for (int i = 0; i < found; ++i) next[different[i] - kExit] = 0;
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
    process(job.plan, step, batch);
  }
}

void JobQueue::push_held(int plan, Held& held) {
  // Packets that are pushed may hold back others in turn, but behind later jobs.
  Held packets = std::exchange(held, {});
  while (!packets.empty()) {
    Batch batch;
    const uint16_t step = packets.take(batch);
    process(plan, step, batch);
  }
}

}  // namespace headrace::offload
