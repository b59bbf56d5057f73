#pragma once
#include "elements/devices/host_port.hh"

namespace headrace {

/// Passes packets to the host on which the router runs.
///
///     ToHost([DEVNAME, keyword SNIFFERS, TYPE, QUIET])
///
/// Input 0, push: packets with Ethernet headers. The host receives them at the virtual interface of the FromHost or
/// KernelTap whose device is DEVNAME: packets for one of its addresses, whose Ethernet destination must be the
/// device's, a copy of each ARP reply, and packets that the router does not handle. DEVNAME may be omitted if the
/// configuration has only one FromHost or KernelTap. Without any, packets are counted and dropped, and the router
/// prints a note when it starts.
///
/// SNIFFERS, TYPE, QUIET: accepted but ignored.
///
/// Handlers: `drops` (r) packets dropped; `dev_name` (r).
class ToHost final : public Element, public DevicePort, public HasDevice, public TouchesMachine {
 public:
  static constexpr Ports kPorts{"1/0"};
  static constexpr Processing kProcessing{"h/h"};

  Status configure(Args& args) override;
  Status initialize(Errors& errors) override;
  void push(int port, Batch& batch) override;
  void add_handlers(Handlers& handlers) override;

  bool moves(Direction direction) const override { return direction == Direction::kOut; }
  PortTotals totals(Direction direction, int thread) const override;
  std::optional<DeviceState> device_state() const override;
  DeviceCounters device_counters() const override;

 private:
  enum Counter { kPackets, kBytes };
  enum Reason { kNoWay, kHost };
  uint64_t dropped() const;

  std::string device_;
  HostPort* host_ = nullptr;
  ThreadCounters counts_{2};
};

HEADRACE_ELEMENT(ToHost)
HEADRACE_ELEMENT_ALIAS(ToHostSniffers, ToHost)

}  // namespace headrace
