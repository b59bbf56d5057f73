#include "backend/cuda/lane.hh"

#include <algorithm>
#include <cstring>

namespace headrace::cuda {

bool ResidentLane::submit(int job, int plan, int slots, uint64_t parameters) {
  if (device_->failed()) return false;
  ring(job, next(job, plan, slots, parameters));
  return true;
}

offload::Lane::State ResidentLane::poll(int job) {
  if (done(job)) return State::kDone;
  if (device_->failed()) return State::kFailed;
  ResidentKernel& kernel = *kernels_[job_at(job).kind.plan_class];
  kernel.wake();
  if (++job_at(job).polls % kPollsBetweenChecks == 0) kernel.check();
  return State::kPending;
}

StreamLane::~StreamLane() {
  device_->remove(this);
  pause();
  if (device_->failed()) return;
  for (const CUevent event : reached_)
    if (event != nullptr) device_->driver().cuEventDestroy(event);
}

bool StreamLane::open() {
  for (Stream& stream : own_)
    if (shared_ == nullptr && !stream.create(device_)) return false;
  for (CUevent& event : reached_)
    if (!device_->check(device_->driver().cuEventCreate(&event, 0), "making an event")) return false;
  device_->add(this);
  return true;
}

void StreamLane::pause() {
  if (device_->failed()) return;
  device_->use();
  const Driver& driver = device_->driver();
  // Waits only for work already in the streams: their worker continues.
  for (int i = 0; i < kStreams; ++i)
    if (reached_[i] != nullptr && !device_->check(driver.cuEventRecord(reached_[i], stream(i)), "waiting for jobs"))
      return;
  for (const CUevent event : reached_)
    if (event != nullptr) device_->wait([&] { return driver.cuEventQuery(event); }, "waiting for jobs");
}

bool StreamLane::submit(int job, int plan, int slots, uint64_t parameters) {
  if (device_->failed()) return false;
  device_->use();
  const DevicePlan& layout = program_.plans[static_cast<size_t>(plan)];
  const PlanClass c = layout.plan_class;
  ring(job, next(job, plan, slots, parameters));
  std::vector<uint64_t>& before = counts_before_[static_cast<size_t>(job)];
  before.resize(program_.counters);
  std::memcpy(before.data(), places_.counts(job), before.size() * sizeof before[0]);

  const Driver& driver = device_->driver();
  const CUstream stream = stream_of(job);
  const CUdeviceptr there = there_ + static_cast<size_t>(job) * places_.stride;
  const auto rows = static_cast<size_t>(slots);
  StreamArguments arguments{};
  arguments.place = there;
  arguments.whole = places_.address + static_cast<size_t>(job) * places_.stride + places_.at_rows.whole;
  arguments.rows = places_.at_rows;
  arguments.parameters = parameters;
  arguments.homes = homes_ == 0 ? 0 : homes_ + static_cast<size_t>(job) * program_.tiles * kHomeBytes;
  arguments.plan = static_cast<uint32_t>(plan);
  arguments.slots = static_cast<uint32_t>(slots);
  arguments.layout = layout;
  arguments.parameter_bytes = program_.parameter_bytes;
  void* values[] = {&arguments};
  const unsigned blocks = static_cast<unsigned>((slots + kJobThreads - 1) / kJobThreads);
  const unsigned shared =
      program_.block_bytes[c] + job_shared_bytes(c, layout.counters, program_.parameter_bytes, layout.stride);
  const auto sequence = job_at(job).sequence;
  bool ok = slots == 0 || device_->check(driver.cuMemcpyHtoDAsync(there + places_.at_rows.there, places_.there(job),
                                                                  rows * layout.there, stream),
                                         "copying a job there");
  // The sequence number travels with the job, so that it can come back behind the rows.
  if (ok && !program_.write_values)
    ok = device_->check(driver.cuMemcpyHtoDAsync(there, places_.at(job), kDoneAt, stream), "copying a job there");
  if (ok && slots > 0)
    ok = device_->check(
        driver.cuLaunchKernel(program_.functions[c], blocks, 1, 1, kJobThreads, 1, 1, shared, stream, values, nullptr),
        "starting a job");
  const size_t end = places_.at_rows.back + rows * layout.back;
  ok = ok && device_->check(driver.cuMemcpyDtoHAsync(places_.counts(job), there + kCountsAt, end - kCountsAt, stream),
                            "copying a job back");
  if (!ok) return false;
  if (program_.write_values) {
    const CUdeviceptr word = places_.address + static_cast<size_t>(job) * places_.stride + done_at(c);
    return device_->check(driver.cuStreamWriteValue32(stream, word, sequence, 0), "ending a job");
  }
  const size_t sequence_at = bell_at(c) + offsetof(Doorbell, job) + sizeof(uint32_t);
  return device_->check(driver.cuMemcpyDtoHAsync(places_.done(job, c), there + sequence_at, sizeof sequence, stream),
                        "ending a job");
}

void StreamLane::counts(int job, uint64_t* counts, int n) {
  PlaceLane::counts(job, counts, n);
  for (int i = 0; i < n; ++i) counts[i] -= counts_before_[static_cast<size_t>(job)][static_cast<size_t>(i)];
}

offload::Lane::State StreamLane::poll(int job) {
  if (done(job)) return State::kDone;
  if (device_->failed()) return State::kFailed;
  if (++job_at(job).polls % kPollsBetweenChecks == 0 && !device_->driver_is_busy()) {
    device_->use();
    const CUresult state = device_->driver().cuStreamQuery(stream_of(job));
    if (state != CUresult::kNotReady) device_->check(state, "running jobs");
  }
  return State::kPending;
}

}  // namespace headrace::cuda
