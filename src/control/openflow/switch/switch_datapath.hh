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
#include "control/openflow/switch/ports.hh"
#include "control/openflow/switch/shared_port_set.hh"
#include "headrace/rcu.hh"
#include "headrace/timestamp.hh"
#include "tables/mac/mac_table.hh"
#include "tables/openflow/datapath.hh"

namespace headrace::openflow {

/// What workers look up and count, and what the control thread changes for them.
class SwitchDatapath final : public Datapath {
 public:
  using Clock = std::function<int64_t()>;

  /// Of the learning switch behind NORMAL.
  static constexpr uint32_t kMacAddresses = 16384;

  SwitchDatapath(uint64_t number, Clock clock, const PacketInQueue::Options& packet_ins)
      : clock_(std::move(clock)),
        pipeline_(PipelineOptions{}),
        packet_ins_(packet_ins),
        addresses_(kMacAddresses),
        ports_(number, port_counters(),
               [this](uint32_t port, uint32_t word, bool alive) { publish_port(port, word, alive); }) {}

  // Workers
  OpenFlowView view() const override { return pipeline_.view(); }
  OpenFlowView mirror(Mirror& mirror) const override {
    const auto guard = look();
    return pipeline_.mirror(mirror);
  }
  bool may_change_frames() const override {
    const auto guard = look();
    return pipeline_.size() == 0 || pipeline_.changes_frames();
  }
  bool drops_fragments() const override { return drops_fragments_.load(std::memory_order_relaxed); }
  bool stands_alone() const override { return alone_.load(std::memory_order_relaxed); }
  ClosedPorts closed_ports() const override;
  bool wants_invalid_ttl() const override { return wants_invalid_ttl_.load(std::memory_order_relaxed); }
  bool floods(uint32_t port) const override { return ports_.floods(port); }
  EntryCounters& entry_counters() override { return pipeline_.entry_counters(); }
  Time now() const override { return clock_(); }
  void count_more(const Visits& met) override;
  Verdict meter(uint32_t place, uint32_t length) override;
  void packet_in(const PacketForController& in) override;
  uint32_t normal(const Packet& frame, uint32_t in_port) override;

  // The control thread

  /// Guards pipeline and ports: the control thread changes them, others look at them.
  std::mutex& lock() const { return lock_; }
  /// The same lock for other threads. Who holds it may be waiting for readers, so this thread is none meanwhile.
  std::unique_lock<std::mutex> look() const {
    const rcu::Offline offline;
    return std::unique_lock(lock_);
  }
  OpenFlowPipeline& pipeline() { return pipeline_; }
  SwitchPorts& ports() { return ports_; }
  const SwitchPorts& ports() const { return ports_; }
  InjectionQueue& injections() { return injections_; }
  PacketInQueue& packet_ins() { return packet_ins_; }
  MacTable& addresses() { return addresses_; }
  /// The time of addresses().
  uint32_t seconds() const { return static_cast<uint32_t>(clock_() / Timestamp::kSecond); }

  void set_drops_fragments(bool on) { drops_fragments_.store(on, std::memory_order_relaxed); }
  void set_alone(bool on) { alone_.store(on, std::memory_order_relaxed); }
  void set_wants_invalid_ttl(bool on) { wants_invalid_ttl_.store(on, std::memory_order_relaxed); }

 private:
  void publish_port(uint32_t port, uint32_t word, bool alive);

  const Clock clock_;
  mutable std::mutex lock_;
  OpenFlowPipeline pipeline_;
  std::atomic<bool> drops_fragments_{false}, alone_{false}, wants_invalid_ttl_{false}, any_closed_{false};
  ClosedPorts closed_;  // as the following, for the control thread
  SharedPortSet no_receive_, no_receive_stp_, no_forward_;
  InjectionQueue injections_;
  PacketInQueue packet_ins_;
  MacTable addresses_;
  SwitchPorts ports_;
  /// Packets between workers and the control thread name entries and groups by number. What workers have queued with a
  /// number is there before their next quiescent state, so an empty queue says enough.
  rcu::Copy queued_{[this] { return packet_ins_.empty() ? injections_.oldest() : rcu::Epoch{1}; }};
};

}  // namespace headrace::openflow
