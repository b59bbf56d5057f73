#include "tables/key/key_match.hh"

#include <fmt/format.h>

#include <optional>
#include <span>

#include "headrace/text.hh"
#include "tables/key/key_fields.hh"

namespace headrace {

namespace {

/// A protocol by its name.
struct ProtocolWord {
  const char* name;
  uint16_t type;
  int protocol;  // -1: any
};
constexpr ProtocolWord kProtocolWords[] = {
    {"tcp", 0x0800, 6},  {"udp", 0x0800, 17},  {"sctp", 0x0800, 132},  {"icmp", 0x0800, 1},   {"ip", 0x0800, -1},
    {"tcp6", 0x86dd, 6}, {"udp6", 0x86dd, 17}, {"sctp6", 0x86dd, 132}, {"icmp6", 0x86dd, 58}, {"ipv6", 0x86dd, -1},
    {"arp", 0x0806, -1}, {"rarp", 0x8035, -1}, {"mpls", 0x8847, -1},   {"mplsm", 0x8848, -1},
};

constexpr uint32_t kUpper = 0xffff0000, kLower = 0xffff;

/// The bits of word kTypes that are matched, as one Ethernet type and protocol.
std::optional<uint32_t> exact_type(const KeyMatch& match) {
  if ((match.mask[key_word::kTypes] & kUpper) != kUpper) return std::nullopt;
  return match.value[key_word::kTypes] >> 16;
}
std::optional<uint32_t> exact_protocol(const KeyMatch& match) {
  if ((match.mask[key_word::kTypes] & 0xff00) != 0xff00) return std::nullopt;
  return match.value[key_word::kTypes] >> 8 & 0xff;
}

/// Adds bits of a word; false if some have another value already.
bool add_bits(KeyMatch& match, uint32_t word, uint32_t value, uint32_t mask) {
  if (((match.value[word] ^ value) & match.mask[word] & mask) != 0) return false;
  match.value[word] |= value & mask;
  match.mask[word] |= mask;
  return true;
}

bool add_field(KeyMatch& match, const KeyField& field, const KeyValue& value, const KeyValue& mask) {
  std::array<uint32_t, key_word::kCount> values{}, masks{};
  set_key_field(values, field, value);
  set_key_field(masks, field, mask);
  for (uint32_t i = field.word(); i < field.word() + field.words(); ++i)
    if (!add_bits(match, i, values[i], masks[i])) return false;
  return true;
}

std::string conflict(std::string_view name) { return fmt::format("'{}' contradicts what is in front of it", name); }

/// `A-B`: the ports of one half of word kPorts.
std::string add_range(KeyMatch& match, std::string_view name, bool source, std::string_view first,
                      std::string_view last) {
  const auto low = whole_number<uint16_t>(first), high = whole_number<uint16_t>(last);
  if (!low || !high || *low > *high) return fmt::format("bad range of ports '{}-{}' for {}", first, last, name);
  const int shift = source ? 16 : 0;
  const uint32_t half = source ? kUpper : kLower;
  match.low = (match.low & ~half) | uint32_t{*low} << shift;
  match.high = (match.high & ~half) | uint32_t{*high} << shift;
  return {};
}

std::string add_number(KeyMatch& match, std::string_view name, std::string_view text, uint32_t word, int shift,
                       uint32_t ones) {
  const size_t slash = text.find('/');
  const auto number = [](std::string_view digits) {
    const bool hex = digits.starts_with("0x");
    return hex ? whole_number<uint32_t>(digits.substr(2), ~0u, 16) : whole_number<uint32_t>(digits);
  };
  const auto value = number(text.substr(0, slash));
  const auto mask = slash == std::string_view::npos ? std::optional<uint32_t>(ones) : number(text.substr(slash + 1));
  if (!value || !mask || (*value & ~ones) != 0 || (*mask & ~ones) != 0)
    return fmt::format("bad value '{}' for {}", text, name);
  if ((*value & ~*mask) != 0) return fmt::format("'{}={}' has bits that its mask leaves out", name, text);
  return add_bits(match, word, *value << shift, *mask << shift) ? std::string() : conflict(name);
}

/// Names that stand for parts of fields or for several. Nothing if `name` is none.
std::optional<std::string> add_special(KeyMatch& match, std::string_view name, std::string_view value) {
  if (name == "tp_src") return add_number(match, name, value, key_word::kPorts, 16, 0xffff);
  if (name == "tp_dst") return add_number(match, name, value, key_word::kPorts, 0, 0xffff);
  if (name == "vlan_tci") return add_number(match, name, value, key_word::kVlan, 16, 0xffff);
  if (name == "nw_tos") return add_number(match, name, value, key_word::kTypes, 0, 0xfc);
  if (name == "dl_vlan") {
    if (value == "0xffff" || value == "65535")
      return add_bits(match, key_word::kVlan, 0, 0xffff0000) ? std::string() : conflict(name);
    const auto id = whole_number<uint32_t>(value, 4095);
    if (!id) return fmt::format("bad value '{}' for {}", value, name);
    return add_bits(match, key_word::kVlan, (0x1000 | *id) << 16, 0x1fff0000) ? std::string() : conflict(name);
  }
  return std::nullopt;
}

bool has(const KeyMatch& match, const KeyField& field) { return get_key_field(match.mask, field) != KeyValue{}; }

bool satisfied(const KeyMatch& match, const KeyPrerequisite& p) {
  if (p.field == nullptr) return true;
  const KeyField& field = *find_key_field(p.field);
  const KeyValue mask = get_key_field(match.mask, field), value = get_key_field(match.value, field);
  if (p.value == 0x1000) return (mask.low & value.low & 0x1000) != 0;  // a tag of any VLAN
  if (mask != key_field_ones(field)) return false;
  return p.value == 0 || value.low == p.value || (p.other != 0 && value.low == p.other);
}

bool fits(const KeyMatch& match, const KeyField& field) {
  return satisfied(match, field.prerequisites[0]) && satisfied(match, field.prerequisites[1]);
}

}  // namespace

std::string add_to_match(KeyMatch& match, std::string_view word) {
  const size_t equals = word.find('=');
  const std::string_view name = trimmed(word.substr(0, equals));
  if (equals == std::string_view::npos) {
    for (const ProtocolWord& p : kProtocolWords) {
      if (name != p.name) continue;
      const uint32_t value = uint32_t{p.type} << 16 | (p.protocol < 0 ? 0 : static_cast<uint32_t>(p.protocol) << 8);
      return add_bits(match, key_word::kTypes, value, kUpper | (p.protocol < 0 ? 0 : 0xff00)) ? "" : conflict(name);
    }
    return fmt::format("'{}' is no field=value and no protocol", name);
  }
  const std::string_view value = trimmed(word.substr(equals + 1));
  const KeyField* const field = find_key_field(name);
  const size_t slash = value.find('/');
  if (const size_t dash = value.find('-'); dash != std::string_view::npos && slash == std::string_view::npos) {
    if (name == "tp_src" || name == "tp_dst")
      return add_range(match, name, name == "tp_src", value.substr(0, dash), value.substr(dash + 1));
    if (field != nullptr && field->bits == 16 && field->word() == key_word::kPorts && name != "arp_op")
      return add_range(match, name, field->place == 64, value.substr(0, dash), value.substr(dash + 1));
  }
  if (const auto special = add_special(match, name, value)) return *special;
  if (field == nullptr) return fmt::format("unknown field '{}'", name);
  const auto parsed = parse_key_value(*field, value.substr(0, slash));
  if (!parsed) return fmt::format("bad value '{}' for {}", value, name);
  const auto mask =
      slash == std::string_view::npos ? key_field_ones(*field) : parse_key_mask(*field, value.substr(slash + 1));
  if (!mask) return fmt::format("bad mask '{}' for {}", value.substr(slash + 1), name);
  // As ovs-ofctl does, host bits of prefixes are ignored.
  return add_field(match, *field, {parsed->high & mask->high, parsed->low & mask->low}, *mask) ? "" : conflict(name);
}

std::string check_match(const KeyMatch& match, std::string_view text) {
  for (uint32_t word = 0; word < key_word::kCount; ++word) {
    uint32_t left = match.mask[word];
    if (word == key_word::kPorts)
      left |= (match.low >> 16 != 0 || match.high >> 16 != 0xffff ? kUpper : 0) |
              ((match.low & kLower) != 0 || (match.high & kLower) != kLower ? kLower : 0);
    // Ports of any protocol, as ClassBench's rules have them.
    if (word == key_word::kPorts && satisfied(match, find_key_field("tcp_src")->prerequisites[0])) left = 0;
    if (left == 0) continue;
    const KeyField* wanting = nullptr;
    for (const KeyField& field : key_fields()) {
      if (word < field.word() || word >= field.word() + field.words()) continue;
      std::array<uint32_t, key_word::kCount> bits{};
      set_key_field(bits, field, key_field_ones(field));
      if ((bits[word] & left) == 0) continue;
      if (fits(match, field)) {
        left &= ~bits[word];
      } else if (wanting == nullptr || text.find(field.name) != std::string_view::npos) {
        wanting = &field;
      }
    }
    if (left == 0 || wanting == nullptr) continue;
    std::string needs;
    for (const KeyPrerequisite& p : wanting->prerequisites) {
      if (p.field == nullptr || satisfied(match, p)) continue;
      const KeyField& other = *find_key_field(p.field);
      needs += fmt::format("{}{}{}{}", needs.empty() ? "" : " and ", p.field, p.value != 0 ? "=" : "",
                           p.value != 0 ? unparse_key_value(other, {0, p.value}) : "");
      if (p.other != 0) needs += " or " + unparse_key_value(other, {0, p.other});
    }
    return fmt::format("{} needs {}", wanting->name, needs);
  }
  return {};
}

std::string unparse_match(const KeyMatch& match) {
  std::string text;
  const auto add = [&](std::string_view word) {
    if (!text.empty()) text += ',';
    text += word;
  };
  KeyMatch left = match;
  // The protocol first, as ovs-ofctl writes it.
  const auto type = exact_type(match), protocol = exact_protocol(match);
  for (const ProtocolWord& p : kProtocolWords) {
    if (type != p.type || (p.protocol >= 0 && protocol != static_cast<uint32_t>(p.protocol))) continue;
    add(p.name);
    left.mask[key_word::kTypes] &= p.protocol < 0 ? ~kUpper : ~(kUpper | 0xff00);
    break;
  }
  for (const KeyField& field : key_fields()) {
    const bool ports = field.word() == key_word::kPorts && field.bits == 16 && field.oxm != 21;
    if (ports || !has(left, field) || !fits(match, field)) continue;
    const KeyValue mask = get_key_field(left.mask, field);
    add(fmt::format("{}={}{}", field.name, unparse_key_value(field, get_key_field(match.value, field)),
                    unparse_key_mask(field, mask)));
    set_key_field(left.mask, field, {});
  }
  if (const uint32_t mask = left.mask[key_word::kVlan] >> 16; mask != 0)
    add(fmt::format("vlan_tci={:#x}/{:#x}", match.value[key_word::kVlan] >> 16 & mask, mask));
  for (const bool source : {true, false}) {
    const int shift = source ? 16 : 0;
    const uint32_t value = match.value[key_word::kPorts] >> shift & kLower;
    const uint32_t mask = left.mask[key_word::kPorts] >> shift & kLower;
    const uint32_t low = match.low >> shift & kLower, high = match.high >> shift & kLower;
    const char* const name = source ? "tp_src" : "tp_dst";
    // A field of another name, such as arp_op, has said it.
    const uint32_t said = (match.mask[key_word::kPorts] ^ left.mask[key_word::kPorts]) >> shift & kLower;
    if (said == kLower && low == high && low == value) continue;
    if (low != 0 || high != kLower) {
      if (low == high && (mask == 0 || mask == kLower)) {
        add(fmt::format("{}={}", name, low));
        continue;
      }
      add(fmt::format("{}={}-{}", name, low, high));
      // The bits that the range implies need no word.
      const uint32_t varying = low ^ high;
      uint32_t common = kLower;
      while ((common & varying) != 0) common = common << 1 & kLower;
      if ((mask & ~common) == 0 && ((value ^ low) & mask) == 0) continue;
    }
    if (mask == kLower) {
      add(fmt::format("{}={}", name, value));
    } else if (mask != 0) {
      add(fmt::format("{}={:#x}/{:#x}", name, value, mask));
    }
  }
  return text;
}

}  // namespace headrace
