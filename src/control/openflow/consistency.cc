#include "control/openflow/consistency.hh"

#include <algorithm>

#include "control/openflow/action_forms.hh"

namespace headrace::openflow {

namespace {

constexpr uint64_t kTagPresentBit = 0x1000;
constexpr uint16_t kPbbType = 0x88e7;

/// What is known of a packet between actions.
struct Known {
  KeyMatch key;
  /// A tag was popped, so that nothing is known of another one behind it.
  bool popped = false;

  bool has(uint8_t field) const { return requirements_met(key, key_fields()[field]); }
  // Fields that exist in exactly the packets with a tag, an MPLS label, an I-SID, an IP header.
  bool has_tag() const { return popped || has(oxm::kVlanPcp); }
  bool has_label() const { return has(oxm::kMplsLabel); }
  bool has_isid() const { return has(oxm::kPbbIsid); }
  bool is_ip() const { return has(oxm::kDscp); }

  void set(uint8_t field, uint64_t value, uint64_t mask) {
    set_key_field(key.value, key_fields()[field], {0, value & mask});
    set_key_field(key.mask, key_fields()[field], {0, mask});
  }
  /// The type changes, and with it all that lies behind.
  void set_type(uint16_t type) {
    set(oxm::kEtherType, type, 0xffff);
    set(oxm::kIpProtocol, 0, 0);
  }
};

bool set_field_fits(const Action& action, Known& known) {
  const KeyField& field = key_fields()[action.field];
  if (field.oxm == oxm::kVlanVid || field.oxm == oxm::kVlanPcp) {
    if (!known.has_tag()) return false;
  } else if (!requirements_met(known.key, field)) {
    return false;
  }
  set_key_field(known.key.value, field, action.set);
  set_key_field(known.key.mask, field, key_field_ones(field));
  // A set VLAN leaves the tag where it is.
  if (field.oxm == oxm::kVlanVid) known.set(oxm::kVlanVid, action.set.low | kTagPresentBit, 0x1fff);
  return true;
}

/// Whether an action fits; `known` becomes what holds behind it.
bool fits(const Action& action, Known& known) {
  switch (action.type) {
    case ActionType::kPushVlan:
      known.set(oxm::kVlanVid, kTagPresentBit, kTagPresentBit);
      return true;
    case ActionType::kPopVlan:
      if (!known.has_tag()) return false;
      known.popped = true;
      known.set(oxm::kVlanVid, 0, 0);
      return true;
    case ActionType::kPushMpls:
      known.set_type(action.number);
      return true;
    case ActionType::kPopMpls:
      if (!known.has_label()) return false;
      known.set_type(action.number);
      return true;
    case ActionType::kPushPbb:
      known.set_type(kPbbType);
      return true;
    case ActionType::kPopPbb:
      if (!known.has_isid()) return false;
      known.set_type(0);
      known.set(oxm::kEtherType, 0, 0);
      known.popped = true;  // the frame inside may have a tag
      return true;
    case ActionType::kSetMplsTtl:
    case ActionType::kDecMplsTtl:
      return known.has_label();
    case ActionType::kSetNwTtl:
    case ActionType::kDecNwTtl:
      return known.is_ip();
    case ActionType::kSetField:
      return set_field_fits(action, known);
    default:
      return true;
  }
}

bool all_fit(const std::vector<Action>& actions, Known& known) {
  return std::all_of(actions.begin(), actions.end(), [&](const Action& action) { return fits(action, known); });
}

}  // namespace

ErrorCode check_consistency(const KeyMatch& match, const std::vector<Instruction>& instructions) {
  Known known{match};
  for (const Instruction& instruction : instructions)
    if (instruction.type == InstructionType::kApplyActions && !all_fit(instruction.actions, known))
      return ErrorCode::kActionMatchInconsistent;
  for (const Instruction& instruction : instructions) {
    if (instruction.type != InstructionType::kWriteActions) continue;
    std::vector<Action> ordered = instruction.actions;
    std::stable_sort(ordered.begin(), ordered.end(),
                     [](const Action& a, const Action& b) { return place_in_set(a.type) < place_in_set(b.type); });
    if (!all_fit(ordered, known)) return ErrorCode::kActionMatchInconsistent;
  }
  return ErrorCode::kNone;
}

}  // namespace headrace::openflow
