#pragma once
/// \file
/// The interface of backends, which run jobs.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "headrace/device/jobs.hh"
#include "headrace/device/lane_view.hh"
#include "headrace/error.hh"
#include "headrace/offload_options.hh"

namespace headrace::offload {

/// How a lane gives jobs to its device: through a resident kernel that polls, or by a copy and a launch for each job.
enum class Run : uint8_t { kResident, kStream };
inline constexpr int kRuns = 2;

/// Device memory other than that of jobs: tables and parameters. Called by one thread at a time, never by a worker on
/// the data path.
class DeviceMemory {
 public:
  virtual ~DeviceMemory() = default;
  /// Allocates `bytes` of device memory, zeroed and aligned to 256; returns 0 if there is not enough.
  virtual uint64_t allocate(size_t bytes) = 0;
  virtual void release(uint64_t address) = 0;
  /// Copies to the device, after what was sent before. `from` may change as soon as it returns.
  virtual Status send(uint64_t to, const void* from, size_t bytes) = 0;
  /// Waits until all that was sent is there. Every job submitted later sees it.
  virtual Status finish() = 0;
  Status upload(uint64_t to, const void* from, size_t bytes) {
    const Status sent = send(to, from, bytes);
    return sent.ok() ? finish() : sent;
  }
  /// Bytes free and in total, for messages; 0 if unknown.
  virtual size_t free_bytes() const = 0;
  virtual size_t total_bytes() const = 0;
};

class Plan;

/// A program, and what a backend needs to know about its plans. program.hh makes it.
struct Program {
  struct Plan {
    RowLayout row;
    int counters = 0;                   ///< event counters of all its shaders
    bool reads_payloads_again = false;  ///< a packet may meet several shaders that read or rewrite payloads
  };
  std::vector<Plan> plans;
  /// The same plans as objects, for a backend that runs them in this process.
  const std::vector<offload::Plan>* objects = nullptr;
  /// CUDA C++ in which `headrace_run_plan<class>(plan, slot, parameters)` runs a slot through a plan. Its #includes name
  /// embedded headers.
  std::string source;
  size_t parameter_bytes = 0;               ///< size of a parameter block
  uint32_t block_bytes[kPlanClasses] = {};  ///< of shared memory that shaders fill
};

/// What must be known before lanes are made.
struct LaneOptions {
  int workers = 1;       ///< that may get a lane
  int jobs = 8;          ///< jobs that a lane may have in flight
  int job_size = 1024;   ///< maximum packets per job
  bool resident = true;  ///< lanes of this kind are wanted
  bool stream = false;   ///< likewise; without either there are none
};

/// One worker's path to one device. Only that worker calls it.
class Lane {
 public:
  enum class State : uint8_t { kPending, kDone, kFailed };
  virtual ~Lane() = default;

  /// Host addresses of job place `job`, where rows lie one behind the other: what of them goes is written to `rows_in`,
  /// RowLayout::there bytes each; what comes back is at `rows_out`, RowLayout::back bytes each. Rows that come back
  /// whole are at `whole_rows`, RowLayout::stride bytes each; the others there are not written.
  virtual uint8_t* rows_in(int job) = 0;
  virtual const uint8_t* rows_out(int job) = 0;
  virtual const uint8_t* whole_rows(int job) = 0;
  /// The values of the plan's counters for a finished job.
  virtual void counts(int job, uint64_t* counts, int n) = 0;

  /// Submits `slots` rows of plan `plan`; `parameters` is the device address of the parameter block. Does not wait.
  /// False if the device has failed; then nothing was submitted.
  virtual bool submit(int job, int plan, int slots, uint64_t parameters) = 0;
  /// The state of a submitted job. kFailed: it will never finish.
  virtual State poll(int job) = 0;
};

/// One device. Call open() once, then make lanes and use them. It is destroyed when no worker uses a lane any more.
class Backend {
 public:
  virtual ~Backend() = default;

  virtual DeviceMemory& memory() = 0;
  /// Prepares the program. Errors tell what is missing, with figures.
  virtual Status open(const Program& program, const LaneOptions& options, Errors& errors) = 0;
  /// A worker that is to get a lane, and the NUMA node of the lane's memory, -1 if it does not matter.
  struct LaneFor {
    int worker;
    int node;
  };
  /// The kinds of lanes that open_lanes() makes: at least one of those that open() was asked for, or the other one where
  /// the device has none of these. After open().
  virtual bool offers(Run run) const = 0;
  /// The resident kernel leaves when it has had no job for so long; 0: never.
  virtual int resident_idle_us() const { return 0; }
  /// Makes lanes, one of each kind that it offers, for workers that have none. Jobs of other workers may have to wait for
  /// it.
  virtual Status open_lanes(const std::vector<LaneFor>& lanes, Errors& errors) = 0;
  /// Null if the worker has none of this kind.
  virtual Lane* lane(int worker, Run run) = 0;
  /// Call when no worker uses a lane any more and before tables are released: jobs that are still there end or are
  /// forgotten. False if the device may still write to packets, because it is stuck.
  virtual bool stop() = 0;
  /// How long a job may take, in milliseconds, if the user does not say: longer than any job takes on a device that
  /// works.
  virtual int deadline_ms() const { return 50; }
  /// The NUMA node that the device is part of; -1 if unknown.
  virtual int numa_node() const { return -1; }
  /// Lines "key: value" that describe what is in use: device, link, run, page size.
  virtual std::string describe() const = 0;
};

/// False if it is certain that find_devices() finds none. This takes no time.
bool may_have_devices(const OffloadOptions& options);

/// The devices of one kind that this machine has, as many as are wanted (0: all), not yet open. "auto": the best kind.
/// If there is none, the result is empty and `why_not` gives the reason.
std::vector<std::unique_ptr<Backend>> find_devices(const OffloadOptions& options, std::string& why_not);

}  // namespace headrace::offload
