#include "elements/ip/IPReassembler.hh"

#include <fmt/format.h>

#include <cstring>

#include "headrace/checksum.hh"
#include "headrace/headers.hh"

namespace headrace {

namespace {

/// What a first fragment of TCP must have, so that a filter sees its flags (RFC 1858, 3.1).
constexpr int kTcpWithFlags = 16;

/// The identity of IPv4's fragments, as Reassembler::Key has it.
struct Ip4FragmentKey {
  uint8_t source[4], destination[4];
  uint16_t id;
  uint8_t protocol;
};

}  // namespace

IPReassembler::Kind IPReassembler::look(const Packet& p, Place& place) const {
  const Ip4Header* const ip = ip4_header(p);
  if (ip == nullptr) return Kind::kBad;
  if (!ip->is_fragment()) return Kind::kWhole;
  place.header = ip->header_length();
  place.begin = (ip->fragment & ip4::kOffsetMask) * 8;
  place.length = ip->total_length - place.header;
  place.last = (ip->fragment & ip4::kMoreFragments) == 0;
  // No packet is longer than 65535 bytes, all fragments but the last have a multiple of 8 bytes.
  if (place.length <= 0 || place.header + place.length > p.network_length() ||
      place.header + place.begin + place.length > most_bytes() || (!place.last && place.length % 8 != 0))
    return Kind::kBad;
  if (ip->protocol == ip_protocol::kTcp && (place.begin == 8 || (place.begin == 0 && place.length < kTcpWithFlags)))
    return Kind::kTiny;
  Ip4FragmentKey key{};
  std::memcpy(key.source, ip->bytes() + 12, 4);
  std::memcpy(key.destination, ip->bytes() + 16, 4);
  key.id = ip->id;
  key.protocol = ip->protocol;
  static_assert(sizeof key <= sizeof place.key);
  std::memcpy(place.key.data(), &key, sizeof key);
  return Kind::kFragment;
}

int IPReassembler::header_length(const Fragment& model, const Part& part) const {
  // Options that only the first fragment has are missing without it.
  return part.begin == 0 ? model.header : static_cast<int>(sizeof(Ip4Header));
}

void IPReassembler::write_header(uint8_t* header, int length, const Fragment& model, const Part& part) const {
  std::memcpy(header, model.packet->network_header(), static_cast<size_t>(length));
  auto& ip = *reinterpret_cast<Ip4Header*>(header);
  const int flags = ip.fragment & ~(ip4::kOffsetMask | ip4::kMoreFragments);
  ip.version_ihl = static_cast<uint8_t>(0x40 | length >> 2);
  ip.total_length = static_cast<uint16_t>(length + part.length);
  ip.fragment = static_cast<uint16_t>(flags | (part.has_last ? 0 : ip4::kMoreFragments) | part.begin / 8);
  set_ip_checksum(ip);
}

std::string IPReassembler::name_of(const Key& key, const uint16_t (&ports)[2]) const {
  Ip4FragmentKey mine;
  std::memcpy(&mine, key.data(), sizeof mine);
  return fmt::format("({}, {}, {}, {}) {}", IpAddress::from_bytes(mine.source), ports[0],
                     IpAddress::from_bytes(mine.destination), ports[1], mine.id);
}

}  // namespace headrace
