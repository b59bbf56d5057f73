#include "tables/key/key_fields.hh"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <unordered_map>

#include "headrace/addresses.hh"
#include "headrace/text.hh"

namespace headrace {

namespace {

using Form = KeyFieldForm;

constexpr KeyPrerequisite kOnIp{"dl_type", 0x0800, 0x86dd}, kOnIp4{"dl_type", 0x0800}, kOnIp6{"dl_type", 0x86dd};
constexpr KeyPrerequisite kOnArp{"dl_type", 0x0806, 0x8035}, kOnMpls{"dl_type", 0x8847, 0x8848},
    kOnPbb{"dl_type", 0x88e7};
constexpr KeyPrerequisite kOnTcp{"nw_proto", 6}, kOnUdp{"nw_proto", 17}, kOnSctp{"nw_proto", 132};
constexpr KeyPrerequisite kOnIcmp4{"nw_proto", 1}, kOnIcmp6{"nw_proto", 58};
constexpr KeyPrerequisite kOnNeighbor{"icmpv6_type", 135, 136}, kOnSolicitation{"icmpv6_type", 135},
    kOnAdvertisement{"icmpv6_type", 136};
constexpr KeyPrerequisite kOnInPort{"in_port", 0}, kOnTag{"vlan_vid", 0x1000};

// name, aliases, OXM, place, bits, maskable, form, prerequisites, wildcard bit of 1.0
constexpr KeyField kKeyFields[] = {
    {"in_port", "", 0, 128, 32, false, Form::kDecimal, {}, 0},
    {"in_phy_port", "", 1, 448, 32, false, Form::kDecimal, {kOnInPort}, -1},
    {"metadata", "", 2, 320, 64, true, Form::kHex, {}, -1},
    {"dl_dst", " eth_dst ", 3, 160, 48, true, Form::kEther, {}, 3},
    {"dl_src", " eth_src ", 4, 208, 48, true, Form::kEther, {}, 2},
    {"dl_type", " eth_type ", 5, 96, 16, false, Form::kHex, {}, 4},
    {"vlan_vid", "", 6, 259, 13, true, Form::kHex, {}, 1},
    {"vlan_pcp", " dl_vlan_pcp ", 7, 256, 3, false, Form::kDecimal, {kOnTag}, 20},
    {"ip_dscp", "", 8, 120, 6, false, Form::kDecimal, {kOnIp}, 21},
    {"nw_ecn", " ip_ecn ", 9, 126, 2, false, Form::kDecimal, {kOnIp}, -1},
    {"nw_proto", " ip_proto ", 10, 112, 8, false, Form::kDecimal, {kOnIp}, 5},
    {"nw_src", " ip_src ", 11, 0, 32, true, Form::kIp4, {kOnIp4}, 8},
    {"nw_dst", " ip_dst ", 12, 32, 32, true, Form::kIp4, {kOnIp4}, 14},
    {"tcp_src", "", 13, 64, 16, false, Form::kDecimal, {kOnIp, kOnTcp}, 6},
    {"tcp_dst", "", 14, 80, 16, false, Form::kDecimal, {kOnIp, kOnTcp}, 7},
    {"udp_src", "", 15, 64, 16, false, Form::kDecimal, {kOnIp, kOnUdp}, 6},
    {"udp_dst", "", 16, 80, 16, false, Form::kDecimal, {kOnIp, kOnUdp}, 7},
    {"sctp_src", "", 17, 64, 16, false, Form::kDecimal, {kOnIp, kOnSctp}, -1},
    {"sctp_dst", "", 18, 80, 16, false, Form::kDecimal, {kOnIp, kOnSctp}, -1},
    {"icmp_type", " icmpv4_type ", 19, 72, 8, false, Form::kDecimal, {kOnIp4, kOnIcmp4}, 6},
    {"icmp_code", " icmpv4_code ", 20, 88, 8, false, Form::kDecimal, {kOnIp4, kOnIcmp4}, 7},
    {"arp_op", "", 21, 64, 16, false, Form::kDecimal, {kOnArp}, 5},
    {"arp_spa", "", 22, 0, 32, true, Form::kIp4, {kOnArp}, 8},
    {"arp_tpa", "", 23, 32, 32, true, Form::kIp4, {kOnArp}, 14},
    {"arp_sha", "", 24, 896, 48, true, Form::kEther, {kOnArp}, -1},
    {"arp_tha", "", 25, 944, 48, true, Form::kEther, {kOnArp}, -1},
    {"ipv6_src", "", 26, 512, 128, true, Form::kIp6, {kOnIp6}, -1},
    {"ipv6_dst", "", 27, 640, 128, true, Form::kIp6, {kOnIp6}, -1},
    {"ipv6_label", " ipv6_flabel ", 28, 288, 20, true, Form::kHex, {kOnIp6}, -1},
    {"icmpv6_type", "", 29, 72, 8, false, Form::kDecimal, {kOnIp6, kOnIcmp6}, 6},
    {"icmpv6_code", "", 30, 88, 8, false, Form::kDecimal, {kOnIp6, kOnIcmp6}, 7},
    {"nd_target", "", 31, 768, 128, false, Form::kIp6, {kOnIp6, kOnNeighbor}, -1},
    {"nd_sll", "", 32, 896, 48, false, Form::kEther, {kOnIp6, kOnSolicitation}, -1},
    {"nd_tll", "", 33, 944, 48, false, Form::kEther, {kOnIp6, kOnAdvertisement}, -1},
    {"mpls_label", "", 34, 288, 20, false, Form::kDecimal, {kOnMpls}, -1},
    {"mpls_tc", "", 35, 308, 3, false, Form::kDecimal, {kOnMpls}, -1},
    {"mpls_bos", "", 36, 311, 1, false, Form::kDecimal, {kOnMpls}, -1},
    {"pbb_isid", "", 37, 288, 24, true, Form::kHex, {kOnPbb}, -1},
    {"tun_id", " tunnel_id ", 38, 384, 64, true, Form::kHex, {}, -1},
    {"ipv6_exthdr", "", 39, 279, 9, true, Form::kHex, {kOnIp6}, -1},
};

/// Digits, with 0x hexadecimal.
std::optional<KeyValue> parse_number(std::string_view text, int bits) {
  const bool hex = text.starts_with("0x") || text.starts_with("0X");
  const auto value = hex ? whole_number<uint64_t>(text.substr(2), ~uint64_t{0}, 16) : whole_number<uint64_t>(text);
  if (!value || (bits < 64 && *value >> bits != 0)) return std::nullopt;
  return KeyValue{0, *value};
}

std::optional<KeyValue> parse_address(const KeyField& field, std::string_view text) {
  switch (field.form) {
    case Form::kEther: {
      EtherAddress address;
      if (!parse(text, address)) return std::nullopt;
      uint64_t value = 0;
      for (const uint8_t byte : address.bytes()) value = value << 8 | byte;
      return KeyValue{0, value};
    }
    case Form::kIp4: {
      IpAddress address;
      if (!parse(text, address)) return std::nullopt;
      return KeyValue{0, address.host_order()};
    }
    case Form::kIp6: {
      Ip6Address address;
      if (!parse(text, address)) return std::nullopt;
      KeyValue value;
      for (size_t i = 0; i < 8; ++i) {
        value.high = value.high << 8 | address.bytes()[i];
        value.low = value.low << 8 | address.bytes()[8 + i];
      }
      return value;
    }
    default:
      return parse_number(text, field.bits);
  }
}

KeyValue prefix_of(const KeyField& field, unsigned length) {
  const KeyValue ones = key_field_ones(field);
  const unsigned host = field.bits - length;
  if (host == 0) return ones;
  if (host >= 64) return {host >= 128 ? 0 : ones.high >> (host - 64) << (host - 64), 0};
  return {ones.high, ones.low >> host << host};
}

int prefix_length(const KeyField& field, const KeyValue& mask) {
  for (unsigned length = 0; length <= field.bits; ++length)
    if (prefix_of(field, length) == mask) return static_cast<int>(length);
  return -1;
}

__extension__ using Wide = unsigned __int128;

/// Calls `visit(word, shift, ones)` for the part of a field in each word of a key, the highest bits first: `ones`
/// shifted by `shift`.
template <typename Visit>
void each_part(const KeyField& field, Visit&& visit) {
  const unsigned end = field.place + field.bits;
  for (unsigned at = field.place; at < end;) {
    const unsigned word = at / 32, last = std::min(end, (word + 1) * 32);
    visit(word, (word + 1) * 32 - last, ~uint32_t{0} >> (32 - (last - at)));
    at = last;
  }
}

}  // namespace

std::span<const KeyField> key_fields() { return kKeyFields; }

const KeyField* find_key_field(std::string_view name) {
  static const auto names = [] {
    std::unordered_map<std::string_view, const KeyField*> found;
    for (const KeyField& field : kKeyFields) {
      found.emplace(field.name, &field);
      std::string_view aliases = field.aliases;
      for (std::string_view alias = next_word(aliases); !alias.empty(); alias = next_word(aliases))
        found.emplace(alias, &field);
    }
    return found;
  }();
  const auto at = names.find(name);
  return at == names.end() ? nullptr : at->second;
}

KeyValue key_field_ones(const KeyField& field) {
  if (field.bits >= 64) return {field.bits == 128 ? ~uint64_t{0} : 0, ~uint64_t{0}};
  return {0, (uint64_t{1} << field.bits) - 1};
}

KeyValue get_key_field(std::span<const uint32_t> words, const KeyField& field) {
  Wide value = 0;
  each_part(field, [&](uint32_t word, unsigned shift, uint32_t ones) {
    const uint32_t bits = word < words.size() ? words[word] >> shift & ones : 0;
    value = value << std::popcount(ones) | bits;
  });
  return {static_cast<uint64_t>(value >> 64), static_cast<uint64_t>(value)};
}

void set_key_field(std::span<uint32_t> words, const KeyField& field, const KeyValue& value) {
  const Wide wide = Wide{value.high} << 64 | value.low;
  unsigned left = field.bits;
  each_part(field, [&](uint32_t word, unsigned shift, uint32_t ones) {
    left -= static_cast<unsigned>(std::popcount(ones));
    words[word] = (words[word] & ~(ones << shift)) | (static_cast<uint32_t>(wide >> left) & ones) << shift;
  });
}

std::optional<KeyValue> parse_key_value(const KeyField& field, std::string_view text) {
  return parse_address(field, text);
}

std::optional<KeyValue> parse_key_mask(const KeyField& field, std::string_view text) {
  if (field.form == Form::kIp4 || field.form == Form::kIp6) {
    if (const auto length = whole_number<unsigned>(text, field.bits)) return prefix_of(field, *length);
  }
  return parse_address(field, text);
}

std::string unparse_key_value(const KeyField& field, const KeyValue& value) {
  switch (field.form) {
    case Form::kEther: {
      std::string text;
      for (int shift = 40; shift >= 0; shift -= 8)
        text += fmt::format("{}{:02x}", text.empty() ? "" : ":", value.low >> shift & 0xff);
      return text;
    }
    case Form::kIp4:
      return IpAddress::from_host_order(static_cast<uint32_t>(value.low)).unparse();
    case Form::kIp6: {
      std::array<uint8_t, 16> bytes{};
      for (size_t i = 0; i < 8; ++i) {
        bytes[i] = static_cast<uint8_t>(value.high >> (56 - 8 * i));
        bytes[8 + i] = static_cast<uint8_t>(value.low >> (56 - 8 * i));
      }
      return Ip6Address(bytes).unparse();
    }
    case Form::kHex:
      return fmt::format("{:#x}", value.low);
    default:
      return fmt::format("{}", value.low);
  }
}

std::string unparse_key_mask(const KeyField& field, const KeyValue& mask) {
  if (mask == key_field_ones(field)) return {};
  if (field.form == Form::kIp4 || field.form == Form::kIp6) {
    if (const int length = prefix_length(field, mask); length >= 0) return fmt::format("/{}", length);
    return "/" + unparse_key_value(field, mask);
  }
  if (field.form == Form::kEther) return "/" + unparse_key_value(field, mask);
  return fmt::format("/{:#x}", mask.low);
}

std::string key_fields_page() {
  std::string page =
      "| OXM | field | other names | bits | masks in OpenFlow 1.3 | requires | OpenFlow 1.0 wildcard | place |\n"
      "| --- | --- | --- | --- | --- | --- | --- | --- |\n";
  for (const KeyField& field : kKeyFields) {
    std::string required;
    for (const KeyPrerequisite& p : field.prerequisites) {
      if (p.field == nullptr) continue;
      if (!required.empty()) required += ", ";
      const KeyField& other = *find_key_field(p.field);
      required += fmt::format("`{}`", p.field);
      if (p.value != 0) required += " " + unparse_key_value(other, {0, p.value});
      if (p.other != 0) required += " or " + unparse_key_value(other, {0, p.other});
    }
    const std::string_view aliases = trimmed(field.aliases);
    page += fmt::format("| {} | `{}` | {} | {} | {} | {} | {} | {} |\n", field.oxm, field.name,
                        aliases.empty() ? std::string() : fmt::format("`{}`", aliases), field.bits,
                        field.maskable ? "yes" : "", required,
                        field.wildcard_1_0 < 0 ? std::string() : std::to_string(field.wildcard_1_0), field.place);
  }
  return page;
}

}  // namespace headrace
