#pragma once
/// \file
/// What the host and the kernels of a device agree on about jobs. Read by the host compiler and by NVRTC.

#include "headrace/device/row.hh"
#include "headrace/shader_types.hh"

namespace headrace {

/// Threads per block. A tile has as many rows; each thread takes one.
inline constexpr int kJobThreads = 256;
inline constexpr int kJobWarps = kJobThreads / 32;
/// Size of the buffer into which a warp loads one packet, each byte at its place in the packet's own buffer.
inline constexpr uint32_t kStageBytes = 2304;
static_assert(kStageBytes >= kBufferBytes && kStageBytes % 16 == 0);
/// Maximum stride of rows in bytes; every stride is a multiple of 16.
inline constexpr int kMaxStride = 256;
/// Maximum number of job places that a block of the resident kernel polls: half a warp.
inline constexpr int kPlacesPerBlock = 16;
/// A parameter block up to this size is copied into each block's shared memory.
inline constexpr uint32_t kSharedParameters = 16384;

/// Bytes of padding after each row in shared memory. They make the number of words per row odd, so that the threads of
/// a warp, each at the same offset in its row, access different banks.
inline constexpr uint32_t kRowPadding = 4;

/// Plans of one class share a kernel, which has registers, blocks, and doorbells of its own: jobs of the other class,
/// which may take much longer, never keep it busy. Payload plans scan or rewrite packets, header plans do not.
enum PlanClass : uint32_t { kHeaderPlans, kPayloadPlans };
inline constexpr int kPlanClasses = 2;

HEADRACE_SHADER constexpr PlanClass class_of(const RowLayout& row) {
  return row.address_size != 0 ? kPayloadPlans : kHeaderPlans;
}

/// A plan, as the kernels see it. The first five as in RowLayout.
struct DevicePlan {
  uint32_t stride;
  uint32_t header;
  uint32_t there;
  uint32_t back;
  uint32_t in_place;
  uint32_t counters;  ///< of all its shaders together
  PlanClass plan_class;
};

/// A job place in pinned memory begins with a line that only the host writes, with one of these for each class of
/// plans. A line follows that only the device writes, with the numbers of the last finished jobs of the classes; the
/// counts; the rows' parts that come back, one behind the other (unless they come back in place); those that go to the
/// device; and whole rows, of which the device writes only those that it says it has.
struct Doorbell {
  static constexpr int kPlanBits = 12;
  static constexpr int kSlotBits = 20;

  /// Sequence number of the job << 32 | plan << kSlotBits | slots.
  uint64_t job;
  /// Device address of the parameter block / 16, with the lower 16 bits of the sequence number above it. By these bits
  /// the device knows that it has read both words of the same job.
  uint64_t parameters;
  /// The generation of the kernel that is to leave.
  uint64_t leave;
  uint64_t unused;

  static constexpr uint64_t job_word(uint32_t sequence, uint32_t plan, uint32_t slots) {
    return uint64_t{sequence} << 32 | plan << kSlotBits | slots;
  }
  static constexpr uint64_t parameters_word(uint32_t sequence, uint64_t address) {
    return uint64_t{sequence & 0xffff} << 48 | address >> 4;
  }
};
static_assert(sizeof(Doorbell) == 32 && kPlanClasses <= 2);
inline constexpr uint32_t kDoneAt = 64;     ///< from the start of a place; 8 bytes per class
inline constexpr uint32_t kCountsAt = 128;  ///< likewise; 8 bytes per counter
HEADRACE_SHADER constexpr uint32_t bell_at(uint32_t plan_class) {
  return static_cast<uint32_t>(sizeof(Doorbell)) * plan_class;
}
HEADRACE_SHADER constexpr uint32_t done_at(uint32_t plan_class) { return kDoneAt + 8 * plan_class; }

/// Where rows begin, from the start of a place.
struct RowPlaces {
  uint32_t back;   ///< RowLayout::back bytes each
  uint32_t there;  ///< RowLayout::there bytes each
  uint32_t whole;  ///< RowLayout::stride bytes each
};
/// Rows begin after the counts.
HEADRACE_SHADER constexpr uint32_t rows_at(uint32_t counters) { return (kCountsAt + 8 * counters + 127) / 128 * 128; }

/// Shared memory that a block needs.
HEADRACE_SHADER constexpr uint32_t job_counts_bytes(uint32_t counters) { return (8 * counters + 15) / 16 * 16; }
HEADRACE_SHADER constexpr uint32_t job_parameter_bytes(uint32_t bytes) {
  return bytes > kSharedParameters ? 0 : (bytes + 15) / 16 * 16;
}
/// For the packets that the warps of a block have in hand.
HEADRACE_SHADER constexpr uint32_t job_stage_bytes(PlanClass plan_class) {
  return plan_class == kPayloadPlans ? kJobWarps * kStageBytes : 0;
}
/// For the packets of a tile: Slot::home.
inline constexpr size_t kHomeBytes = size_t{kJobThreads} * kStageBytes;
HEADRACE_SHADER constexpr uint32_t job_shared_bytes(PlanClass plan_class, uint32_t counters, uint32_t parameter_bytes,
                                                    uint32_t stride) {
  return job_counts_bytes(counters) + job_stage_bytes(plan_class) + job_parameter_bytes(parameter_bytes) +
         kJobThreads * (stride + kRowPadding);
}

/// When blocks of the resident kernel last had work. In device memory.
struct ResidentActivity {
  uint64_t last_ns;
  uint64_t leaving;  ///< the generation of the kernel that is leaving
};

/// Blocks of the resident kernel form teams: the leader polls job places, and shares large jobs with its helpers. This
/// is what it has for them, in device memory; the counts of the helpers follow, 8 bytes per counter.
struct TeamMail {
  uint64_t number;  ///< of the last job that was shared; the kernel's generation << 32 | a count from 1
  uint64_t job;     ///< as in Doorbell
  uint64_t parameters;
  uint64_t place;     ///< 0: leave
  uint32_t finished;  ///< shares that helpers have finished, of all jobs
  uint32_t unused[7];
};
static_assert(sizeof(TeamMail) == 64);
HEADRACE_SHADER constexpr uint32_t team_mail_bytes(uint32_t counters) {
  return (static_cast<uint32_t>(sizeof(TeamMail)) + 8 * counters + 127) / 128 * 128;
}
/// Jobs of more slots are shared: a block alone runs fewer as fast.
HEADRACE_SHADER constexpr uint32_t most_alone(PlanClass plan_class) { return plan_class == kPayloadPlans ? 16 : 256; }
/// Maximum number of blocks in a team.
inline constexpr int kMostInTeam = 4;

/// The parameter of the resident kernels. Addresses are the device's.
struct ResidentArguments {
  uint64_t lanes;     ///< uint64_t[]: the first places of the lanes
  uint64_t plans;     ///< DevicePlan[]
  uint64_t activity;  ///< ResidentActivity
  uint64_t left;      ///< a word of pinned memory that becomes `generation` when the kernel begins to leave
  uint64_t mail;      ///< for each team, team_mail_bytes(counters) apart
  uint64_t homes;     ///< kHomeBytes for each block, or 0: see Slot::home
  uint64_t place_stride;
  uint64_t idle_ns;  ///< the kernel leaves after so long without a job
  uint32_t places_of_lane;
  uint32_t place_count;  ///< of all lanes
  RowPlaces rows;
  uint32_t counters;  ///< the most that any plan of the kernel's class has
  uint32_t parameter_bytes;
  uint32_t generation;  ///< 0: to leave at once
  uint32_t teams;       ///< the first block of each leads it
};

/// A piece of an update of tables: `bytes` bytes at `from` in the update's data go to address `to`, a multiple of 16.
struct UpdatePiece {
  uint64_t to;
  uint32_t from;  ///< a multiple of 16
  uint32_t bytes;
};

/// The parameter of the stream kernels: one job.
struct StreamArguments {
  uint64_t place;  ///< in the device's memory
  uint64_t whole;  ///< whole rows, in the host's memory
  uint64_t parameters;
  uint64_t homes;  ///< as for the resident kernels
  RowPlaces rows;
  uint32_t plan;
  uint32_t slots;
  uint32_t parameter_bytes;
  DevicePlan layout;
};

}  // namespace headrace
