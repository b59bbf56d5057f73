#pragma once
#include "elements/userlevel/host_port.hh"

namespace headrace {

/// KernelTap and KernelTun: a host port that takes packets for the host itself.
class KernelDevice : public HostPort {
 public:
  static constexpr Ports kPorts{"0-1/1-2"};
  static constexpr Processing kProcessing{"a/h"};

  Status initialize(Errors& errors) override;
  void push(int port, Batch& batch) override;

 protected:
  explicit KernelDevice(bool tap) { options_.tap = tap; }
  Status configure_device(Args& args, uint32_t default_headroom);

 private:
  bool pull_for_host(Task& task);

  Task pull_task_{this, [this](Task& task) { return pull_for_host(task); }};
  Signal signal_;
};

}  // namespace headrace
