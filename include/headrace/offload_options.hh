#pragma once
/// \file
/// What a user may say about offloading.

#include <cstdint>
#include <string>
#include <string_view>

namespace headrace {

struct OffloadOptions {
  /// auto: the balancer decides; until there is one that means the CPU. cpu: never a device. device: always, sources
  /// wait when it is busy. fixed: this fraction of the flow buckets.
  enum class Mode : uint8_t { kAuto, kCpu, kDevice, kFixed };

  Mode mode = Mode::kAuto;
  double fraction = 1;           ///< of the buckets, with kFixed
  std::string backend = "auto";  ///< "auto": cuda if there is a device, else the CPU; "reference", "cuda"
  bool resident = true;          ///< else a copy and a launch a job
  int job = 0;                   ///< most packets of a job; 0: see job_size()
  int jobs = 8;                  ///< jobs that a worker may have under way
  int max_wait_us = 20;          ///< a job goes when its first packet has waited so long
  int deadline_ms = 50;          ///< a job that takes longer runs again on the CPU
  int devices = 0;               ///< how many to use; 0: all
  int delay_us = 0;              ///< every job of the reference device takes at least so long

  /// What `job` says, or what suits: a kernel that stays on the device takes a job's payloads one after the other, so
  /// small jobs keep more of it busy; headers, and jobs with a launch each, are best sent in bulk.
  int job_size(bool scans_payload) const { return job > 0 ? job : scans_payload && resident ? 64 : 1024; }
  /// "auto", "cpu", "device", "fixed=0.4"; false if it is none of them.
  bool set_mode(std::string_view text);
  std::string mode_text() const;
};

}  // namespace headrace
