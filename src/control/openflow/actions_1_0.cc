// Actions of 1.0, and what 1.3 has in their place.

#include <optional>

#include "control/openflow/action_forms.hh"

namespace headrace::openflow {

namespace {

constexpr uint32_t kTagPresent10 = 0x1000;

Action set_field(uint8_t field, uint64_t value) {
  Action action;
  action.type = ActionType::kSetField;
  action.field = field;
  action.set.low = value;
  return action;
}

/// A set action of 1.0 by its number.
bool read_set_action_1_0(Reader& io, uint16_t type, Action& action) {
  for (const SetAction10& row : set_actions_1_0()) {
    if (row.type != type) continue;
    action.type = ActionType::kSetField;
    action.field = row.field;
    if (row.field == kTransportSource || row.field == kTransportDestination) {
      action.type = ActionType::kSetTransport;
      if (!has_size(io, 8)) return true;
      io.u16(action.value);
      io.pad(2);
    } else if (row.field == oxm::kDscp) {
      if (!has_size(io, 8)) return true;
      const uint64_t tos = io.number(1);
      io.pad(3);
      if ((tos & 3) != 0) io.object(ErrorCode::kActionBadArgument);
      action.set.low = tos >> 2;
    } else {
      const size_t size = oxm_bytes(key_fields()[row.field]);
      if (!has_size(io, size == 6 ? 16 : 8)) return true;
      action.set.low = io.number(size);
      io.pad(io.left());
    }
    return true;
  }
  return false;
}

/// The number of 1.0 and the fields of an action; nothing if 1.0 has no such action.
std::optional<Action> as_action_1_0(const Action& action, const KeyMatch* match) {
  if (action.type != ActionType::kSetField) {
    const Definition& row = action_types()[static_cast<size_t>(action.type)];
    if (row.number_1_0 == kAbsent && action.type != ActionType::kSetTransport) return std::nullopt;
    // Experimenters' actions have one form in both versions; what else is unknown has none here.
    if (action.type == ActionType::kUnknown &&
        (action.as_written.size() < 2 || (action.as_written[0] & action.as_written[1]) != 0xff))
      return std::nullopt;
    return action;
  }
  Action as = action;
  switch (action.field) {
    case oxm::kTcpSource:
    case oxm::kUdpSource:
    case oxm::kTcpDestination:
    case oxm::kUdpDestination:
      as.type = ActionType::kSetTransport;
      as.field =
          action.field == oxm::kTcpSource || action.field == oxm::kUdpSource ? kTransportSource : kTransportDestination;
      as.value = static_cast<uint32_t>(action.set.low);
      as.set = {};
      return as;
    case oxm::kVlanVid:
    case oxm::kVlanPcp:
      // In 1.3 there must be a tag already, which 1.0 would add.
      if (match == nullptr || !requirements_met(*match, key_fields()[oxm::kVlanPcp])) return std::nullopt;
      as.type = action.field == oxm::kVlanVid ? ActionType::kSetVlanVid : ActionType::kSetVlanPcp;
      as.value = static_cast<uint32_t>(action.set.low) & 0xfff;
      as.set = {};
      return as;
    default:
      for (const SetAction10& row : set_actions_1_0())
        if (row.field == action.field) return as;
      return std::nullopt;
  }
}

void write_action_1_0(Writer& io, const Action& action) {
  if (action.type == ActionType::kUnknown) return io.bytes(action.as_written);
  io.sized(2, 8, ErrorCode::kActionBadLen, [&] {
    if (action.type == ActionType::kSetField || action.type == ActionType::kSetTransport) {
      for (const SetAction10& row : set_actions_1_0())
        if (row.field == action.field) io.u16(row.type);
    } else {
      io.u16(action_types()[static_cast<size_t>(action.type)].number_1_0);
    }
    io.length();
    switch (action.type) {
      case ActionType::kOutput:
        io.port(action.value);
        io.u16(action.number);
        break;
      case ActionType::kEnqueue:
        io.port(action.value);
        io.pad(6);
        io.u32(action.queue);
        break;
      case ActionType::kSetVlanVid:
      case ActionType::kSetTransport:
        io.u16(action.value);
        io.pad(2);
        break;
      case ActionType::kSetVlanPcp:
        io.u8(action.value);
        io.pad(3);
        break;
      case ActionType::kSetField: {
        const size_t size = action.field == oxm::kDscp ? 1 : oxm_bytes(key_fields()[action.field]);
        io.number(action.field == oxm::kDscp ? action.set.low << 2 : action.set.low, size);
        io.pad(size == 6 ? 6 : 4 - size);
        break;
      }
      default:
        io.pad(4);
        break;
    }
  });
}

}  // namespace

void read_body_1_0(Reader& io, uint16_t type, Action& action, std::span<const uint8_t> whole) {
  if (read_set_action_1_0(io, type, action)) return;
  const int row = find_number(action_types(), Version::k1_0, type);
  if (row < 0) return io.fail(ErrorCode::kActionBadType);
  action.type = static_cast<ActionType>(row);
  switch (action.type) {
    case ActionType::kOutput:
      if (!has_size(io, 8)) return;
      io.port(action.value);
      io.u16(action.number);
      if (!is_output_port(action.value)) io.object(ErrorCode::kActionBadOutPort);
      break;
    case ActionType::kEnqueue:
      if (!has_size(io, 16)) return;
      io.port(action.value);
      io.pad(6);
      io.u32(action.queue);
      if (!is_output_port(action.value)) io.object(ErrorCode::kActionBadOutPort);
      break;
    case ActionType::kSetVlanVid:
      if (!has_size(io, 8)) return;
      io.u16(action.value);
      io.pad(2);
      if (action.value > 0xfff) io.object(ErrorCode::kActionBadArgument);
      break;
    case ActionType::kSetVlanPcp:
      if (!has_size(io, 8)) return;
      io.u8(action.value);
      io.pad(3);
      if (action.value > 7) io.object(ErrorCode::kActionBadArgument);
      break;
    case ActionType::kPopVlan:
      if (!has_size(io, 8)) return;
      io.pad(4);
      break;
    default:  // an experimenter's
      if (whole.size() < 8) return io.fail(ErrorCode::kActionBadLen);
      io.object(ErrorCode::kActionBadExperimenter);
      if (!io.ok()) return;
      action.as_written.assign(whole.begin(), whole.end());
      io.pad(io.left());
      break;
  }
}

void write_actions_1_0(Writer& io, const std::vector<Action>& actions, const KeyMatch* match) {
  const bool no_tag = match != nullptr && get_key_field(match->mask, key_fields()[oxm::kVlanVid]).low == 0x1fff &&
                      get_key_field(match->value, key_fields()[oxm::kVlanVid]).low == 0;
  for (size_t i = 0; i < actions.size(); ++i) {
    const Action* const next = i + 1 < actions.size() ? &actions[i + 1] : nullptr;
    Action as = actions[i];
    if (as.type == ActionType::kSetQueue && next != nullptr && next->type == ActionType::kOutput) {
      as.type = ActionType::kEnqueue;
      as.queue = as.value;
      as.value = next->value;
      ++i;
    } else if (as.type == ActionType::kPushVlan && as.number == kCustomerTag && no_tag && next != nullptr &&
               next->type == ActionType::kSetField && next->field == oxm::kVlanVid) {
      // Setting a VLAN adds the tag in 1.0.
      as.type = ActionType::kSetVlanVid;
      as.number = 0;
      as.value = static_cast<uint32_t>(next->set.low) & 0xfff;
      ++i;
    } else if (const auto action = as_action_1_0(as, match)) {
      as = *action;
    } else {
      io.inexact();
      continue;
    }
    const bool to_port = as.type == ActionType::kOutput || as.type == ActionType::kEnqueue;
    if (to_port && as.value >= port::kMax10 && as.value < (0xffff0000u | port::kMax10)) {
      io.inexact();
      continue;
    }
    write_action_1_0(io, as);
  }
}

/// Actions of 1.0 that 1.3 has in another form, as it has them.
void write_from_1_0(Writer& io, const Action& action, const KeyMatch* match, bool& tagged) {
  switch (action.type) {
    case ActionType::kEnqueue: {
      Action queue, output;
      queue.type = ActionType::kSetQueue;
      queue.value = action.queue;
      output.value = action.value;
      write_action_1_3(io, queue);
      return write_action_1_3(io, output);
    }
    case ActionType::kSetVlanVid:
    case ActionType::kSetVlanPcp: {
      if (!tagged) {
        // Right for packets without a tag, which the match may leave open.
        const KeyField& vid = key_fields()[oxm::kVlanVid];
        if (match == nullptr || get_key_field(match->mask, vid).low != 0x1fff) io.inexact();
        Action push;
        push.type = ActionType::kPushVlan;
        push.number = kCustomerTag;
        write_action_1_3(io, push);
        tagged = true;
      }
      const bool id = action.type == ActionType::kSetVlanVid;
      return write_action_1_3(
          io, set_field(id ? oxm::kVlanVid : oxm::kVlanPcp, id ? kTagPresent10 | action.value : action.value));
    }
    default: {  // ports
      const bool source = action.field == kTransportSource;
      const KeyField& tcp = key_fields()[source ? oxm::kTcpSource : oxm::kTcpDestination];
      const KeyField& udp = key_fields()[source ? oxm::kUdpSource : oxm::kUdpDestination];
      if (match != nullptr && requirements_met(*match, tcp))
        return write_action_1_3(io, set_field(tcp.oxm, action.value));
      if (match != nullptr && requirements_met(*match, udp))
        return write_action_1_3(io, set_field(udp.oxm, action.value));
      io.inexact();
    }
  }
}

}  // namespace headrace::openflow
