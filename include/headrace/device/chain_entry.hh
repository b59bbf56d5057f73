#pragma once
/// \file
/// The element in front of a chain.

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
      output(0).push(batch);
  }
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
  int plan_ = -1;
  uint16_t step_ = 0, id_ = 0;
  OffloadOptions in_effect_;
};

}  // namespace headrace
