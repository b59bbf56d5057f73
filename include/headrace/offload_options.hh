#pragma once
/// \file
/// What users can choose about offloading.

#include <cstdint>
#include <string>
#include <string_view>

namespace headrace {

/// What the device that the CPU emulates can do, and what it does wrong.
struct ReferenceOptions {
  int threads = 1;          ///< that process jobs; 0: each worker does when it looks for its job, at no given time
  int delay_us = 0;         ///< minimum time of each job; jobs overlap
  double gbps = 0;          ///< rate of the link, both directions together; 0: no limit
  int memory_mb = 0;        ///< for tables; 0: no limit
  uint64_t late_every = 0;  ///< every so-many-th job takes `late_ms` longer; 0: none
  int late_ms = 100;
  uint64_t hang_at = 0;  ///< from this job on (the first is 1), none is done; 0: never
  int hang_ms = 0;       ///< then for so long; 0: for ever
  uint64_t fail_at = 0;  ///< the device fails at this job; 0: never

  /// Reads "threads=2,delay=20,gbps=100,memory=64,late=1000,late-by=100,hang=5000,hang-for=300,fail=9000", or a part of
  /// that. False for any other text.
  bool set(std::string_view text);
  /// The same, without what has its default; empty if everything has.
  std::string text() const;
  bool operator==(const ReferenceOptions&) const = default;
};

struct OffloadOptions {
  /// auto: a balancer decides (headrace/balancer.hh). cpu: never a device. device: always a device; sources wait while it
  /// is busy. fixed: a device for this fraction of the flow buckets.
  enum class Mode : uint8_t { kAuto, kCpu, kDevice, kFixed };
  /// How jobs come to a device. resident: a kernel that stays there polls for them. stream: a copy and a launch for each.
  /// auto: resident, but a balancer may choose stream where it decides.
  enum class Run : uint8_t { kAuto, kResident, kStream };

  Mode mode = Mode::kAuto;
  double fraction = 1;           ///< of the buckets, for kFixed
  std::string backend = "auto";  ///< "auto": cuda if there is a device, else the CPU; "reference", "cuda"
  Run run = Run::kAuto;
  int job = 0;                     ///< maximum packets per job; 0: see job_size()
  int job_bytes = 0;               ///< of packets, that fill a job of 64 packets or more; 0: see bytes_of_job()
  int jobs = 0;                    ///< jobs that a worker may have in flight; 0: see job_count()
  int max_wait_us = 20;            ///< a job is submitted when its first packet has waited this long
  int deadline_ms = 0;             ///< a job that takes longer runs again on the CPU; 0: the device's default
  int devices = 0;                 ///< how many devices to use; 0: all
  std::string balancer = "Model";  ///< for kAuto: its name, with an argument behind `=` if it takes one
  double p99_us = 0;               ///< for kAuto: 99 % of the packets are to be in the router for less; 0: no bound
  std::string balance_trace;       ///< a file to which the balancer's trace is written; empty: none
  /// Devices that only kAuto may want are open before the router is ready; otherwise they are opened while packets flow.
  bool wait_for_devices = false;
  ReferenceOptions reference;

  /// `job`, or a suitable default. A resident kernel scans the payloads of a job one after the other, so small jobs
  /// keep more of it busy; headers, and jobs that need a launch each, are best sent in bulk.
  int job_size(bool scans_payload) const { return job > 0 ? job : scans_payload && run != Run::kStream ? 256 : 1024; }
  /// A suitable `job_bytes`: of payloads, what counts are bytes. 0 if the user chose `job`.
  int bytes_of_job(bool scans_payload) const { return job == 0 && scans_payload && run != Run::kStream ? 32 << 10 : 0; }
  /// `jobs`, or a suitable default: more where jobs are small and each takes long.
  int job_count(bool scans_payload) const { return jobs > 0 ? jobs : scans_payload && run != Run::kStream ? 16 : 8; }
  /// Accepts "auto", "cpu", "device" and "fixed=0.4"; returns false for any other text.
  bool set_mode(std::string_view text);
  /// Accepts "auto", "resident" and "stream"; returns false for any other text.
  bool set_run(std::string_view text);
  /// Accepts "50us", "0.05ms" and "5e-5s", or 0 for no bound; returns false for any other text.
  bool set_p99(std::string_view text);
  std::string mode_text() const;
  std::string run_text() const;
};

}  // namespace headrace
