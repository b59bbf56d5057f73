#pragma once
/// \file
/// What runs jobs: the interface that every backend has.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "headrace/device/lane_view.hh"
#include "headrace/error.hh"
#include "headrace/offload_options.hh"

namespace headrace::offload {

/// How a backend that can do both brings jobs to its device: a kernel that stays and polls, or a copy and a launch for
/// each job.
enum class Run : uint8_t { kResident, kStream };

/// The memory that a device works on, other than that of jobs: tables and parameters. Called by one thread at a time,
/// never by a worker on the data path.
class DeviceMemory {
 public:
  virtual ~DeviceMemory() = default;
  /// `bytes` of device memory, zeroed, aligned to 256; 0 when there is not enough.
  virtual uint64_t allocate(size_t bytes) = 0;
  virtual void release(uint64_t address) = 0;
  /// Copies to the device. When it returns, `from` may change, and every job submitted later sees the bytes.
  virtual Status upload(uint64_t to, const void* from, size_t bytes) = 0;
  /// Bytes free and in total, for messages; 0 if unknown.
  virtual size_t free_bytes() const = 0;
  virtual size_t total_bytes() const = 0;
};

class Plan;

/// A program and what its plans need. See program.hh for how it is made.
struct Program {
  struct Plan {
    RowLayout row;
    int counters = 0;  ///< event counters that its shaders have together
  };
  std::vector<Plan> plans;
  /// The same plans as objects of this process, for a backend that runs them itself.
  const std::vector<offload::Plan>* objects = nullptr;
  /// CUDA C++ in which `headrace_run_plan(plan, slot, parameters)` runs a slot through a plan. Its #includes name
  /// embedded headers.
  std::string source;
  size_t parameter_bytes = 0;  ///< of a parameter block
};

/// What must be known before lanes are made.
struct LaneOptions {
  int workers = 1;
  int jobs = 8;         ///< jobs that a lane may have under way
  int job_size = 1024;  ///< most packets of a job
  Run run = Run::kResident;
};

/// One worker's way to one device. All calls come from that worker.
class Lane {
 public:
  enum class State : uint8_t { kPending, kDone, kFailed };
  virtual ~Lane() = default;

  /// Host addresses of job place `job`: rows go there and come back to `rows_out` (which may be the same memory).
  virtual uint8_t* rows_in(int job) = 0;
  virtual const uint8_t* rows_out(int job) = 0;
  /// What the plan's counters counted in a job that is done.
  virtual void counts(int job, uint64_t* counts, int n) = 0;

  /// Hands over `slots` rows of plan `plan`; `parameters` is the device address of the parameter block. Does not wait.
  /// False when the device has failed: then nothing was handed over.
  virtual bool submit(int job, int plan, int slots, uint64_t parameters) = 0;
  /// How a submitted job is doing. kFailed: it will never be done.
  virtual State poll(int job) = 0;
};

/// One device. open() once; then lanes; destroyed when no worker uses a lane any more.
class Backend {
 public:
  virtual ~Backend() = default;

  virtual DeviceMemory& memory() = 0;
  /// Prepares the program and lanes for all workers. Errors say what is missing, in figures.
  virtual Status open(const Program& program, const LaneOptions& options, Errors& errors) = 0;
  virtual Lane& lane(int worker) = 0;
  /// The NUMA node that the device is part of; -1 if unknown.
  virtual int numa_node() const { return -1; }
  /// Lines "key: value" about what is in effect: device, link, run, page size.
  virtual std::string describe() const = 0;
};

/// The devices of a kind that this machine has, as many as are wanted (0: all), not yet open. "auto": the best kind.
/// Empty, with the reason in `why_not`, where there is none.
std::vector<std::unique_ptr<Backend>> find_devices(const OffloadOptions& options, std::string& why_not);

}  // namespace headrace::offload
