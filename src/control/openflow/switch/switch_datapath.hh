#pragma once
/// \file
/// The side of a switch that workers see.

#include <atomic>
#include <cstdint>
#include <functional>
#include <mutex>
#include <vector>

#include "control/openflow/pipeline/pipeline.hh"
#include "control/openflow/switch/injection_queue.hh"
#include "control/openflow/switch/packet_in_queue.hh"
#include "control/openflow/switch/shared_port_set.hh"
#include "tables/mac/mac_table.hh"
#include "tables/openflow/datapath.hh"

namespace headrace::openflow {

/// What workers look up and count, and what the control thread changes for them.
class SwitchDatapath final : public Datapath {
 public:
  using Clock = std::function<int64_t()>;

  /// Of the learning switch behind NORMAL.
  static constexpr uint32_t kMacAddresses = 16384;

  SwitchDatapath(Clock clock, const PacketInQueue::Options& packet_ins)
      : clock_(std::move(clock)), pipeline_(PipelineOptions{}), packet_ins_(packet_ins), addresses_(kMacAddresses) {}

  // Workers
  OpenFlowView view() const override { return pipeline_.view(); }
  OpenFlowView mirror(Mirror& mirror) const override {
    const std::lock_guard guard(lock_);
    return pipeline_.mirror(mirror);
  }
  bool drops_fragments() const override { return drops_fragments_.load(std::memory_order_relaxed); }
  bool stands_alone() const override { return alone_.load(std::memory_order_relaxed); }
  ClosedPorts closed_ports() const override;
  bool wants_invalid_ttl() const override { return wants_invalid_ttl_.load(std::memory_order_relaxed); }
  bool floods(uint32_t port) const override { return floods_.has(place_of(port)); }
  void count(const Visits* visits, int n) override;
  Verdict meter(uint32_t place, uint32_t length) override;
  void packet_in(const PacketForController& in) override;
  uint32_t normal(const Packet& frame, uint32_t in_port) override;

  // The control thread

  /// Guards the pipeline: the control thread changes it, others look at it.
  std::mutex& lock() const { return lock_; }
  OpenFlowPipeline& pipeline() { return pipeline_; }
  InjectionQueue& injections() { return injections_; }
  PacketInQueue& packet_ins() { return packet_ins_; }
  MacTable& addresses() { return addresses_; }
  Time now() const { return clock_(); }

  void set_port_count(uint32_t ports) { ports_.store(ports, std::memory_order_relaxed); }
  uint32_t place_of(uint32_t port) const {
    return port == port::kLocal ? ports_.load(std::memory_order_relaxed) : port - 1;
  }
  void set_drops_fragments(bool on) { drops_fragments_.store(on, std::memory_order_relaxed); }
  void set_alone(bool on) { alone_.store(on, std::memory_order_relaxed); }
  void set_wants_invalid_ttl(bool on) { wants_invalid_ttl_.store(on, std::memory_order_relaxed); }
  void set_closed(const ClosedPorts& closed);
  void set_floods(const PortSet& ports) { floods_.set(ports); }
  /// Ports whose packets do not become packet-ins.
  void set_silent(const PortSet& ports) { silent_.set(ports); }

 private:
  const Clock clock_;
  mutable std::mutex lock_;
  OpenFlowPipeline pipeline_;
  std::atomic<bool> drops_fragments_{false}, alone_{false}, wants_invalid_ttl_{false}, any_closed_{false};
  std::atomic<uint32_t> ports_{0};
  SharedPortSet closed_in_, closed_out_, floods_, silent_;
  InjectionQueue injections_;
  PacketInQueue packet_ins_;
  MacTable addresses_;
  /// Packets between workers and the control thread name entries and groups by number. What workers have queued with a
  /// number is there before their next quiescent state, so an empty queue says enough.
  rcu::Copy queued_{[this] { return packet_ins_.empty() ? injections_.oldest() : rcu::Epoch{1}; }};
};

}  // namespace headrace::openflow
