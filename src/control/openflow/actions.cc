#include "control/openflow/actions.hh"

#include <span>

#include "control/openflow/action_forms.hh"

namespace headrace::openflow {

namespace {

constexpr uint16_t kServiceTag = 0x88a8, kMpls = 0x8847, kMplsMulticast = 0x8848, kPbb = 0x88e7;

/// BAD_MATCH of a field, as set-field has it.
ErrorCode as_set_error(ErrorCode error) {
  switch (error) {
    case ErrorCode::kMatchBadLen:
      return ErrorCode::kActionBadSetLen;
    case ErrorCode::kMatchBadField:
      return ErrorCode::kActionBadSetType;
    default:
      return ErrorCode::kActionBadSetArgument;
  }
}

ErrorCode read_set_field(std::span<const uint8_t> bytes, Action& action) {
  OxmField read;
  if (const ErrorCode error = read_oxm(bytes, read); error != ErrorCode::kNone) return as_set_error(error);
  // The fewest bytes that are a multiple of 8, with the 4 of the action's header.
  if ((oxm_size(bytes) + 4 + 7) / 8 * 8 != bytes.size() + 4) return ErrorCode::kActionBadSetLen;
  if (read.has_mask) return ErrorCode::kActionBadSetType;
  if (read.field->oxm == oxm::kInPort || read.field->oxm == oxm::kInPhyPort || read.field->oxm == oxm::kMetadata)
    return ErrorCode::kActionBadSetType;
  action.field = read.field->oxm;
  action.set = read.value;
  return ErrorCode::kNone;
}

/// Ethernet types that push actions may write.
bool is_pushed(ActionType type, uint16_t ether_type) {
  switch (type) {
    case ActionType::kPushVlan:
      return ether_type == kCustomerTag || ether_type == kServiceTag;
    case ActionType::kPushMpls:
      return ether_type == kMpls || ether_type == kMplsMulticast;
    case ActionType::kPushPbb:
      return ether_type == kPbb;
    default:
      return true;
  }
}

/// What follows type and length in 1.3; `whole` is the action.
void read_body_1_3(Reader& io, Action& action, std::span<const uint8_t> whole) {
  switch (action.type) {
    case ActionType::kOutput:
      if (!has_size(io, 16)) return;
      io.u32(action.value);
      io.u16(action.number);
      io.pad(6);
      if (!is_output_port(action.value)) io.object(ErrorCode::kActionBadOutPort);
      return;
    case ActionType::kSetField:
      if (const ErrorCode error = read_set_field(whole.subspan(4), action); error != ErrorCode::kNone) {
        io.object(error);
        action.type = ActionType::kUnknown;
      }
      break;
    case ActionType::kUnknown:
      if (whole.size() < 8) return io.fail(ErrorCode::kActionBadLen);
      io.object(ErrorCode::kActionBadExperimenter);
      break;
    case ActionType::kSetMplsTtl:
    case ActionType::kSetNwTtl:
      if (!has_size(io, 8)) return;
      io.u8(action.value);
      io.pad(3);
      return;
    case ActionType::kPushVlan:
    case ActionType::kPushMpls:
    case ActionType::kPushPbb:
    case ActionType::kPopMpls:
      if (!has_size(io, 8)) return;
      io.u16(action.number);
      io.pad(2);
      if (!is_pushed(action.type, action.number)) io.object(ErrorCode::kActionBadArgument);
      return;
    case ActionType::kGroup:
    case ActionType::kSetQueue:
      if (!has_size(io, 8)) return;
      io.u32(action.value);
      if (action.type == ActionType::kGroup && action.value > group::kMax) io.object(ErrorCode::kActionBadOutGroup);
      return;
    default:
      if (!has_size(io, 8)) return;
      io.pad(4);
      return;
  }
  // Set-field, or what is only to be shown.
  if (!io.ok()) return;
  if (action.type == ActionType::kUnknown) action.as_written.assign(whole.begin(), whole.end());
  io.pad(io.left());
}

bool is_of_1_0(ActionType type) { return type > ActionType::kUnknown; }

}  // namespace

void write_action_1_3(Writer& io, const Action& action) {
  if (action.type == ActionType::kUnknown) return io.bytes(action.as_written);
  io.sized(2, 8, ErrorCode::kActionBadLen, [&] {
    const size_t start = io.at();
    io.u16(action_types()[static_cast<size_t>(action.type)].number_1_3);
    io.length();
    switch (action.type) {
      case ActionType::kOutput:
        io.u32(action.value);
        io.u16(action.number);
        io.pad(6);
        break;
      case ActionType::kSetField: {
        write_oxm(io, key_fields()[action.field], action.set, nullptr);
        const size_t size = io.at() - start;
        io.pad((size + 7) / 8 * 8 - size);
        break;
      }
      case ActionType::kSetMplsTtl:
      case ActionType::kSetNwTtl:
        io.u8(action.value);
        io.pad(3);
        break;
      case ActionType::kGroup:
      case ActionType::kSetQueue:
        io.u32(action.value);
        break;
      default:
        io.u16(action.number);
        io.pad(2);
        break;
    }
  });
}

void actions(Reader& io, std::vector<Action>& actions) {
  io.list(actions, [&](Action& action) {
    const size_t size = io.peek_u16(2);
    if (io.left() < 8 || size < 8) return io.fail(ErrorCode::kActionBadLen);
    io.sized(2, 8, ErrorCode::kActionBadLen, [&] {
      Reader whole = io;
      const auto bytes = whole.take(io.left());
      uint16_t type = 0;
      io.u16(type);
      io.length();
      if (io.is_1_0()) return read_body_1_0(io, type, action, bytes);
      const int row = find_number(action_types(), Version::k1_3, type);
      if (row < 0) return io.fail(ErrorCode::kActionBadType);
      action.type = static_cast<ActionType>(row);
      read_body_1_3(io, action, bytes);
    });
  });
}

void actions(Writer& io, const std::vector<Action>& actions, const KeyMatch* match) {
  if (io.is_1_0()) return write_actions_1_0(io, actions, match);
  bool tagged = match != nullptr && requirements_met(*match, key_fields()[oxm::kVlanPcp]);
  for (const Action& action : actions) {
    if (is_of_1_0(action.type)) {
      write_from_1_0(io, action, match, tagged);
    } else {
      write_action_1_3(io, action);
      if (action.type == ActionType::kPushVlan) tagged = true;
      if (action.type == ActionType::kPopVlan) tagged = false;
    }
  }
}

int place_in_set(ActionType type) {
  switch (type) {
    case ActionType::kCopyTtlIn:
      return 0;
    case ActionType::kPopVlan:
    case ActionType::kPopMpls:
    case ActionType::kPopPbb:
      return 1;
    case ActionType::kPushMpls:
      return 2;
    case ActionType::kPushPbb:
      return 3;
    case ActionType::kPushVlan:
      return 4;
    case ActionType::kCopyTtlOut:
      return 5;
    case ActionType::kDecMplsTtl:
    case ActionType::kDecNwTtl:
      return 6;
    case ActionType::kGroup:
      return 8;
    case ActionType::kOutput:
      return 9;
    default:
      return 7;
  }
}

}  // namespace headrace::openflow
