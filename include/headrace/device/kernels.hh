#pragma once
/// \file
/// The kernels that run jobs. Included after a generated program, which defines
///
///     template <headrace::PlanClass kClass>
///     __device__ void headrace_run_plan(int plan, headrace::Slot& slot, const unsigned char* parameters);
///     template <headrace::PlanClass kClass>
///     __device__ constexpr unsigned headrace_block_bytes();
///     template <headrace::PlanClass kClass>
///     __device__ void headrace_prepare_block();
///
/// Each class of plans has two kernels. They load a tile of rows into shared memory, let each thread run one row through
/// the plan, and store the tile. `headrace_stream_*` runs one job whose rows are in device memory. `headrace_resident_*`
/// keeps running: its blocks poll doorbells in host memory, and read and write rows in host memory. `headrace_update`
/// copies many small pieces of tables, each of which would take a copy of its own as long as all of them take together.

#include "headrace/device/block_memory.hh"
#include "headrace/device/jobs.hh"
#include "headrace/device/lane_view.hh"
#include "headrace/device/loads.hh"

namespace headrace::device {

inline __device__ uint64_t nanoseconds() {
  uint64_t t;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(t));
  return t;
}

/// Moves parts of rows between memory, where they lie one behind the other, and whole rows in shared memory, where
/// kRowPadding bytes follow each. Neighboring threads move neighboring pieces of 16 bytes.
class Tile {
 public:
  __device__ Tile(uint32_t* shared, uint32_t stride)
      : shared_(shared), words_((stride + kRowPadding) / 4), turn_(threadIdx.x >> 3 & 3) {}

  /// Fills bytes [at, at + size) of `n` rows.
  __device__ void load(const unsigned char* rows, uint32_t n, uint32_t at, uint32_t size) {
    part(at, size);
    const uint32_t end = n * pieces_;
    for (uint32_t first = threadIdx.x; first < end; first += kInFlight * kJobThreads) {
      uint4 v[kInFlight];
#pragma unroll
      for (uint32_t i = 0; i < kInFlight; ++i)
        if (first + i * kJobThreads < end) v[i] = load_fresh(rows + size_t{16} * (first + i * kJobThreads));
#pragma unroll
      for (uint32_t i = 0; i < kInFlight; ++i)
        if (first + i * kJobThreads < end) put(first + i * kJobThreads, v[i]);
    }
  }
  /// Stores bytes [0, size) of `n` rows.
  __device__ void store(unsigned char* rows, uint32_t n, uint32_t size) {
    part(0, size);
    const uint32_t end = n * pieces_;
    for (uint32_t piece = threadIdx.x; piece < end; piece += kJobThreads)
      *reinterpret_cast<uint4*>(rows + size_t{16} * piece) = take(piece);
  }
  __device__ uint32_t* row(uint32_t index) const { return shared_ + index * words_; }

 private:
  /// Loads that a thread has in flight at once.
  static constexpr uint32_t kInFlight = 8;

  /// Pieces are those of bytes [at, at + size) of rows.
  __device__ void part(uint32_t at, uint32_t size) {
    first_ = at / 4;
    pieces_ = size / 16;
    magic_ = (65535 + pieces_) / pieces_;
    skipped_ = words_ - 4 * pieces_;
  }
  /// The word of shared memory at which a piece begins. Its row is exactly piece / pieces_ for up to kJobThreads rows
  /// of kMaxStride bytes, which are 256 x 16 pieces; rows of 17 pieces would already give wrong results.
  __device__ uint32_t begin(uint32_t piece) const { return first_ + 4 * piece + (piece * magic_ >> 16) * skipped_; }

  // Each quarter of a warp moves the four words of a piece in a different order, so that the 32 words of one step lie
  // in different banks.
  __device__ void put(uint32_t piece, uint4 v) const {
    if (turn_ & 1) v = {v.y, v.z, v.w, v.x};
    if (turn_ & 2) v = {v.z, v.w, v.x, v.y};
    uint32_t* const at = shared_ + begin(piece);
    at[turn_] = v.x;
    at[(turn_ + 1) & 3] = v.y;
    at[(turn_ + 2) & 3] = v.z;
    at[(turn_ + 3) & 3] = v.w;
  }
  __device__ uint4 take(uint32_t piece) const {
    const uint32_t* const at = shared_ + begin(piece);
    uint4 v = {at[turn_], at[(turn_ + 1) & 3], at[(turn_ + 2) & 3], at[(turn_ + 3) & 3]};
    if (turn_ & 1) v = {v.w, v.x, v.y, v.z};
    if (turn_ & 2) v = {v.z, v.w, v.x, v.y};
    return v;
  }

  uint32_t* shared_;
  uint32_t words_;  // from one row to the next
  uint32_t turn_;
  uint32_t first_ = 0;   // word of a row
  uint32_t pieces_ = 1;  // per row
  uint32_t magic_ = 0;
  uint32_t skipped_ = 0;  // words from the last piece of a row to the first of the next
};

/// The rows of a job.
struct JobRows {
  const unsigned char* there;
  unsigned char* back;
  unsigned char* whole;
};

/// A block's shared memory: what a shader asks for, counts, stages for payloads, the parameter block if it is small
/// enough, and a tile.
template <PlanClass kClass>
struct Shared {
  uint64_t* counts;
  unsigned char* stage;       // of this warp
  unsigned char* parameters;  // null: not copied to shared memory
  uint32_t* tile;

  __device__ Shared(uint4* memory, uint32_t counters, uint32_t parameter_bytes) {
    constexpr uint32_t stage_bytes = job_stage_bytes(kClass);
    unsigned char* const begin = reinterpret_cast<unsigned char*>(memory) + headrace_block_bytes<kClass>();
    counts = reinterpret_cast<uint64_t*>(begin);
    unsigned char* const stages = begin + job_counts_bytes(counters);
    stage = stages + threadIdx.x / 32 * (stage_bytes / kJobWarps);
    unsigned char* const behind = stages + stage_bytes;
    const uint32_t copied = job_parameter_bytes(parameter_bytes);
    parameters = copied != 0 ? behind : nullptr;
    tile = reinterpret_cast<uint32_t*>(behind + copied);
  }

  /// Zeroes the counts and copies the parameters. Synchronize the block before using them.
  __device__ void prepare(uint32_t counters, const unsigned char* from, uint32_t parameter_bytes) const {
    for (uint32_t i = threadIdx.x; i < counters; i += kJobThreads) counts[i] = 0;
    if (parameters == nullptr) return;
    for (uint32_t i = 16 * threadIdx.x; i < parameter_bytes; i += 16 * kJobThreads)
      *reinterpret_cast<uint4*>(parameters + i) = load_fresh(from + i);
  }
};

/// Where packets stay between shaders that read payloads: kStageBytes for each thread of a block. Null: nowhere.
inline __device__ unsigned char* home_of(uint64_t homes, uint32_t block) {
  return homes == 0
             ? nullptr
             : reinterpret_cast<unsigned char*>(homes) + size_t{kStageBytes} * (block * kJobThreads + threadIdx.x);
}

/// Runs the rows `first` to `end` - 1 of a job, one tile after every `step` rows. All threads of a block call it.
template <PlanClass kClass>
__device__ void run_rows(const Shared<kClass>& shared, int plan, const DevicePlan& layout, const JobRows& rows,
                         uint32_t first, uint32_t end, uint32_t step, unsigned char* home,
                         const unsigned char* parameters) {
  constexpr bool kPayloads = kClass == kPayloadPlans;
  Tile tile(shared.tile, layout.stride);
  // The threads of a warp scan payloads together, one packet at a time. So rows are distributed evenly over the warps,
  // and threads without a row take part, too.
  const uint32_t mine =
      kPayloads ? (threadIdx.x & 31) * kJobWarps + threadIdx.x / 32 : static_cast<uint32_t>(threadIdx.x);
  uint32_t* const row = tile.row(mine);
  uint32_t* const header = row + layout.header / 4;
  for (; first < end; first += step) {
    const uint32_t n = end - first < kJobThreads ? end - first : kJobThreads;
    tile.load(rows.there + size_t{first} * layout.there, n, layout.header, layout.there);
    // What has not travelled: there is no result yet.
    for (uint32_t i = 0; i < layout.header / 4; ++i) row[i] = 0;
    for (uint32_t i = (layout.header + layout.there) / 4; i < layout.stride / 4; ++i) row[i] = 0;
    __syncthreads();
    Slot slot;
    slot.header = RowHeader{};
    slot.header.at = kExit;
    slot.row = reinterpret_cast<unsigned char*>(row);
    slot.counts = shared.counts;
    slot.stage = shared.stage;
    slot.home = home;
    slot.home_from = RowHeader::kNone;
    slot.stopped = false;
    slot.whole = false;
    slot.settled = false;
    slot.owed_from = ~uint32_t{0};
    slot.owed_end = 0;
    if (mine < n) {
      const uint32_t words[4] = {header[0], header[1], header[2], header[3]};
      static_assert(sizeof slot.header == sizeof words);
      memcpy(&slot.header, words, sizeof words);
    }
    slot.window_at = slot.header.data;
    if (kPayloads || mine < n) headrace_run_plan<kClass>(plan, slot, parameters);
    if (mine < n) {
      if (slot.whole) slot.header.flags |= RowHeader::kWhole;
      uint32_t after[4];
      memcpy(after, &slot.header, sizeof after);
      for (int i = 0; i < 4; ++i) header[i] = after[i];
      if (slot.whole) {
        uint4* const to = reinterpret_cast<uint4*>(rows.whole + size_t{first + mine} * layout.stride);
        for (uint32_t i = 0; i < layout.stride / 16; ++i)
          to[i] = {row[4 * i], row[4 * i + 1], row[4 * i + 2], row[4 * i + 3]};
      }
    }
    __syncthreads();
    tile.store(rows.back + size_t{first} * layout.back, n, layout.back);
    // The next tile overwrites this one.
    __syncthreads();
  }
}

/// What the first warp of a block found at its doorbells.
struct Call {
  uint64_t job;
  uint64_t parameters;
  unsigned char* place;  // null: leave
};

/// The doorbells of a block for jobs of one class. In the first warp, lane l polls the block's place l modulo 16: the lower
/// half of the warp reads the words of a job, the upper half the word that asks the kernel to leave. Both are in one
/// 32-byte sector of host memory. Places are numbered across the lanes: first the first of each. A worker uses the first
/// one that is free, so when few jobs are under way they meet different blocks.
template <PlanClass kClass>
class Doorbells {
 public:
  __device__ explicit Doorbells(const ResidentArguments& a)
      : arguments_(a),
        activity_(reinterpret_cast<ResidentActivity*>(a.activity)),
        half_(threadIdx.x >> 4 & 1),
        start_ns_(nanoseconds()) {
    const uint32_t number = blockIdx.x + (threadIdx.x & 15) * a.teams;
    mine_ = blockIdx.x < a.teams && number < a.place_count;
    if (!mine_) return;
    const uint32_t lanes = a.place_count / a.places_of_lane;
    const uint64_t lane = reinterpret_cast<const uint64_t*>(a.lanes)[number % lanes];
    place_ = reinterpret_cast<unsigned char*>(lane + number / lanes * a.place_stride);
    seen_ = load_acquire(reinterpret_cast<const uint32_t*>(place_ + done_at(kClass)));
  }

  /// Waits for a job or for a reason to leave, and writes the answer to `call`. All lanes of the first warp call it.
  __device__ void wait(Call* call) {
    for (uint32_t polls = 0;; ++polls) {
      uint64_t first = 0, second = 0;
      // If one block leaves, all leave, even those with work: the next kernel cannot start before this one has ended.
      const bool leaving = load_relaxed(&activity_->leaving) == arguments_.generation;
      if (mine_) load_acquire(place_ + bell_at(kClass) + 16 * half_, first, second);
      const uint32_t sequence = static_cast<uint32_t>(first >> 32);
      const bool ready = mine_ && half_ == 0 && sequence != seen_ && (sequence & 0xffff) == second >> 48;
      const bool asked = mine_ && half_ == 1 && first == arguments_.generation;
      const uint32_t readies = __ballot_sync(~0u, ready);
      if (__any_sync(~0u, asked || leaving)) break;
      if (readies != 0) {
        // Round robin, so that no place starves.
        const uint32_t turned = (readies >> turn_ | readies << (16 - turn_)) & 0xffff;
        const uint32_t chosen = (static_cast<uint32_t>(__ffs(static_cast<int>(turned))) - 1 + turn_) & 15;
        turn_ = (chosen + 1) & 15;
        if (threadIdx.x == chosen) {
          seen_ = sequence;
          *call = {first, second << 16 >> 12, place_};
        }
        return;
      }
      if (polls % 16 == 15 && idle()) break;
      // The longer no job has come, the longer the pause between polls, because polls use bandwidth of the link.
      __nanosleep(polls < 64 ? 20 : polls < 4096 ? 100 : 250);
    }
    if (threadIdx.x == 0) {
      store_relaxed(&activity_->leaving, arguments_.generation);
      store_release(reinterpret_cast<uint32_t*>(arguments_.left), arguments_.generation);
      *call = {0, 0, nullptr};
    }
  }

 private:
  __device__ bool idle() const {
    const uint64_t last = load_relaxed(&activity_->last_ns);
    const uint64_t now = nanoseconds();
    const auto since = [&](uint64_t t) { return static_cast<int64_t>(now - t); };
    const int64_t limit = static_cast<int64_t>(arguments_.idle_ns);
    return __all_sync(~0u, since(last) > limit && since(start_ns_) > limit);
  }

  const ResidentArguments& arguments_;
  ResidentActivity* activity_;
  unsigned char* place_ = nullptr;
  uint32_t half_;
  uint64_t start_ns_;
  bool mine_;
  uint32_t seen_ = 0;
  uint32_t turn_ = 0;
};

/// The slots [begin, end) of a job.
struct Part {
  uint32_t begin;
  uint32_t end;
};

/// The blocks that share jobs with this one. Helpers hear from their leader alone, so none leaves before a job that it
/// has a part of.
class Team {
 public:
  __device__ explicit Team(const ResidentArguments& a)
      : number_(uint64_t{a.generation} << 32), size_(gridDim.x / a.teams), member_(blockIdx.x / a.teams) {
    unsigned char* const at =
        reinterpret_cast<unsigned char*>(a.mail) + size_t{blockIdx.x % a.teams} * team_mail_bytes(a.counters);
    mail_ = reinterpret_cast<TeamMail*>(at);
    counts_ = reinterpret_cast<unsigned long long*>(at + sizeof(TeamMail));
    if (threadIdx.x == 0) finished_ = load_acquire_gpu(&mail_->finished);
  }
  __device__ bool leads() const { return member_ == 0; }
  __device__ uint32_t size() const { return size_; }
  /// This block's part of a job: a multiple of 8 slots, which begin at a whole line of memory.
  __device__ Part part(uint32_t slots) const {
    const uint32_t each = (slots + size_ * 8 - 1) / (size_ * 8) * 8;
    const uint32_t begin = member_ * each < slots ? member_ * each : slots;
    return {begin, begin + each < slots ? begin + each : slots};
  }

  /// The leader's first thread: gives a job to the helpers.
  __device__ void share(const Call& job) {
    if (size_ == 1) return;
    store_relaxed(&mail_->job, job.job);
    store_relaxed(&mail_->parameters, job.parameters);
    store_relaxed(&mail_->place, reinterpret_cast<uintptr_t>(job.place));
    store_release_gpu(&mail_->number, ++number_);
  }
  /// A helper's first warp: waits for a job.
  __device__ void wait(Call* call) {
    for (uint32_t polls = 0; load_acquire_gpu(&mail_->number) != number_ + 1; ++polls)
      __nanosleep(polls < 1024 ? 50 : 200);
    ++number_;
    if (threadIdx.x == 0)
      *call = {load_relaxed(&mail_->job), load_relaxed(&mail_->parameters),
               reinterpret_cast<unsigned char*>(load_relaxed(&mail_->place))};
  }
  /// A helper: says that its part is done.
  __device__ void finish(const uint64_t* counts, uint32_t n) {
    for (uint32_t i = threadIdx.x; i < n; i += kJobThreads)
      if (counts[i] != 0) atomicAdd(counts_ + i, static_cast<unsigned long long>(counts[i]));
    __syncthreads();
    if (threadIdx.x == 0) {
      __threadfence_system();
      atomicAdd(&mail_->finished, 1u);
    }
  }
  /// The leader: waits for the helpers' parts, and adds what they have counted.
  __device__ void gather(uint64_t* counts, uint32_t n) {
    if (threadIdx.x == 0) {
      finished_ += size_ - 1;
      while (load_acquire_gpu(&mail_->finished) != finished_) {
      }
      __threadfence_system();
    }
    __syncthreads();
    for (uint32_t i = threadIdx.x; i < n; i += kJobThreads) {
      const uint64_t theirs = load_relaxed(reinterpret_cast<uint64_t*>(counts_ + i));
      if (theirs == 0) continue;
      counts[i] += theirs;
      store_relaxed(reinterpret_cast<uint64_t*>(counts_ + i), 0);
    }
    __syncthreads();
  }

 private:
  uint64_t number_;  // of the last job, in the leader's first thread and in helpers' first warps
  uint32_t size_;
  uint32_t member_;
  uint32_t finished_ = 0;  // parts of all jobs so far, in the leader's first thread
  TeamMail* mail_;
  unsigned long long* counts_;
};

/// A block's part of a job of the stream run.
template <PlanClass kClass>
__device__ void run_stream(const StreamArguments& a, uint4* memory) {
  headrace_prepare_block<kClass>();
  const Shared<kClass> shared(memory, a.layout.counters, a.parameter_bytes);
  const unsigned char* parameters = reinterpret_cast<const unsigned char*>(a.parameters);
  shared.prepare(a.layout.counters, parameters, a.parameter_bytes);
  if (shared.parameters != nullptr) parameters = shared.parameters;
  unsigned char* const place = reinterpret_cast<unsigned char*>(a.place);
  const JobRows rows{place + a.rows.there, place + a.rows.back, reinterpret_cast<unsigned char*>(a.whole)};
  run_rows<kClass>(shared, static_cast<int>(a.plan), a.layout, rows, blockIdx.x * kJobThreads, a.slots,
                   gridDim.x * kJobThreads, home_of(a.homes, blockIdx.x), parameters);
  // The sums of all jobs of this place so far; the host knows those before this one.
  for (uint32_t i = threadIdx.x; i < a.layout.counters; i += kJobThreads)
    if (shared.counts[i] != 0)
      atomicAdd(reinterpret_cast<unsigned long long*>(place + kCountsAt) + i,
                static_cast<unsigned long long>(shared.counts[i]));
}

/// What a block of the resident run does until it leaves.
template <PlanClass kClass>
__device__ void stay(const ResidentArguments& a, uint4* memory) {
  if (a.generation == 0) return;
  __shared__ Call call;
  headrace_prepare_block<kClass>();
  const Shared<kClass> shared(memory, a.counters, a.parameter_bytes);
  const DevicePlan* const plans = reinterpret_cast<const DevicePlan*>(a.plans);
  Doorbells<kClass> doorbells(a);
  Team team(a);
  for (;;) {
    if (threadIdx.x < 32) {
      if (team.leads())
        doorbells.wait(&call);
      else
        team.wait(&call);
    }
    __syncthreads();
    const Call job = call;
    if (job.place == nullptr) {
      if (team.leads() && threadIdx.x == 0) team.share(job);
      return;
    }
    const uint32_t low = static_cast<uint32_t>(job.job);
    const uint32_t plan = low >> Doorbell::kSlotBits;
    const uint32_t slots = low & ((1u << Doorbell::kSlotBits) - 1);
    const DevicePlan layout = plans[plan];
    const bool together = team.size() > 1 && slots > most_alone(kClass);
    if (together && team.leads() && threadIdx.x == 0) team.share(job);
    const unsigned char* parameters = reinterpret_cast<const unsigned char*>(job.parameters);
    shared.prepare(layout.counters, parameters, a.parameter_bytes);
    if (shared.parameters != nullptr) parameters = shared.parameters;
    const Part part = together ? team.part(slots) : Part{0, slots};
    const JobRows rows{job.place + a.rows.there, job.place + (layout.in_place != 0 ? a.rows.there : a.rows.back),
                       job.place + a.rows.whole};
    run_rows<kClass>(shared, static_cast<int>(plan), layout, rows, part.begin, part.end, kJobThreads,
                     home_of(a.homes, blockIdx.x), parameters);
    if (!team.leads()) {
      team.finish(shared.counts, layout.counters);
      continue;
    }
    if (together) team.gather(shared.counts, layout.counters);
    uint64_t* const counts = reinterpret_cast<uint64_t*>(job.place + kCountsAt);
    for (uint32_t i = threadIdx.x; i < layout.counters; i += kJobThreads) counts[i] = shared.counts[i];
    __syncthreads();
    if (threadIdx.x == 0) {
      store_release(reinterpret_cast<uint32_t*>(job.place + done_at(kClass)), static_cast<uint32_t>(job.job >> 32));
      store_relaxed(&reinterpret_cast<ResidentActivity*>(a.activity)->last_ns, nanoseconds());
    }
  }
}

}  // namespace headrace::device

extern "C" __global__ void __launch_bounds__(headrace::kJobThreads)
    headrace_stream_headers(const headrace::StreamArguments a) {
  headrace::device::run_stream<headrace::kHeaderPlans>(a, headrace::device::block_memory);
}

extern "C" __global__ void __launch_bounds__(headrace::kJobThreads)
    headrace_stream_payloads(const headrace::StreamArguments a) {
  headrace::device::run_stream<headrace::kPayloadPlans>(a, headrace::device::block_memory);
}

extern "C" __global__ void __launch_bounds__(headrace::kJobThreads)
    headrace_resident_headers(const __grid_constant__ headrace::ResidentArguments a) {
  headrace::device::stay<headrace::kHeaderPlans>(a, headrace::device::block_memory);
}

/// Two blocks fit on a multiprocessor: while one waits for the host's memory, the other computes. With more registers for
/// each thread there would be one.
extern "C" __global__ void __launch_bounds__(headrace::kJobThreads, 2)
    headrace_resident_payloads(const __grid_constant__ headrace::ResidentArguments a) {
  headrace::device::stay<headrace::kPayloadPlans>(a, headrace::device::block_memory);
}

extern "C" __global__ void __launch_bounds__(headrace::kJobThreads)
    headrace_update(const headrace::UpdatePiece* pieces, uint32_t n, const unsigned char* data) {
  using namespace headrace;
  const uint32_t lane = threadIdx.x & 31;
  for (uint32_t i = (blockIdx.x * kJobThreads + threadIdx.x) / 32; i < n; i += gridDim.x * kJobWarps) {
    const uint4 words = device::load_fresh(pieces + i);
    UpdatePiece piece;
    memcpy(&piece, &words, sizeof piece);
    unsigned char* const to = reinterpret_cast<unsigned char*>(piece.to);
    const unsigned char* const from = data + piece.from;
    for (uint32_t at = 16 * lane; at < piece.bytes; at += 16 * 32) {
      const uint4 v = device::load_fresh(from + at);
      if (at + 16 <= piece.bytes) {
        *reinterpret_cast<uint4*>(to + at) = v;
      } else {
        unsigned char bytes[16];
        memcpy(bytes, &v, sizeof bytes);
        for (uint32_t k = 0; k < piece.bytes - at; ++k) to[at + k] = bytes[k];
      }
    }
  }
}
