#include "support/openflow_frame.hh"

#include "tables/openflow/program_view.hh"

namespace headrace::testing {

namespace {

using openflow::Op;

void put(std::string& s, uint64_t value, int bytes) {
  for (int i = bytes - 1; i >= 0; --i) s += static_cast<char>(value >> (8 * i));
}
void put(std::string& s, const Address6& address) {
  for (const uint32_t word : address) put(s, word, 4);
}

uint16_t checksum_of(const std::string& s) {
  uint32_t sum = 0;
  for (size_t i = 0; i < s.size(); ++i)
    sum += static_cast<uint32_t>(static_cast<uint8_t>(s[i])) << (i % 2 == 0 ? 8 : 0);
  while (sum >> 16 != 0) sum = (sum & 0xffff) + (sum >> 16);
  return static_cast<uint16_t>(~sum);
}

uint32_t crc32c_bit_by_bit(const std::string& s) {
  uint32_t crc = ~0u;
  for (const char c : s) {
    crc ^= static_cast<uint8_t>(c);
    for (int i = 0; i < 8; ++i) crc = (crc & 1) != 0 ? crc >> 1 ^ 0x82f63b78u : crc >> 1;
  }
  return ~crc;
}

void place(std::string& s, size_t at, uint32_t value, int bytes) {
  std::string text;
  put(text, value, bytes);
  s.replace(at, static_cast<size_t>(bytes), text);
}

/// A value as an operation has it: the words of the key under the masks, shifted down.
struct FieldValue {
  uint32_t w[4];
};

}  // namespace

bool OpenFlowFrame::visible(Network what) const {
  if (network != what || !labels.empty() || !customer.empty()) return false;
  return what == Network::kIp4   ? type == 0x0800
         : what == Network::kIp6 ? type == 0x86dd
         : what == Network::kArp ? type == 0x0806
                                 : true;
}

std::string OpenFlowFrame::bytes() const {
  std::string s;
  put(s, dst, 6);
  put(s, src, 6);
  for (const Tag& tag : tags) put(s, uint32_t{tag.type} << 16 | tag.tci, 4);
  put(s, type, 2);
  if (!customer.empty()) {
    put(s, pbb_tci, 4);
    return s + customer[0].bytes();
  }
  for (const uint32_t label : labels) put(s, label, 4);
  if (network == Network::kRaw) return s + payload;
  if (network == Network::kArp) {
    put(s, 0x0001080006040000 | arp_op, 8);
    put(s, sha, 6);
    put(s, src4, 4);
    put(s, tha, 6);
    put(s, dst4, 4);
    return s + padding;
  }

  // The transport layer, whose checksum comes last.
  std::string l4;
  size_t checksum_at = 0;
  if (later_fragment()) {
    l4 = payload;
  } else if (protocol == 6) {
    put(l4, uint32_t{sport} << 16 | dport, 4);
    put(l4, 0x0102030405060708, 8);
    put(l4, 0x5010aaaa00000000, 8);
    l4 += payload;
    checksum_at = 16;
  } else if (protocol == 17) {
    put(l4, uint32_t{sport} << 16 | dport, 4);
    put(l4, (8 + payload.size()) << 16, 4);
    l4 += payload;
    checksum_at = no_checksum ? 0 : 6;
  } else if (protocol == 132) {
    put(l4, uint32_t{sport} << 16 | dport, 4);
    put(l4, 0xabcdef0100000000, 8);
    l4 += payload;
    place(l4, 8, is_fragment() ? 0x12345678 : __builtin_bswap32(crc32c_bit_by_bit(l4)), 4);
  } else if (protocol == 1 || protocol == 58) {
    put(l4, uint32_t{icmp_type} << 24 | uint32_t{icmp_code} << 16, 4);
    put(l4, 0x12340001, 4);
    if (target) put(l4, *target);
    if (sll) put(l4, 0x0101ull << 48 | *sll, 8);
    if (tll) put(l4, 0x0201ull << 48 | *tll, 8);
    l4 += payload;
    checksum_at = 2;
  } else {
    l4 = payload;
  }

  std::string head;
  if (network == Network::kIp4) {
    const size_t length = 20 + static_cast<size_t>(options) * 4;
    put(head, 0x40 | length / 4, 1);
    put(head, tos, 1);
    put(head, length + l4.size(), 2);
    put(head, 0x1234, 2);
    put(head, fragment, 2);
    put(head, ttl, 1);
    put(head, protocol, 1);
    put(head, 0, 2);
    put(head, src4, 4);
    put(head, dst4, 4);
    head += std::string(static_cast<size_t>(options) * 4, '\1');
    place(head, 10, checksum_of(head), 2);
  } else {
    std::string extensions;
    const int first = hop_by_hop ? 0 : has_fragment_header ? 44 : protocol;
    if (hop_by_hop) {
      put(extensions, has_fragment_header ? 44 : protocol, 1);
      put(extensions, 0x00010400000000, 7);
    }
    if (has_fragment_header) {
      put(extensions, protocol, 1);
      put(extensions, 0, 1);
      put(extensions, fragment, 2);
      put(extensions, 0x99aabbcc, 4);
    }
    put(head, 6u << 28 | uint32_t{tos} << 20 | flow_label, 4);
    put(head, extensions.size() + l4.size(), 2);
    put(head, static_cast<uint64_t>(first), 1);
    put(head, ttl, 1);
    put(head, src6);
    put(head, dst6);
    head += extensions;
  }
  if (checksum_at != 0) {
    std::string covered;
    if (protocol != 1) {
      if (network == Network::kIp4) {
        put(covered, src4, 4);
        put(covered, dst4, 4);
      } else {
        put(covered, src6);
        put(covered, dst6);
      }
      put(covered, protocol, 2);
      put(covered, l4.size(), 2);
    }
    uint16_t checksum = checksum_of(covered + l4);
    if (protocol == 17 && checksum == 0) checksum = 0xffff;
    place(l4, checksum_at, checksum, 2);
  }
  return s + head + l4 + padding;
}

uint8_t* OpenFlowFrame::inner_ttl() {
  if (labels.size() > 1) return reinterpret_cast<uint8_t*>(&labels[1]);  // little-endian: the lowest byte
  return network == Network::kIp4 || network == Network::kIp6 ? &ttl : nullptr;
}

void OpenFlowFrame::set_field(const uint32_t* op) {
  const openflow::SetField set(op);
  const auto word = [&](uint32_t i) { return set.value(i); };
  // 48-bit values begin with a whole word or with half of one.
  const auto ether = [&] {
    return set.mask(0) == 0xffffffff ? uint64_t{word(0)} << 16 | word(1) >> 16
                                     : uint64_t{word(0) & 0xffff} << 32 | word(1);
  };
  const auto address = [&] { return Address6{word(0), word(1), word(2), word(3)}; };
  const bool ip4 = visible(Network::kIp4), ip6 = visible(Network::kIp6), arp = visible(Network::kArp);
  const bool l4 = is_ip() && !later_fragment();
  const bool neighbor =
      l4 && ip6 && protocol == 58 && target && (icmp_type == 135 || icmp_type == 136) && icmp_code == 0;
  switch (set.field) {
    case 3:
      dst = ether();
      break;
    case 4:
      src = ether();
      break;
    case 6:
      if (!tags.empty()) tags[0].tci = static_cast<uint16_t>((tags[0].tci & 0xf000) | (word(0) >> 16 & 0xfff));
      break;
    case 7:
      if (!tags.empty()) tags[0].tci = static_cast<uint16_t>((tags[0].tci & 0x1fff) | (word(0) >> 16 & 0xe000));
      break;
    case 8:
      if (is_ip()) tos = static_cast<uint8_t>((tos & 3) | (word(0) & 0xfc));
      break;
    case 9:
      if (is_ip()) tos = static_cast<uint8_t>((tos & 0xfc) | (word(0) & 3));
      break;
    case 11:
      if (ip4) src4 = word(0);
      break;
    case 12:
      if (ip4) dst4 = word(0);
      break;
    case 13:
    case 15:
    case 17: {
      const int wanted = set.field == 13 ? 6 : set.field == 15 ? 17 : 132;
      if (l4 && protocol == wanted) sport = static_cast<uint16_t>(word(0) >> 16);
      break;
    }
    case 14:
    case 16:
    case 18: {
      const int wanted = set.field == 14 ? 6 : set.field == 16 ? 17 : 132;
      if (l4 && protocol == wanted) dport = static_cast<uint16_t>(word(0));
      break;
    }
    case 19:
      if (l4 && ip4 && protocol == 1) icmp_type = static_cast<uint8_t>(word(0) >> 16);
      break;
    case 20:
      if (l4 && ip4 && protocol == 1) icmp_code = static_cast<uint8_t>(word(0));
      break;
    case 21:
      if (arp) arp_op = static_cast<uint16_t>(word(0) >> 16);
      break;
    case 22:
      if (arp) src4 = word(0);
      break;
    case 23:
      if (arp) dst4 = word(0);
      break;
    case 24:
      if (arp) sha = ether();
      break;
    case 25:
      if (arp) tha = ether();
      break;
    case 26:
      if (ip6) src6 = address();
      break;
    case 27:
      if (ip6) dst6 = address();
      break;
    case 28:
      if (ip6) flow_label = word(0) >> 12;
      break;
    case 29:
      if (l4 && ip6 && protocol == 58) icmp_type = static_cast<uint8_t>(word(0) >> 16);
      break;
    case 30:
      if (l4 && ip6 && protocol == 58) icmp_code = static_cast<uint8_t>(word(0));
      break;
    case 31:
      if (neighbor) target = address();
      break;
    case 32:
      if (neighbor && icmp_type == 135 && sll) sll = ether();
      break;
    case 33:
      if (neighbor && icmp_type == 136 && tll) tll = ether();
      break;
    case 34:
      if (mpls()) labels[0] = (labels[0] & 0xfff) | (word(0) & 0xfffff000);
      break;
    case 35:
      if (mpls()) labels[0] = (labels[0] & ~0xe00u) | (word(0) & 0xe00);
      break;
    case 36:
      if (mpls()) labels[0] = (labels[0] & ~0x100u) | (word(0) & 0x100);
      break;
    case 37:
      if (pbb()) pbb_tci = (pbb_tci & 0xff000000) | word(0) >> 8;
      break;
    default:
      break;
  }
}

OpenFlowFrame::Done OpenFlowFrame::act(const uint32_t* op) {
  const uint32_t byte = openflow::op_byte(op[0]), half = openflow::op_half(op[0]);
  const auto outer = [&]() -> Tag& {
    if (tags.empty()) tags.insert(tags.begin(), Tag{0x8100, 0});
    return tags[0];
  };
  switch (openflow::op_of(op[0])) {
    case Op::kOutput:
    case Op::kGroup:
      break;
    case Op::kSetField:
      set_field(op);
      break;
    case Op::kSetNwTtl:
      if (is_ip()) ttl = static_cast<uint8_t>(byte);
      break;
    case Op::kDecNwTtl:
      if (!is_ip()) break;
      if (ttl <= 1) return Done::kInvalidTtl;
      --ttl;
      break;
    case Op::kPushVlan:
      tags.insert(tags.begin(),
                  Tag{static_cast<uint16_t>(half), static_cast<uint16_t>(tags.empty() ? 0 : tags[0].tci & 0xefff)});
      break;
    case Op::kPopVlan:
      if (!tags.empty()) tags.erase(tags.begin());
      break;
    case Op::kSetVlanVid:
      outer().tci = static_cast<uint16_t>((outer().tci & 0xf000) | half);
      break;
    case Op::kSetVlanPcp:
      outer().tci = static_cast<uint16_t>((outer().tci & 0x1fff) | half << 13);
      break;
    case Op::kSetPort:
      if (is_ip() && !later_fragment() && (protocol == 6 || protocol == 17))
        (byte != 0 ? dport : sport) = static_cast<uint16_t>(half);
      break;
    case Op::kPushMpls: {
      const uint32_t label = mpls() ? labels[0] & ~0x100u : 0x100u | (is_ip() ? ttl : 0u);
      if (!mpls() && !labels.empty()) undefined = true;
      if (!customer.empty()) undefined = true;
      labels.insert(labels.begin(), label);
      type = static_cast<uint16_t>(half);
      break;
    }
    case Op::kPopMpls:
      if (!mpls()) break;
      labels.erase(labels.begin());
      type = static_cast<uint16_t>(half);
      undefined = undefined || (labels.empty() && (type == 0x8847 || type == 0x8848));
      break;
    case Op::kSetMplsTtl:
      if (mpls()) labels[0] = (labels[0] & ~0xffu) | byte;
      break;
    case Op::kDecMplsTtl:
      if (!mpls()) break;
      if ((labels[0] & 0xff) <= 1) return Done::kInvalidTtl;
      --labels[0];
      break;
    case Op::kPushPbb: {
      OpenFlowFrame outside;
      outside.dst = dst;
      outside.src = src;
      outside.type = static_cast<uint16_t>(half);
      outside.undefined = undefined;
      outside.pbb_tci = (tags.empty() ? 0 : uint32_t{tags[0].tci} >> 13 << 29) | (pbb() ? pbb_tci & 0xffffff : 0);
      outside.customer.push_back(*this);
      *this = outside;
      break;
    }
    case Op::kPopPbb:
      if (pbb()) {
        OpenFlowFrame inside = customer[0];
        inside.tags.insert(inside.tags.begin(), tags.begin(), tags.end());
        inside.undefined = undefined || inside.undefined;
        *this = inside;
      }
      break;
    case Op::kCopyTtlOut:
      if (!mpls()) break;
      if (const uint8_t* inner = inner_ttl()) labels[0] = (labels[0] & ~0xffu) | *inner;
      break;
    case Op::kCopyTtlIn:
      if (!mpls()) break;
      if (uint8_t* inner = inner_ttl()) *inner = static_cast<uint8_t>(labels[0]);
      break;
  }
  return Done::kYes;
}

}  // namespace headrace::testing
