#pragma once
#include <headrace/device/chain_entry.hh>
#include <optional>
#include <string>

namespace headrace {

/// Selects where the chain behind it runs: on the CPU or on a device.
///
///     Offload([keywords MODE, FRACTION, JOB, MAXWAIT, RUN, P99, BALANCER])
///
/// Put it on a push path in front of a chain of shaders (`headrace elements` marks them). Headrace derives batching,
/// transfers and the order of flows from the chain. Without this element, the command line's --mode applies to every
/// chain.
///
/// MODE: `cpu`; `device`: all packets; sources wait while the device is busy; `fixed`: FRACTION of the flows on the
/// device; the rest, and packets that find no free job, on the CPU; `auto` (default): where the balancer says.
/// FRACTION: 0 to 1, default 0.5. JOB: maximum number of packets in a job. Default 1024; if the chain scans payloads 256, or
/// 32 KiB of packets if these are 64 or more. MAXWAIT: maximum time that a
/// packet waits for others. Default 20us. RUN: `resident`, a program that stays on the device, for low latency;
/// `stream`, a copy and a launch for each job; `auto` (default): resident, and stream where a balancer says so. P99: for
/// MODE `auto`, the time in the router that 99 % of the packets are to stay below; 0 (default): no bound. BALANCER: for
/// `auto`, what decides, such as `Model` or `Fixed=0.4` (`headrace balance --list`). Default: what --balancer says, else
/// Model.
///
/// Packets return in the order of their flow. Without a device the CPU does the work.
///
/// Handlers: `mode` (rw).
class Offload final : public ChainEntry {
 public:
  Status configure(Args& args) override;
  Status initialize(Errors& errors) override;
  void add_handlers(Handlers& handlers) override;
  void adjust(OffloadOptions& options) const override;

 private:
  std::optional<OffloadOptions::Mode> mode_;
  std::optional<double> fraction_;
  std::optional<int> job_, max_wait_us_;
  std::optional<OffloadOptions::Run> run_;
  std::optional<double> p99_us_;
  std::optional<std::string> balancer_;
};

}  // namespace headrace
