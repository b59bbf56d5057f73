#pragma once
/// \file
/// What the host and the kernels of a device agree on about jobs. Read by the host compiler and by NVRTC.

#include "headrace/shader_types.hh"

namespace headrace {

/// Threads of a block; each takes one row of a tile of this many rows.
inline constexpr int kJobThreads = 256;
inline constexpr int kJobWarps = kJobThreads / 32;
/// Where a warp brings one payload: a packet of the pool, aligned to 16 bytes, fits.
inline constexpr uint32_t kStageBytes = 2304;
/// Longest row, in bytes; shorter ones are multiples of 16.
inline constexpr int kMaxStride = 256;
/// Most job places that a block of the resident kernel looks after: half a warp.
inline constexpr int kPlacesPerBlock = 16;
/// A parameter block up to this size is copied into each block's shared memory.
inline constexpr uint32_t kSharedParameters = 16384;

/// Bytes of shared memory between rows, over the row's stride: an odd number of words keeps the threads of a warp, each
/// at the same place of its row, on different banks.
inline constexpr uint32_t kRowPadding = 4;

/// A plan, as kernels need it.
struct DevicePlan {
  uint32_t stride;    ///< bytes of a row, a multiple of 16
  uint32_t counters;  ///< that its shaders have together
  uint32_t scans;     ///< not 0: a shader scans payloads
};

/// A job place in pinned memory: this line, which only the host writes; a line with the number of the last job done,
/// which only the device writes; counts; rows.
struct Doorbell {
  static constexpr int kPlanBits = 12;
  static constexpr int kSlotBits = 20;

  /// Sequence number of the job << 32 | plan << kSlotBits | slots.
  uint64_t job;
  /// Device address of the parameter block / 16, below the sequence number's lower 16 bits: the device knows by them
  /// that it has read both words of the same job.
  uint64_t parameters;
  /// The kernel of this generation shall leave.
  uint64_t leave;
  uint64_t unused[5];

  static constexpr uint64_t job_word(uint32_t sequence, uint32_t plan, uint32_t slots) {
    return uint64_t{sequence} << 32 | plan << kSlotBits | slots;
  }
  static constexpr uint64_t parameters_word(uint32_t sequence, uint64_t address) {
    return uint64_t{sequence & 0xffff} << 48 | address >> 4;
  }
};
static_assert(sizeof(Doorbell) == 64);
inline constexpr uint32_t kDoneAt = 64;     ///< from the begin of a place
inline constexpr uint32_t kCountsAt = 128;  ///< likewise; 8 bytes a counter

/// Rows begin behind the counts.
HEADRACE_SHADER constexpr uint32_t rows_at(uint32_t counters) { return (kCountsAt + 8 * counters + 127) / 128 * 128; }

/// What a block needs of shared memory.
HEADRACE_SHADER constexpr uint32_t job_counts_bytes(uint32_t counters) { return (8 * counters + 15) / 16 * 16; }
HEADRACE_SHADER constexpr uint32_t job_parameter_bytes(uint32_t bytes) {
  return bytes > kSharedParameters ? 0 : (bytes + 15) / 16 * 16;
}
HEADRACE_SHADER constexpr uint32_t job_stage_bytes(bool scans) { return scans ? kJobWarps * kStageBytes : 0; }
HEADRACE_SHADER constexpr uint32_t job_shared_bytes(uint32_t counters, uint32_t parameter_bytes, uint32_t stride,
                                                    uint32_t stage_bytes) {
  return job_counts_bytes(counters) + stage_bytes + job_parameter_bytes(parameter_bytes) +
         kJobThreads * (stride + kRowPadding);
}

/// When blocks of the resident kernel last had work; in device memory.
struct ResidentActivity {
  uint64_t last_ns;
  uint64_t leaving;  ///< the kernel of this generation leaves
};

/// The parameter of `headrace_resident`. Addresses are the device's.
struct ResidentArguments {
  uint64_t places;
  uint64_t plans;     ///< DevicePlan[]
  uint64_t activity;  ///< ResidentActivity
  uint64_t left;      ///< a word of pinned memory that becomes `generation` when the kernel begins to leave
  uint64_t place_stride;
  uint64_t idle_ns;  ///< without a job for so long, the kernel leaves
  uint32_t place_count;
  uint32_t rows_at;
  uint32_t counters;  ///< most of any plan
  uint32_t parameter_bytes;
  uint32_t stage_bytes;  ///< room for payloads in a block's shared memory
  uint32_t generation;   ///< not 0
};

/// The parameter of `headrace_stream`: one job.
struct StreamArguments {
  uint64_t rows;
  uint64_t counts;
  uint64_t parameters;
  uint32_t plan;
  uint32_t slots;
  uint32_t stride;
  uint32_t counters;
  uint32_t parameter_bytes;
  uint32_t stage_bytes;  ///< as for the resident kernel
  uint32_t scans;        ///< as in DevicePlan
};

}  // namespace headrace
