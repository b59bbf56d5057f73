#include "tables/rules/packet_facts.hh"

namespace headrace::rules {

namespace {

uint16_t half(const uint8_t* at) { return static_cast<uint16_t>(at[0] << 8 | at[1]); }
uint32_t word(const uint8_t* at) { return uint32_t{half(at)} << 16 | half(at + 2); }

Address6 address6(const uint8_t* at) {
  Address6 value = 0;
  for (int i = 0; i < 16; ++i) value = value << 8 | at[i];
  return value;
}

constexpr uint16_t kFragmentOffsetMask = 0x1fff;

uint32_t option_bit(uint8_t type) {
  switch (type) {
    case 1:
      return kOptionNop;
    case 7:
      return kOptionRecordRoute;
    case 25:
      return kOptionQuickStart;
    case 68:
      return kOptionTimestamp;
    case 130:
      return kOptionSecurity;
    case 131:
      return kOptionLooseRoute;
    case 133:
      return kOptionExtendedSecurity;
    case 134:
      return kOptionCipso;
    case 136:
      return kOptionStreamId;
    case 137:
      return kOptionStrictRoute;
    case 148:
      return kOptionRouterAlert;
    default:
      return kOptionOther;
  }
}

}  // namespace

PacketFacts::PacketFacts(const PacketBytes& packet) {
  const TransportPlace place = find_transport(packet);
  if (place.protocol == TransportPlace::kNotIp) return;
  version_ = static_cast<uint8_t>(place.version);
  protocol_ = static_cast<uint8_t>(place.protocol);
  network_ = packet.data + place.network;
  if (version_ == 4) {
    id_ = half(network_ + 4);
    has_id_ = true;
    fragment_ = half(network_ + 6);
    src4_ = word(network_ + 12);
    dst4_ = word(network_ + 16);
  } else {
    src6_ = address6(network_ + 8);
    dst6_ = address6(network_ + 24);
    if (place.fragment_header != 0) {
      const uint8_t* const header = packet.data + place.fragment_header;
      // The bits lie in another order than in IPv4.
      const uint16_t bits = half(header + 2);
      fragment_ = static_cast<uint16_t>(bits >> 3 | (bits & 1) << 13);
      id_ = word(header + 4);
      has_id_ = true;
    }
  }
  if (place.has_header) {
    transport_ = packet.data + place.at;
    transport_length_ = static_cast<uint32_t>(place.end - place.at);
  }
  if (place.has_ports()) {
    has_ports_ = true;
    src_port_ = half(transport_);
    dst_port_ = half(transport_ + 2);
  }
  const PayloadBytes payload = l4_payload(packet, place);
  payload_ = {reinterpret_cast<const char*>(payload.data), payload.length};
}

uint32_t PacketFacts::ip_options() const {
  uint32_t bits = 0;
  const uint32_t end = (network_[0] & 15u) * 4;
  for (uint32_t at = 20; at < end;) {
    const uint8_t type = network_[at];
    if (type == 0) return bits | kOptionEnd;
    bits |= option_bit(type);
    if (type == 1) {
      ++at;
      continue;
    }
    if (at + 1 >= end || network_[at + 1] < 2) return bits;
    at += network_[at + 1];
  }
  return bits;
}

bool PacketFacts::tcp_field(Field field, uint32_t& value) const {
  if (protocol_ != kTcp || !transport_ || transport_length_ < 20) return false;
  switch (field) {
    case Field::kTcpFlags:
      value = transport_[13];
      return true;
    case Field::kTcpSequence:
      value = word(transport_ + 4);
      return true;
    case Field::kTcpAcknowledgment:
      value = word(transport_ + 8);
      return true;
    default:
      value = half(transport_ + 14);
      return true;
  }
}

bool PacketFacts::icmp_field(Field field, uint32_t& value) const {
  if (!is_icmp() || !transport_ || transport_length_ < 8) return false;
  const uint8_t type = transport_[0];
  switch (field) {
    case Field::kIcmpType:
      value = type;
      return true;
    case Field::kIcmpCode:
      value = transport_[1];
      return true;
    default:
      break;
  }
  // Messages that have an identifier and a sequence number: echo, timestamp, information, address mask.
  const bool has_id = version_ == 4 ? type == 0 || type == 8 || (type >= 13 && type <= 18) : type == 128 || type == 129;
  if (!has_id) return false;
  value = half(transport_ + (field == Field::kIcmpId ? 4 : 6));
  return true;
}

bool PacketFacts::field(Field field, uint32_t& value) const {
  switch (field) {
    case Field::kPayloadLength:
      value = static_cast<uint32_t>(payload_.size());
      return true;
    case Field::kTtl:
      value = version_ == 4 ? network_[8] : network_[7];
      return true;
    case Field::kTos:
      value = version_ == 4 ? network_[1] : (half(network_) >> 4 & 0xff);
      return true;
    case Field::kIpId:
      value = id_;
      return has_id_;
    case Field::kIpProtocol:
      value = protocol_;
      return true;
    case Field::kFragmentBits:
      value = fragment_ >> 13;
      return true;
    case Field::kFragmentOffset:
      value = fragment_ & kFragmentOffsetMask;
      return true;
    case Field::kIpOptions:
      value = version_ == 4 ? ip_options() : 0;
      return version_ == 4;
    case Field::kSameAddresses:
      value = version_ == 4 ? src4_ == dst4_ : src6_ == dst6_;
      return true;
    case Field::kTcpFlags:
    case Field::kTcpSequence:
    case Field::kTcpAcknowledgment:
    case Field::kTcpWindow:
      return tcp_field(field, value);
    case Field::kIcmpType:
    case Field::kIcmpCode:
    case Field::kIcmpId:
    case Field::kIcmpSequence:
      return icmp_field(field, value);
  }
  return false;
}

bool PacketFacts::endpoints_match(const Rule& rule, bool swapped) const {
  const uint16_t from = swapped ? dst_port_ : src_port_, to = swapped ? src_port_ : dst_port_;
  if (has_ports_) {
    if (!rule.dports->contains(to) || !rule.sports->contains(from)) return false;
  } else if (!rule.dports->is_all() || !rule.sports->is_all()) {
    return false;
  }
  if (version_ == 4)
    return rule.dst->v4.contains(swapped ? src4_ : dst4_) && rule.src->v4.contains(swapped ? dst4_ : src4_);
  return rule.dst->v6.contains(swapped ? src6_ : dst6_) && rule.src->v6.contains(swapped ? dst6_ : src6_);
}

bool PacketFacts::header_matches(const Rule& rule) const {
  return is_of(rule.protocol, version_, protocol_) &&
         (endpoints_match(rule, false) || (rule.both_ways && endpoints_match(rule, true)));
}

bool PacketFacts::meets(const Rule& rule) const {
  if (!is_ip() || !header_matches(rule)) return false;
  for (const FieldTest& test : rule.tests) {
    uint32_t value;
    if (!field(test.field, value) || !test.holds(value)) return false;
  }
  if (rule.established && protocol_ == kTcp) {
    constexpr uint32_t kSyn = 2;
    uint32_t flags;
    if (!tcp_field(Field::kTcpFlags, flags) || (flags & kSyn) != 0) return false;
  }
  return true;
}

}  // namespace headrace::rules
