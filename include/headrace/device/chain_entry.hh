#pragma once
/// \file
/// The element in front of a chain.

#include <atomic>

#include "headrace/element.hh"
#include "headrace/offload_options.hh"

namespace headrace {

class ChainEntry;

/// Takes the packets that arrive at a chain.
class ChainGate {
 public:
  virtual void arrive(ChainEntry& entry, Batch& batch) = 0;

 protected:
  ~ChainGate() = default;
};

/// A chain compiled for the CPU.
class ChainBody {
 public:
  /// Runs packets that come by entry `entry` of the chain of plan `plan`. Only workers call it.
  virtual void run(int plan, int entry, Batch& batch) = 0;

 protected:
  ~ChainBody() = default;
};

/// Stands in front of a chain. Passes packets on to the chain, unless a gate is attached that takes them to where they
/// are processed. Users place an entry as `Offload`; the router may insert entries elsewhere in front of chains.
class ChainEntry : public Element {
 public:
  static constexpr Ports kPorts{"1/1"};
  static constexpr Processing kProcessing{"h/h"};

  void push(int, Batch& batch) override {
    if (gate_)
      gate_->arrive(*this, batch);
    else
      process(batch);
  }
  /// Lets the chain process packets on the CPU.
  void process(Batch& batch) {
    ChainBody* const body = body_.load(std::memory_order_acquire);
    if (body && batch.size() >= smallest_batch_ &&
        static_cast<unsigned>(thread_id()) < static_cast<unsigned>(body_workers_)) [[likely]]
      body->run(body_plan_, body_entry_, batch);
    else
      output(0).push(batch);
  }
  /// Where packets go once there is a body, which serves threads below `workers` and batches that are not smaller.
  void set_place(int plan, int entry, int workers, int smallest_batch) {
    body_plan_ = plan;
    body_entry_ = entry;
    body_workers_ = workers;
    smallest_batch_ = smallest_batch;
  }
  /// Null: from element to element. Any thread, while packets flow; `body` must not end before the router.
  void set_body(ChainBody* body) { body_.store(body, std::memory_order_release); }
  /// Sends packets to `gate`, to enter plan `plan` at step `step`.
  /// \param id the gate's number for this entry
  void attach(ChainGate* gate, int plan, uint16_t step, uint16_t id, const OffloadOptions& options) {
    gate_ = gate;
    plan_ = plan;
    step_ = step;
    id_ = id;
    in_effect_ = options;
  }
  bool attached() const { return gate_ != nullptr; }
  int plan() const { return plan_; }
  uint16_t step() const { return step_; }
  uint16_t id() const { return id_; }
  OffloadOptions& in_effect() { return in_effect_; }
  const OffloadOptions& in_effect() const { return in_effect_; }
  /// Applies what the user set for this entry to the options of the whole router.
  virtual void adjust(OffloadOptions&) const {}

 private:
  ChainGate* gate_ = nullptr;
  std::atomic<ChainBody*> body_{nullptr};
  int body_plan_ = 0, body_entry_ = 0, body_workers_ = 0, smallest_batch_ = 0;
  int plan_ = -1;
  uint16_t step_ = 0, id_ = 0;
  OffloadOptions in_effect_;
};

}  // namespace headrace
