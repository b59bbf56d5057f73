#include "elements/ip6/IP6Reassembler.hh"

#include <fmt/format.h>

#include <cstring>

#include "headrace/fields.hh"
#include "headrace/ip_protocol.hh"

namespace headrace {

namespace {

constexpr int kIp6Bytes = 40, kFragmentBytes = 8, kMostExtensionHeaders = 16;
constexpr int kTcpBytes = 20, kUpperBytes = 8;

/// The identity of IPv6's fragments (RFC 8200, 4.5): unlike IPv4's it has no protocol.
struct Ip6FragmentKey {
  uint8_t source[16], destination[16], id[4];
};
static_assert(sizeof(Ip6FragmentKey) == 36);

/// Where a packet has its fragment header, and where the number stands that says so.
struct FragmentHeader {
  int at = 0;  // 0: there is none
  int protocol_at = 0;
};

bool is_extension(uint8_t protocol) {
  using namespace ip_protocol;
  return protocol == kHopByHop || protocol == kRouting || protocol == kDestinationOptions;
}

/// \param length of the packet, at least that of an IPv6 header
FragmentHeader find_fragment_header(const uint8_t* ip, int length) {
  int at = kIp6Bytes, protocol_at = 6;
  for (int i = 0; i < kMostExtensionHeaders; ++i) {
    if (ip[protocol_at] == ip_protocol::kFragment)
      return at + kFragmentBytes <= length ? FragmentHeader{at, protocol_at} : FragmentHeader{};
    if (!is_extension(ip[protocol_at]) || at + 8 > length) break;
    protocol_at = at;
    at += (ip[at + 1] + 1) * 8;
  }
  return {};
}

/// Whether a first fragment's data has all headers (RFC 7112).
bool has_all_headers(uint8_t protocol, const uint8_t* data, int length) {
  int at = 0;
  for (int i = 0; i < kMostExtensionHeaders && is_extension(protocol); ++i) {
    if (at + 8 > length) return false;
    protocol = data[at];
    at += (data[at + 1] + 1) * 8;
  }
  return at + (protocol == ip_protocol::kTcp ? kTcpBytes : kUpperBytes) <= length;
}

}  // namespace

IP6Reassembler::Kind IP6Reassembler::look(const Packet& p, Place& place) const {
  if (!p.has_network_header() || p.network_length() < kIp6Bytes) return Kind::kBad;
  const uint8_t* const ip = p.network_header();
  if (ip[0] >> 4 != 6) return Kind::kBad;
  const int length = kIp6Bytes + (ip[4] << 8 | ip[5]);
  if (length > p.network_length()) return Kind::kBad;
  const FragmentHeader header = find_fragment_header(ip, length);
  if (header.at == 0) return Kind::kWhole;
  const int word = ip[header.at + 2] << 8 | ip[header.at + 3];
  place.header = header.at + kFragmentBytes;
  place.begin = word & 0xfff8;
  place.length = length - place.header;
  place.last = (word & 1) == 0;
  const bool atomic = place.begin == 0 && place.last;
  if ((place.length == 0 && !atomic) || place.header - kFragmentBytes + place.begin + place.length > most_bytes() ||
      (!place.last && place.length % 8 != 0))
    return Kind::kBad;
  if (place.begin == 0 && !place.last && !has_all_headers(ip[header.at], ip + place.header, place.length))
    return Kind::kTiny;
  Ip6FragmentKey key;
  std::memcpy(key.source, ip + 8, 16);
  std::memcpy(key.destination, ip + 24, 16);
  std::memcpy(key.id, ip + header.at + 4, 4);
  std::memcpy(place.key.data(), &key, sizeof key);
  return Kind::kFragment;
}

int IP6Reassembler::header_length(const Fragment& model, const Part& part) const {
  return part.whole ? model.header - kFragmentBytes : model.header;
}

void IP6Reassembler::write_header(uint8_t* header, int length, const Fragment& model, const Part& part) const {
  const uint8_t* const ip = model.packet->network_header();
  std::memcpy(header, ip, static_cast<size_t>(length));
  const int payload = length - kIp6Bytes + part.length;
  header[4] = static_cast<uint8_t>(payload >> 8);
  header[5] = static_cast<uint8_t>(payload);
  const FragmentHeader at = find_fragment_header(ip, model.header);
  if (part.whole) {
    header[at.protocol_at] = ip[at.at];
  } else {
    const int word = part.begin | (part.has_last ? 0 : 1);
    header[at.at + 2] = static_cast<uint8_t>(word >> 8);
    header[at.at + 3] = static_cast<uint8_t>(word);
  }
}

std::string IP6Reassembler::name_of(const Key& key, const uint16_t (&ports)[2]) const {
  Ip6FragmentKey mine;
  std::memcpy(&mine, key.data(), sizeof mine);
  uint32_t id = 0;
  std::memcpy(&id, mine.id, sizeof id);
  return fmt::format("({}, {}, {}, {}) {}", Ip6Address::from_bytes(mine.source), ports[0],
                     Ip6Address::from_bytes(mine.destination), ports[1], __builtin_bswap32(id));
}

}  // namespace headrace
