#include "control/openflow/switch/flow_text.hh"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "control/openflow/action_forms.hh"
#include "headrace/text.hh"
#include "tables/files/route_text.hh"
#include "tables/key/key_fields.hh"

namespace headrace::openflow {

namespace {

using route_text::shown;

struct PortName {
  const char* name;
  uint32_t number;
};
constexpr PortName kPortNames[] = {
    {"IN_PORT", port::kInPort}, {"TABLE", port::kTable},           {"NORMAL", port::kNormal}, {"FLOOD", port::kFlood},
    {"ALL", port::kAll},        {"CONTROLLER", port::kController}, {"LOCAL", port::kLocal},
};

struct FlagName {
  const char* name;
  uint64_t flag;
};
constexpr FlagName kFlagNames[] = {
    {"send_flow_rem", flow_flag::kSendFlowRemoved}, {"check_overlap", flow_flag::kCheckOverlap},
    {"reset_counts", flow_flag::kResetCounts},      {"no_packet_counts", flow_flag::kNoPacketCounts},
    {"no_byte_counts", flow_flag::kNoByteCounts},
};

/// Actions without an argument, and those with one number.
enum class Argument : uint8_t { kNone, kValue, kNumber };
struct PlainAction {
  const char* name;
  ActionType type;
  Argument argument;  // where a number goes: Action::value or Action::number
  uint64_t most;
  bool hex;  // when it is printed
};
constexpr PlainAction kPlainActions[] = {
    {"group", ActionType::kGroup, Argument::kValue, group::kMax, false},
    {"set_queue", ActionType::kSetQueue, Argument::kValue, UINT32_MAX, false},
    {"copy_ttl_out", ActionType::kCopyTtlOut, Argument::kNone, 0, false},
    {"copy_ttl_in", ActionType::kCopyTtlIn, Argument::kNone, 0, false},
    {"set_mpls_ttl", ActionType::kSetMplsTtl, Argument::kValue, 255, false},
    {"dec_mpls_ttl", ActionType::kDecMplsTtl, Argument::kNone, 0, false},
    {"push_vlan", ActionType::kPushVlan, Argument::kNumber, UINT16_MAX, true},
    {"pop_vlan", ActionType::kPopVlan, Argument::kNone, 0, false},
    {"strip_vlan", ActionType::kPopVlan, Argument::kNone, 0, false},
    {"push_mpls", ActionType::kPushMpls, Argument::kNumber, UINT16_MAX, true},
    {"pop_mpls", ActionType::kPopMpls, Argument::kNumber, UINT16_MAX, true},
    {"push_pbb", ActionType::kPushPbb, Argument::kNumber, UINT16_MAX, true},
    {"pop_pbb", ActionType::kPopPbb, Argument::kNone, 0, false},
    {"mod_nw_ttl", ActionType::kSetNwTtl, Argument::kValue, 255, false},
    {"dec_ttl", ActionType::kDecNwTtl, Argument::kNone, 0, false},
    {"mod_vlan_vid", ActionType::kSetVlanVid, Argument::kValue, 4095, false},
    {"mod_vlan_pcp", ActionType::kSetVlanPcp, Argument::kValue, 7, false},
};

/// Actions that set a field, by names of their own.
struct SetAction {
  const char* name;
  const char* field;
};
constexpr SetAction kSetActions[] = {
    {"mod_dl_src", "eth_src"}, {"mod_dl_dst", "eth_dst"}, {"mod_nw_src", "ip_src"},
    {"mod_nw_dst", "ip_dst"},  {"mod_nw_ecn", "nw_ecn"},
};

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }
bool same_name(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](char x, char y) { return lower(x) == lower(y); });
}

std::optional<uint64_t> parse_number(std::string_view text, uint64_t most) {
  text = trimmed(text);
  if (text.starts_with("0x")) return whole_number<uint64_t>(text.substr(2), most, 16);
  return whole_number<uint64_t>(text, most);
}

std::optional<uint32_t> parse_port(std::string_view text) {
  for (const PortName& name : kPortNames)
    if (same_name(text, name.name)) return name.number;
  const auto number = parse_number(text, port::kMax);
  return number && *number != 0 ? std::optional<uint32_t>(static_cast<uint32_t>(*number)) : std::nullopt;
}

/// Takes the text up to the next separator that no parentheses enclose.
std::string_view take_part(std::string_view& text, std::string_view separators) {
  size_t depth = 0, end = 0;
  for (; end < text.size(); ++end) {
    if (text[end] == '(') ++depth;
    if (text[end] == ')' && depth > 0) --depth;
    if (depth == 0 && separators.find(text[end]) != std::string_view::npos) break;
  }
  const std::string_view part = trimmed(text.substr(0, end));
  text = end == text.size() ? std::string_view() : text.substr(end + 1);
  return part;
}

/// Reads actions and instructions.
class ActionReader {
 public:
  explicit ActionReader(FlowMod& mod) : mod_(mod) {}

  /// What is wrong, or an empty text.
  std::string read(std::string_view text) {
    if (std::string bad = read_list(text, apply_, true); !bad.empty()) return bad;
    if (!apply_.empty()) instruction(InstructionType::kApplyActions).actions = std::move(apply_);
    // As messages have them (ONF TS-023, section 7.2.4): the order does not matter.
    std::stable_sort(mod_.instructions.begin(), mod_.instructions.end(),
                     [](const Instruction& a, const Instruction& b) { return place(a.type) < place(b.type); });
    return {};
  }

 private:
  static int place(InstructionType type) {
    switch (type) {
      case InstructionType::kMeter:
        return 0;
      case InstructionType::kApplyActions:
        return 1;
      case InstructionType::kClearActions:
        return 2;
      case InstructionType::kWriteActions:
        return 3;
      case InstructionType::kWriteMetadata:
        return 4;
      default:
        return 5;
    }
  }

  Instruction& instruction(InstructionType type) {
    for (Instruction& one : mod_.instructions)
      if (one.type == type) return one;
    mod_.instructions.emplace_back().type = type;
    return mod_.instructions.back();
  }

  std::string read_list(std::string_view text, std::vector<Action>& actions, bool instructions) {
    while (!text.empty()) {
      const std::string_view part = take_part(text, ",");
      if (part.empty()) continue;
      std::string_view name = part, argument;
      if (const size_t at = part.find_first_of(":("); at != std::string_view::npos) {
        name = trimmed(part.substr(0, at));
        argument = trimmed(part.substr(at + 1));
        if (part[at] == '(') {
          if (!argument.ends_with(')')) return fmt::format("'{}': expected a closing parenthesis", shown(part));
          argument.remove_suffix(1);
        }
      }
      std::string bad;
      if (instructions && read_instruction(name, argument, bad)) {
        if (!bad.empty()) return bad;
        continue;
      }
      Action action;
      if (bad = read_action(part, name, argument, action); !bad.empty()) return bad;
      if (name != "drop") actions.push_back(std::move(action));
    }
    return {};
  }

  /// False: it is no instruction.
  bool read_instruction(std::string_view name, std::string_view argument, std::string& bad) {
    if (name == "goto_table" || name == "resubmit") {
      const auto table = parse_number(argument, kMaxTable);
      if (name == "resubmit" || !table)
        bad = fmt::format("'{}:{}': expected goto_table and a table from 0 to {}", name, shown(argument), kMaxTable);
      else
        instruction(InstructionType::kGotoTable).table = static_cast<uint8_t>(*table);
    } else if (name == "meter") {
      const auto meter = parse_number(argument, meter::kMax);
      if (!meter)
        bad = fmt::format("bad meter '{}'", shown(argument));
      else
        instruction(InstructionType::kMeter).meter = static_cast<uint32_t>(*meter);
    } else if (name == "write_metadata") {
      const size_t slash = argument.find('/');
      const auto value = parse_number(argument.substr(0, slash), UINT64_MAX);
      const auto mask = slash == std::string_view::npos ? std::optional<uint64_t>(UINT64_MAX)
                                                        : parse_number(argument.substr(slash + 1), UINT64_MAX);
      if (!value || !mask) {
        bad = fmt::format("bad metadata '{}'", shown(argument));
      } else {
        Instruction& metadata = instruction(InstructionType::kWriteMetadata);
        metadata.metadata = *value;
        metadata.metadata_mask = *mask;
      }
    } else if (name == "clear_actions") {
      (void)instruction(InstructionType::kClearActions);
    } else if (name == "write_actions") {
      std::vector<Action> actions;
      if (bad = read_list(argument, actions, false); bad.empty())
        instruction(InstructionType::kWriteActions).actions = std::move(actions);
    } else if (name == "apply_actions") {
      bad = read_list(argument, apply_, false);
    } else {
      return false;
    }
    return true;
  }

  std::string read_action(std::string_view part, std::string_view name, std::string_view argument, Action& action) {
    if (name == "drop") return {};
    if (same_name(name, "controller")) return read_controller(argument, action);
    if (name == "output") return read_output(argument, action);
    for (const PlainAction& plain : kPlainActions)
      if (name == plain.name) return read_plain(plain, argument, action);
    for (const SetAction& set : kSetActions)
      if (name == set.name) return read_set(set.field, argument, action);
    if (name == "mod_nw_tos") {
      const auto tos = parse_number(argument, 255);
      if (!tos || (*tos & 3) != 0) return fmt::format("bad value '{}' for mod_nw_tos", shown(argument));
      return read_set("ip_dscp", fmt::format("{}", *tos >> 2), action);
    }
    if (name == "mod_tp_src" || name == "mod_tp_dst") {
      const auto number = parse_number(argument, UINT16_MAX);
      if (!number) return fmt::format("bad port '{}'", shown(argument));
      action.type = ActionType::kSetTransport;
      action.field = name == "mod_tp_src" ? kTransportSource : kTransportDestination;
      action.value = static_cast<uint32_t>(*number);
      return {};
    }
    if (name == "set_field") {
      const size_t arrow = argument.find("->");
      if (arrow == std::string_view::npos) return fmt::format("'{}': expected set_field:VALUE->FIELD", shown(part));
      return read_set(trimmed(argument.substr(arrow + 2)), trimmed(argument.substr(0, arrow)), action);
    }
    if (argument.empty()) {
      if (const auto number = parse_port(name)) {
        action.value = *number;
        return {};
      }
    }
    return fmt::format("unknown action '{}'", shown(part));
  }

  static std::string read_output(std::string_view argument, Action& action) {
    const auto number = parse_port(argument);
    if (!number) return fmt::format("bad port '{}'", shown(argument));
    action.value = *number;
    if (action.value == port::kController) action.number = kWholePacket;
    return {};
  }

  static std::string read_controller(std::string_view argument, Action& action) {
    action.value = port::kController;
    if (argument.starts_with("max_len=")) argument.remove_prefix(8);
    const auto bytes = argument.empty() ? std::optional<uint64_t>(kWholePacket) : parse_number(argument, UINT16_MAX);
    if (!bytes) return fmt::format("'{}': expected the most bytes for the controller", shown(argument));
    action.number = static_cast<uint16_t>(*bytes);
    return {};
  }

  static std::string read_plain(const PlainAction& plain, std::string_view argument, Action& action) {
    action.type = plain.type;
    if (plain.argument == Argument::kNone)
      return argument.empty() ? std::string() : fmt::format("{}: '{}' is too much", plain.name, shown(argument));
    const auto number = parse_number(argument, plain.most);
    if (!number) return fmt::format("bad value '{}' for {}", shown(argument), plain.name);
    if (plain.argument == Argument::kValue)
      action.value = static_cast<uint32_t>(*number);
    else
      action.number = static_cast<uint16_t>(*number);
    return {};
  }

  static std::string read_set(std::string_view name, std::string_view argument, Action& action) {
    const KeyField* const field = find_key_field(name);
    if (field == nullptr) return fmt::format("unknown field '{}'", shown(name));
    const auto value = parse_key_value(*field, argument);
    if (!value) return fmt::format("bad value '{}' for {}", shown(argument), name);
    action.type = ActionType::kSetField;
    action.field = field->oxm;
    action.set = *value;
    return {};
  }

  FlowMod& mod_;
  std::vector<Action> apply_;
};

bool is_statistic(std::string_view name) {
  for (const std::string_view one : {"duration", "n_packets", "n_bytes", "idle_age", "hard_age"})
    if (name == one) return true;
  return false;
}

/// A word in front of the actions.
std::string read_word(std::string_view word, FlowMod& mod) {
  for (const FlagName& flag : kFlagNames)
    if (word == flag.name) {
      mod.flags |= flag.flag;
      return {};
    }
  const size_t equals = word.find('=');
  const std::string_view name = word.substr(0, equals);
  const std::string_view value = equals == std::string_view::npos ? std::string_view() : word.substr(equals + 1);
  if (is_statistic(name)) return {};
  const auto number = [&](auto& out, uint64_t most) {
    const auto parsed = parse_number(value, most);
    if (!parsed) return fmt::format("bad {} '{}'", name, shown(value));
    out = static_cast<std::decay_t<decltype(out)>>(*parsed);
    return std::string();
  };
  if (name == "table") return number(mod.table, kMaxTable);
  if (name == "priority") return number(mod.priority, UINT16_MAX);
  if (name == "cookie") return number(mod.cookie, UINT64_MAX);
  if (name == "idle_timeout") return number(mod.idle_timeout, UINT16_MAX);
  if (name == "hard_timeout") return number(mod.hard_timeout, UINT16_MAX);
  if (name == "in_port") {
    const auto port = parse_port(value);
    if (!port) return fmt::format("bad port '{}'", shown(value));
    return add_to_match(mod.match.key, fmt::format("in_port={}", *port));
  }
  return add_to_match(mod.match.key, word);
}

}  // namespace

std::string parse_flow(std::string_view text, FlowMod& mod) {
  mod = FlowMod();
  const size_t actions = text.find("actions=");
  if (actions == std::string_view::npos) return "expected MATCH actions=ACTIONS";
  const std::string_view words = text.substr(0, actions);
  for (std::string_view rest = words; !rest.empty();) {
    const std::string_view word = take_part(rest, ", \t");
    if (word.empty()) continue;
    if (std::string bad = read_word(word, mod); !bad.empty()) return bad;
  }
  if (std::string bad = check_match(mod.match.key, words); !bad.empty()) return bad;
  return ActionReader(mod).read(text.substr(actions + 8));
}

std::string read_flows(const std::string& path, std::vector<FlowLine>& flows, std::vector<std::string>& problems) {
  int line = 0;
  return read_text_lines(path, [&](std::string_view text) {
    ++line;
    const std::string where = fmt::format("{}:{}", path, line);
    const auto bad = [&](std::string_view reason) { problems.push_back(fmt::format("{}: {}", where, reason)); };
    if (text.size() > kLongestTextLine) return bad("line is too long");
    text = trimmed(text.substr(0, text.find('#')));
    if (text.empty()) return;
    FlowMod mod;
    if (const std::string reason = parse_flow(text, mod); !reason.empty()) return bad(reason);
    flows.push_back({std::move(mod), where});
  });
}

std::string unparse_port(uint32_t port) {
  for (const PortName& name : kPortNames)
    if (name.number == port) return name.name;
  return port == port::kAny ? "ANY" : fmt::format("{}", port);
}

namespace {

std::string unparse_action(const Action& action) {
  switch (action.type) {
    case ActionType::kOutput:
      if (action.value == port::kController) return fmt::format("CONTROLLER:{}", action.number);
      return action.value <= port::kMax ? fmt::format("output:{}", action.value) : unparse_port(action.value);
    case ActionType::kSetField: {
      const KeyField& field = key_fields()[action.field];
      KeyValue set = action.set;
      if (field.oxm == oxm::kVlanVid) set.low |= 0x1000;
      return fmt::format("set_field:{}->{}", unparse_key_value(field, set), field.name);
    }
    case ActionType::kSetTransport:
      return fmt::format("mod_tp_{}:{}", action.field == kTransportSource ? "src" : "dst", action.value);
    default:
      break;
  }
  for (const PlainAction& plain : kPlainActions) {
    if (plain.type != action.type) continue;
    if (plain.argument == Argument::kNone) return plain.name;
    const uint32_t number = plain.argument == Argument::kValue ? action.value : action.number;
    return plain.hex ? fmt::format("{}:0x{:04x}", plain.name, number) : fmt::format("{}:{}", plain.name, number);
  }
  return "unknown";
}

}  // namespace

std::string unparse_actions(const std::vector<Action>& actions) {
  std::string text;
  for (const Action& action : actions) text += (text.empty() ? "" : ",") + unparse_action(action);
  return text;
}

std::string unparse_instructions(const std::vector<Instruction>& instructions) {
  std::string text;
  const auto add = [&text](const std::string& part) {
    if (!part.empty()) text += (text.empty() ? "" : ",") + part;
  };
  for (const Instruction& one : instructions) {
    switch (one.type) {
      case InstructionType::kGotoTable:
        add(fmt::format("goto_table:{}", one.table));
        break;
      case InstructionType::kMeter:
        add(fmt::format("meter:{}", one.meter));
        break;
      case InstructionType::kWriteMetadata:
        add(one.metadata_mask == UINT64_MAX
                ? fmt::format("write_metadata:{:#x}", one.metadata)
                : fmt::format("write_metadata:{:#x}/{:#x}", one.metadata, one.metadata_mask));
        break;
      case InstructionType::kWriteActions:
        add(fmt::format("write_actions({})", unparse_actions(one.actions)));
        break;
      case InstructionType::kApplyActions:
        add(unparse_actions(one.actions));
        break;
      case InstructionType::kClearActions:
        add("clear_actions");
        break;
      case InstructionType::kUnknown:
        break;
    }
  }
  return text.empty() ? "drop" : text;
}

std::string unparse_flow(const FlowStats& flow) {
  std::string text = fmt::format("cookie={:#x}, duration={}.{:03}s, table={}, n_packets={}, n_bytes={}, ", flow.cookie,
                                 flow.duration_s, flow.duration_ns / 1'000'000, flow.table, flow.packets, flow.bytes);
  if (flow.idle_timeout != 0) text += fmt::format("idle_timeout={}, ", flow.idle_timeout);
  if (flow.hard_timeout != 0) text += fmt::format("hard_timeout={}, ", flow.hard_timeout);
  for (const FlagName& flag : kFlagNames)
    if ((flow.flags & flag.flag) != 0) text += fmt::format("{} ", flag.name);
  text += fmt::format("priority={}", flow.priority);
  if (std::string match = unparse_match(flow.match.key); !match.empty()) {
    const std::string local = fmt::format("in_port={}", port::kLocal);
    if (const size_t at = match.find(local); at != std::string::npos) match.replace(at, local.size(), "in_port=LOCAL");
    text += "," + match;
  }
  return text + " actions=" + unparse_instructions(flow.instructions);
}

}  // namespace headrace::openflow
