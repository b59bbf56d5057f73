#include "backend/reference/reference_backend.hh"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "offload/clock.hh"

namespace headrace::offload {

void ReferenceMemory::Free::operator()(uint8_t* p) const { std::free(p); }

uint64_t ReferenceMemory::allocate(size_t bytes) {
  constexpr size_t kAlignment = 256;
  if (limit_ && used_ + bytes > limit_) return 0;
  const size_t rounded = (std::max<size_t>(bytes, 1) + kAlignment - 1) / kAlignment * kAlignment;
  auto* p = static_cast<uint8_t*>(std::aligned_alloc(kAlignment, rounded));
  if (!p) return 0;
  std::memset(p, 0, rounded);
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

Status ReferenceMemory::upload(uint64_t to, const void* from, size_t bytes) {
  std::memcpy(reinterpret_cast<void*>(to), from, bytes);
  return {};
}

/// A job runs when its worker asks for it and its delay is over. Rows change in place, as on a device.
class ReferenceBackend::ReferenceLane final : public Lane {
 public:
  ReferenceLane(ReferenceBackend& backend, const LaneOptions& options, size_t stride, size_t counters)
      : backend_(backend), jobs_(static_cast<size_t>(options.jobs)) {
    for (Job& job : jobs_) {
      job.rows.resize(stride * static_cast<size_t>(options.job_size));
      job.counts.resize(counters);
    }
  }

  uint8_t* rows_in(int job) override { return jobs_[static_cast<size_t>(job)].rows.data(); }
  const uint8_t* rows_out(int job) override { return jobs_[static_cast<size_t>(job)].rows.data(); }
  void counts(int job, uint64_t* counts, int n) override {
    std::copy_n(jobs_[static_cast<size_t>(job)].counts.begin(), n, counts);
  }
  bool submit(int job, int plan, int slots, uint64_t parameters) override {
    Job& j = jobs_[static_cast<size_t>(job)];
    j.plan = plan;
    j.slots = slots;
    j.parameters = parameters;
    j.ready = now_ns() + int64_t{backend_.options_.delay_us} * 1000;
    j.done = false;
    return true;
  }
  State poll(int job) override {
    Job& j = jobs_[static_cast<size_t>(job)];
    if (j.done) return State::kDone;
    if (backend_.options_.delay_us > 0 && now_ns() < j.ready) return State::kPending;
    std::fill(j.counts.begin(), j.counts.end(), 0);
    backend_.run(j.plan, j.slots, j.rows.data(), j.counts.data(), reinterpret_cast<const uint8_t*>(j.parameters));
    j.done = true;
    return State::kDone;
  }

 private:
  struct Job {
    std::vector<uint8_t> rows;
    std::vector<uint64_t> counts;
    int plan = 0;
    int slots = 0;
    uint64_t parameters = 0;
    int64_t ready = 0;
    bool done = false;
  };
  ReferenceBackend& backend_;
  std::vector<Job> jobs_;
};

ReferenceBackend::ReferenceBackend(const OffloadOptions& options, size_t memory_limit)
    : memory_(memory_limit), options_(options) {}

ReferenceBackend::~ReferenceBackend() = default;

Status ReferenceBackend::open(const Program& program, const LaneOptions& options, Errors&) {
  plans_ = program.objects;
  size_t stride = 16, counters = 1;
  for (const Program::Plan& plan : program.plans) {
    stride = std::max(stride, static_cast<size_t>(plan.row.stride));
    counters = std::max(counters, static_cast<size_t>(plan.counters));
  }
  for (int w = 0; w < options.workers; ++w)
    lanes_.push_back(std::make_unique<ReferenceLane>(*this, options, stride, counters));
  return {};
}

Lane& ReferenceBackend::lane(int worker) { return *lanes_[static_cast<size_t>(worker)]; }

void ReferenceBackend::run(int plan, int slots, uint8_t* rows, uint64_t* counts, const uint8_t* parameters) {
  const offload::Plan& p = (*plans_)[static_cast<size_t>(plan)];
  const auto stride = static_cast<size_t>(p.row().stride);
  constexpr int kTile = 64;
  Slot tile[kTile];
  for (int first = 0; first < slots; first += kTile) {
    const int n = std::min(kTile, slots - first);
    for (int i = 0; i < n; ++i) {
      Slot& s = tile[i];
      s.row = rows + static_cast<size_t>(first + i) * stride;
      std::memcpy(&s.header, s.row, sizeof s.header);
      s.counts = counts;
      s.window_at = s.header.data;
      s.stopped = false;
      s.fault = Fault::kNone;
      if (runner_) runner_(plan, &s, parameters);
    }
    if (!runner_) p.run(tile, n, parameters);
    for (int i = 0; i < n; ++i) {
      std::memcpy(tile[i].row, &tile[i].header, sizeof tile[i].header);
      if (tile[i].fault != Fault::kNone) [[unlikely]]
        blame(p, tile[i]);
    }
  }
}

void ReferenceBackend::blame(const offload::Plan& plan, const Slot& slot) {
  if (blamed_.exchange(true)) return;
  const std::string who =
      slot.fault_step < plan.steps().size() ? plan.steps()[slot.fault_step].element->declaration() : "?";
  const std::lock_guard guard(fault_lock_);
  fault_ = fmt::format("{} {}", who,
                       slot.fault == Fault::kTorn ? "wrote or counted before it asked for bytes that have not travelled"
                                                  : "used bytes that it does not declare");
  fmt::print(stderr, "reference device: {}\n", fault_);
}

std::string ReferenceBackend::describe() const {
  std::string text = "name: reference (this process)\n";
  const std::lock_guard guard(fault_lock_);
  if (!fault_.empty()) text += fmt::format("fault: {}\n", fault_);
  if (options_.delay_us) text += fmt::format("delay: {} us a job\n", options_.delay_us);
  return text;
}

}  // namespace headrace::offload
