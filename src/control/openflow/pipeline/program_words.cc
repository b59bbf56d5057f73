#include "control/openflow/pipeline/program_words.hh"

#include <algorithm>
#include <array>
#include <utility>

#include "tables/key/packet_key_view.hh"
#include "tables/openflow/program_view.hh"

namespace headrace::openflow {

namespace {

constexpr uint64_t kTagPresent = 0x1000;

uint32_t first_word(Op op, uint32_t rest = 0) { return static_cast<uint32_t>(op) | rest; }

void add_set_field(std::vector<uint32_t>& words, const Action& action) {
  const KeyField& field = key_fields()[action.field];
  KeyValue set = action.set;
  // Only packets with a tag are changed, and they keep it.
  if (field.oxm == oxm::kVlanVid) set.low |= kTagPresent;
  std::array<uint32_t, key_word::kCount> value{}, mask{};
  set_key_field(value, field, set);
  set_key_field(mask, field, key_field_ones(field));
  words.push_back(first_word(Op::kSetField, uint32_t{field.oxm} << 8 | field.word() << 16 | field.words() << 24));
  for (uint32_t i = field.word(); i < field.word() + field.words(); ++i) {
    words.push_back(value[i]);
    words.push_back(mask[i]);
  }
}

void add_op(std::vector<uint32_t>& words, const Action& action, const ProgramNames& names) {
  const uint32_t high = uint32_t{action.number} << 16;
  const auto add = [&](Op op, uint32_t rest = 0) { words.push_back(first_word(op, rest)); };
  switch (action.type) {
    case ActionType::kOutput:
      add(Op::kOutput, high);
      words.push_back(action.value);
      break;
    case ActionType::kGroup:
      add(Op::kGroup, names.slot_of_group(action.value) << 8);
      break;
    case ActionType::kSetField:
      add_set_field(words, action);
      break;
    case ActionType::kSetNwTtl:
      add(Op::kSetNwTtl, (action.value & 0xff) << 8);
      break;
    case ActionType::kDecNwTtl:
      add(Op::kDecNwTtl);
      break;
    case ActionType::kPushVlan:
      add(Op::kPushVlan, high);
      break;
    case ActionType::kPopVlan:
      add(Op::kPopVlan);
      break;
    case ActionType::kSetVlanVid:
      add(Op::kSetVlanVid, (action.value & 0xfff) << 16);
      break;
    case ActionType::kSetVlanPcp:
      add(Op::kSetVlanPcp, (action.value & 7) << 16);
      break;
    case ActionType::kSetTransport:
      add(Op::kSetPort, (action.field == kTransportDestination ? 1u << 8 : 0) | action.value << 16);
      break;
    case ActionType::kPushMpls:
      add(Op::kPushMpls, high);
      break;
    case ActionType::kPopMpls:
      add(Op::kPopMpls, high);
      break;
    case ActionType::kSetMplsTtl:
      add(Op::kSetMplsTtl, (action.value & 0xff) << 8);
      break;
    case ActionType::kDecMplsTtl:
      add(Op::kDecMplsTtl);
      break;
    case ActionType::kPushPbb:
      add(Op::kPushPbb, high);
      break;
    case ActionType::kPopPbb:
      add(Op::kPopPbb);
      break;
    case ActionType::kCopyTtlOut:
      add(Op::kCopyTtlOut);
      break;
    case ActionType::kCopyTtlIn:
      add(Op::kCopyTtlIn);
      break;
    case ActionType::kSetQueue:
    case ActionType::kEnqueue:
    case ActionType::kUnknown:
      break;  // check_instructions() has refused them
  }
}

bool is_simple_port(uint32_t port) { return port <= port::kMax || port == port::kLocal || port == port::kInPort; }

bool leaves_packet(const Action& action) {
  return action.type == ActionType::kOutput || action.type == ActionType::kGroup;
}

/// Whether a device can do an action by itself.
bool is_simple(const Action& action) {
  switch (action.type) {
    case ActionType::kOutput:
      return is_simple_port(action.value);
    case ActionType::kSetField:
      return stays_on_device(action.field);
    case ActionType::kGroup:
    case ActionType::kSetNwTtl:
    case ActionType::kDecNwTtl:
    case ActionType::kPushVlan:
    case ActionType::kPopVlan:
    case ActionType::kSetVlanVid:
    case ActionType::kSetVlanPcp:
    case ActionType::kSetTransport:
      return true;
    default:
      return false;
  }
}

/// What a router does to a frame: see program_flag::kRoutes.
bool routes(const std::vector<Action>& actions) {
  int decrements = 0;
  return std::all_of(actions.begin(), actions.end() - 1,
                     [&](const Action& action) {
                       if (action.type == ActionType::kDecNwTtl) return ++decrements == 1;
                       return action.type == ActionType::kSetField &&
                              (action.field == oxm::kEtherDst || action.field == oxm::kEtherSrc);
                     }) &&
         actions.back().type == ActionType::kOutput;
}

/// A program that is being made.
struct Draft {
  uint32_t flags = 0;
  uint32_t meter = 0;
  uint32_t port = 0;
  std::array<uint32_t, program_word::kMetadataWords> metadata{};
  std::vector<uint32_t> apply, write;

  /// Adds operations; what a device cannot do sets kNeedsHost. \param last nothing happens to the packet behind them
  void add(std::vector<uint32_t>& ops, const std::vector<Action>& actions, bool last, const ProgramNames& names) {
    for (size_t i = 0; i < actions.size(); ++i) {
      const Action& action = actions[i];
      add_op(ops, action, names);
      if (!is_simple(action) || (leaves_packet(action) && !(last && i + 1 == actions.size())))
        flags |= program_flag::kNeedsHost;
      if (action.type == ActionType::kGroup) flags |= program_flag::kHasGroup;
    }
  }

  std::optional<std::vector<uint32_t>> words() const {
    if (apply.size() > 0xffff || write.size() > 0xffff) return std::nullopt;
    std::vector<uint32_t> all{flags, meter, static_cast<uint32_t>(write.size() << 16 | apply.size()), port};
    if ((flags & program_flag::kWritesMetadata) != 0) all.insert(all.end(), metadata.begin(), metadata.end());
    all.insert(all.end(), apply.begin(), apply.end());
    all.insert(all.end(), write.begin(), write.end());
    return all;
  }
};

}  // namespace

std::vector<Action> action_set(const std::vector<Action>& actions) {
  std::vector<Action> set;
  bool has_group = false;
  for (const Action& action : actions) {
    has_group |= action.type == ActionType::kGroup;
    const auto same = std::find_if(set.begin(), set.end(), [&](const Action& other) {
      return other.type == action.type && other.field == action.field;
    });
    if (same != set.end()) set.erase(same);
    set.push_back(action);
  }
  if (has_group) std::erase_if(set, [](const Action& action) { return action.type == ActionType::kOutput; });
  std::stable_sort(set.begin(), set.end(),
                   [](const Action& a, const Action& b) { return place_in_set(a.type) < place_in_set(b.type); });
  return set;
}

std::optional<std::vector<uint32_t>> entry_program(const std::vector<Instruction>& instructions,
                                                   const ProgramNames& names, uint32_t flags) {
  Draft draft;
  draft.flags = flags;
  const std::vector<Action>* apply = nullptr;
  std::vector<Action> write;
  bool more = false;  // something follows apply-actions
  for (const Instruction& instruction : instructions) {
    switch (instruction.type) {
      case InstructionType::kGotoTable:
        draft.flags |= program_flag::kGoto | uint32_t{instruction.table} << 24;
        more = true;
        break;
      case InstructionType::kWriteMetadata: {
        draft.flags |= program_flag::kWritesMetadata;
        const uint64_t mask = instruction.metadata_mask, value = instruction.metadata & mask;
        draft.metadata = {static_cast<uint32_t>(value >> 32), static_cast<uint32_t>(value),
                          static_cast<uint32_t>(mask >> 32), static_cast<uint32_t>(mask)};
        break;
      }
      case InstructionType::kWriteActions:
        write = action_set(instruction.actions);
        more |= !write.empty();
        break;
      case InstructionType::kApplyActions:
        apply = &instruction.actions;
        break;
      case InstructionType::kClearActions:
        draft.flags |= program_flag::kClears;
        break;
      case InstructionType::kMeter:
        draft.meter = names.place_of_meter(instruction.meter) + 1;
        draft.flags |= program_flag::kNeedsHost;
        break;
      case InstructionType::kUnknown:
        break;  // check_instructions() has refused it
    }
  }
  if (apply != nullptr) {
    draft.add(draft.apply, *apply, !more, names);
    constexpr uint32_t kMore = program_flag::kNeedsHost | program_flag::kWritesMetadata | program_flag::kClears;
    if (!apply->empty() && !more && (draft.flags & kMore) == 0 && routes(*apply)) {
      draft.flags |= apply->size() == 1 ? program_flag::kOnlyOutput : program_flag::kRoutes;
      draft.port = apply->back().value;
    }
  }
  draft.add(draft.write, write, true, names);
  return draft.words();
}

std::optional<std::vector<uint32_t>> bucket_program(const std::vector<Action>& actions, const ProgramNames& names) {
  Draft draft;
  const std::vector<Action> set = action_set(actions);
  draft.add(draft.apply, set, true, names);
  if (set.size() == 1 && set.front().type == ActionType::kOutput && (draft.flags & program_flag::kNeedsHost) == 0) {
    draft.flags |= program_flag::kOnlyOutput;
    draft.port = set.front().value;
  }
  return draft.words();
}

}  // namespace headrace::openflow
