#pragma once
#include <headrace/element.hh>

#include "headrace/device_port.hh"
#include "headrace/device_state.hh"
#include "headrace/software_rss.hh"
#include "headrace/touches_machine.hh"
#include "src/io/linux/link_watch.hh"
#include "src/io/linux/tun.hh"

namespace headrace {

/// What KernelTap, KernelTun and FromHost share: a virtual interface whose other end is the host's own network stack.
/// They receive what the host sends by it, on the home thread, and spread that over the workers by flow; any worker may
/// give packets to the host.
class HostPort : public Element, public DevicePort, public HasDevice, public TouchesMachine {
 public:
  Status initialize(Errors& errors) override;
  void add_handlers(Handlers& handlers) override;
  void selected(int fd, int mask) override;
  void take_state(Element& old, Errors& errors) override;
  uint64_t held_packets() const override { return rss_.held(); }
  std::string note() const override;

  bool moves(Direction direction) const override { return direction == Direction::kIn; }
  PortTotals totals(Direction direction, int thread) const override;
  uint64_t missed() const override { return counts_.sum(kMissed); }
  std::optional<DeviceState> device_state() const override;
  /// What the host sends is received here.
  DeviceCounters device_counters() const override;

  /// The interface's name: as configured, or as the system made it.
  const std::string& device_name() const { return device_ ? device_->name() : options_.name; }
  bool is_tap() const { return options_.tap; }
  /// Gives the packets to the host; returns what it took. The rest is dropped by `user`, under its reasons from
  /// `reason` on, which host_reasons() names.
  PortTotals give_to_host(Batch& batch, Element& user, int reason);
  static std::vector<std::string> host_reasons() {
    return {"longer than the host device's MTU", "not taken by the host"};
  }

 protected:
  enum Counter { kPackets, kBytes, kMissed, kGiven, kCounters };
  /// After the two of host_reasons().
  enum Reason { kTooLong, kNotTaken, kRingFull, kOwnReason };
  /// Passes on what the host sent; on any worker.
  virtual void deliver(Batch& batch) { output(0).push(batch); }
  /// "eth0", "10.0.0.1/24", ...: checks and keeps what the classes have in common.
  Status check_common(Args& args);

  io::HostDevice::Options options_;
  uint32_t headroom_ = Packet::kDefaultHeadroom;
  int burst_ = 32;
  /// By an input of this element; what a ToHost gives by this device counts there.
  PortCounter to_host_;

 private:
  bool receive_from_host(Task& task);
  void look_after_device();

  std::shared_ptr<io::HostDevice> device_;
  bool started_ = false;
  int quiet_rounds_ = 0;
  ThreadCounters counts_{kCounters};
  Task task_{this, [this](Task& task) { return receive_from_host(task); }};
  Timer look_{this, [this](Timer&) { look_after_device(); }};
  SoftwareRss rss_{*this, [this](Batch& batch) { deliver(batch); }};
  std::unique_ptr<io::LinkWatch::Subscription> link_;
};

}  // namespace headrace
