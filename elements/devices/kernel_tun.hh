#pragma once
#include "elements/devices/host_port.hh"

namespace headrace {

/// KernelTap and KernelTun: a host port that takes packets for the host itself.
class KernelDevice : public HostPort {
 public:
  static constexpr Ports kPorts{"0-1/1-2"};
  static constexpr Processing kProcessing{"a/h"};

  Status initialize(Errors& errors) override;
  void push(int port, Batch& batch) override;

  bool moves(Direction direction) const override { return direction == Direction::kIn || ninputs() > 0; }
  PortTotals totals(Direction direction, int thread) const override {
    return direction == Direction::kIn ? HostPort::totals(direction, thread) : to_host_.of_thread(thread);
  }

 protected:
  explicit KernelDevice(bool tap) { options_.tap = tap; }
  Status configure_device(Args& args, uint32_t default_headroom);

 private:
  bool pull_for_host(Task& task);
  void give(Batch& batch);

  Task pull_task_{this, [this](Task& task) { return pull_for_host(task); }};
  Signal signal_;
};

}  // namespace headrace
