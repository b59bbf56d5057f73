#pragma once
/// \file
/// Roles of controllers and which messages they get unasked (ONF TS-023, sections 6.3.6 and 7.3.10).

#include <cstdint>
#include <optional>

#include "control/openflow/codec.hh"

namespace headrace::openflow {

/// The generation id of the last change of masters, which guards against orders that come late. One a switch.
class MasterElection {
 public:
  /// False: stale, that is older than the last one, as the difference of two numbers on a circle.
  bool accept(uint64_t generation) {
    if (generation_ && static_cast<int64_t>(generation - *generation_) < 0) return false;
    generation_ = generation;
    return true;
  }
  /// All ones before the first.
  uint64_t generation() const { return generation_.value_or(UINT64_MAX); }

 private:
  std::optional<uint64_t> generation_;
};

/// What a controller gets unless it asks for something else: port status always; packet-ins by misses and actions, and
/// flow-removed, unless it is a slave.
AsyncConfig default_async();
/// Whether a controller with this role and these settings gets a packet-in, flow-removed or port-status message.
bool passes(const AsyncConfig& config, Role role, const Body& body);
/// Messages that change the state of the switch, which slaves may not send.
bool modifies(const Body& body);

}  // namespace headrace::openflow
