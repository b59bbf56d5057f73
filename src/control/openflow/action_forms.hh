#pragma once
/// \file
/// The forms of single actions in each version, for the sources about actions.

#include <cstdint>
#include <span>
#include <vector>

#include "control/openflow/actions.hh"

namespace headrace::openflow {

/// The Ethernet type of a customer's VLAN tag, the only one of 1.0.
inline constexpr uint16_t kCustomerTag = 0x8100;

/// A port that output may name: a number of a real one or a reserved one but ANY.
inline bool is_output_port(uint32_t number) {
  return number != 0 && (number <= port::kMax || (number >= port::kInPort && number != port::kAny));
}

/// Checks the size of the action whose type and length have been read; any other is BAD_LEN.
inline bool has_size(Reader& io, size_t size) {
  if (io.left() + 4 == size) return true;
  io.fail(ErrorCode::kActionBadLen);
  return false;
}

/// Reads what follows type and length in 1.0; `whole` is the action.
void read_body_1_0(Reader& io, uint16_t type, Action& action, std::span<const uint8_t> whole);
/// The list in 1.0's form, as actions() says.
void write_actions_1_0(Writer& io, const std::vector<Action>& actions, const KeyMatch* match);

void write_action_1_3(Writer& io, const Action& action);
/// An action that only 1.0 has, in 1.3's form. `tagged`: whether the packet has a tag by now.
void write_from_1_0(Writer& io, const Action& action, const KeyMatch* match, bool& tagged);

}  // namespace headrace::openflow
