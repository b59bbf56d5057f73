#pragma once
#include <headrace/chain_entry.hh>
#include <optional>

namespace headrace {

/// Says where the shaders behind it run: on the CPU or on a device.
///
///     Offload([keywords MODE, FRACTION, JOB, MAXWAIT, RUN])
///
/// It stands on a push path in front of a chain, that is, of elements that are shaders (`headrace elements` marks
/// them). Batching, transfers and the order of flows follow from the chain; nothing else need be written. Without it
/// the command line's --mode holds for every chain.
///
/// MODE: `cpu`; `device`, whose sources wait while it is busy; `fixed`: FRACTION of the flows on the device, the rest,
/// and what it has no room for, on the CPU; `auto` (default): chosen by load; at present that is the CPU. FRACTION: 0
/// to 1, default 0.5. JOB: most packets that go to the device together. Default 1024. MAXWAIT: how long a packet may
/// wait for others, at most. Default 20us. RUN: `resident`, a program that stays on the device: short delays; `stream`,
/// a copy and a start for each job. Default resident.
///
/// A packet always comes back in the order of its flow. Where there is no device the CPU does the work.
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
  std::optional<bool> resident_;
};

}  // namespace headrace
