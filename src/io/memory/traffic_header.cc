#include "io/memory/traffic_header.hh"

#include <algorithm>
#include <cstring>

#include "headrace/checksum.hh"
#include "headrace/flow_hash.hh"
#include "headrace/ip_protocol.hh"

namespace headrace {

namespace {

constexpr uint32_t kIp4Type = 0x0800, kIp6Type = 0x86dd, kArpType = 0x0806, kRarpType = 0x8035;

uint16_t load16(const uint8_t* at) { return static_cast<uint16_t>(at[0] << 8 | at[1]); }
void store16(uint8_t* at, uint32_t value) {
  at[0] = static_cast<uint8_t>(value >> 8);
  at[1] = static_cast<uint8_t>(value);
}
void store32(uint8_t* at, uint32_t value) {
  store16(at, value >> 16);
  store16(at + 2, value);
}

/// Values inside a match.
class KeyDraw {
 public:
  KeyDraw(const KeyMatch& match, TrafficRandom& random) : match_(match), random_(random) {}

  uint32_t word(uint32_t w) { return match_.value[w] | (random_.next32() & ~match_.mask[w]); }
  bool is_open(uint32_t w, uint32_t bits) const { return (match_.mask[w] & bits) == 0; }
  uint32_t value(uint32_t w) const { return match_.value[w]; }

  uint32_t ether_type() { return is_open(key_word::kTypes, 0xffff0000) ? kIp4Type : word(key_word::kTypes) >> 16; }
  uint32_t protocol(uint8_t wanted) {
    if (!is_open(key_word::kTypes, 0xff00)) return word(key_word::kTypes) >> 8 & 0xff;
    return wanted != 0 ? wanted : (random_.next() >> 63) != 0 ? ip_protocol::kTcp : ip_protocol::kUdp;
  }
  /// A half of the word of ports, at most `most`.
  uint32_t port(int shift, uint32_t most) {
    const uint32_t low = match_.low >> shift & 0xffff, high = std::min(match_.high >> shift & 0xffff, most);
    if (low > high) return low;  // nothing is inside
    const uint32_t mask = match_.mask[key_word::kPorts] >> shift & 0xffff;
    const uint32_t drawn = low + random_.next32() % (high - low + 1);
    return (drawn & ~mask) | (match_.value[key_word::kPorts] >> shift & mask);
  }
  /// The address in so many words, unicast if that is possible.
  void address(uint32_t first, uint32_t words, uint8_t* at) {
    for (int tries = 0; tries < 16; ++tries) {
      for (uint32_t w = 0; w < words; ++w) store32(at + 4 * w, word(first + w));
      const bool unicast = words == 1 ? at[0] >= 1 && at[0] < 224 && at[0] != 127 : at[0] != 0xff;
      if (unicast) return;
    }
  }
  /// 48 bits from `bit` on, those of `usual` where all are open.
  void mac(uint32_t bit, const uint8_t* usual, uint8_t* at) {
    const uint32_t w = key_word::kMac + bit / 32;
    const bool upper = bit % 32 == 0;
    const uint32_t bits[2] = {upper ? 0xffffffffu : 0xffffu, upper ? 0xffff0000u : 0xffffffffu};
    if (is_open(w, bits[0]) && is_open(w + 1, bits[1])) {
      std::memcpy(at, usual, 6);
      return;
    }
    const uint64_t both = uint64_t{word(w)} << 32 | word(w + 1), address = both >> (upper ? 16 : 0);
    store16(at, static_cast<uint32_t>(address >> 32));
    store32(at + 2, static_cast<uint32_t>(address));
  }

 private:
  const KeyMatch& match_;
  TrafficRandom& random_;
};

/// TCP, UDP, ICMP or another header, up to where the payload begins. Returns its size.
uint32_t draw_transport(KeyDraw& draw, bool ip6, uint32_t protocol, uint8_t* at, TrafficRandom& random) {
  constexpr uint8_t kAck = 0x10;
  if (protocol == ip_protocol::kIcmp || protocol == ip_protocol::kIcmp6) {
    at[0] = static_cast<uint8_t>(draw.port(16, 255));
    at[1] = static_cast<uint8_t>(draw.port(0, 255));
    if (!ip6 || protocol != ip_protocol::kIcmp6) return 8;
    if ((at[0] == 135 || at[0] == 136) && at[1] == 0) {
      // Neighbor discovery, with an option of the link-layer address (RFC 4861, sections 4.3, 4.4 and 4.6.1).
      for (uint32_t w = 0; w < 4; ++w) store32(at + 8 + 4 * w, draw.word(key_word::kNdTarget + w));
      const uint32_t ll[3] = {draw.word(key_word::kLinkLayer), draw.word(key_word::kLinkLayer + 1),
                              draw.word(key_word::kLinkLayer + 2)};
      at[24] = at[0] == 135 ? 1 : 2;
      at[25] = 1;
      store16(at + 26, at[0] == 135 ? ll[0] >> 16 : ll[1] & 0xffff);
      store32(at + 28, at[0] == 135 ? ll[0] << 16 | ll[1] >> 16 : ll[2]);
    }
    return 32;  // room for that in all of them, so that the payload has one place
  }
  if (protocol == ip_protocol::kTcp || protocol == ip_protocol::kUdp || protocol == ip_protocol::kSctp) {
    store16(at, draw.port(16, 0xffff));
    store16(at + 2, draw.port(0, 0xffff));
  }
  if (protocol != ip_protocol::kTcp) return protocol == ip_protocol::kSctp ? 12 : 8;
  store32(at + 4, random.next32());
  store32(at + 8, random.next32());
  at[12] = 5 << 4;
  at[13] = kAck;
  store16(at + 14, 0xffff);
  return 20;
}

/// Where the network header begins, and its Ethernet type.
uint32_t network_of(const uint8_t* frame, uint32_t& type) {
  type = load16(frame + 12);
  if (type != 0x8100) return 14;
  type = load16(frame + 16);
  return 18;
}

template <size_t kBytes>
void fit(TrafficHeader<kBytes>& header, uint32_t length) {
  length = std::max<uint32_t>(length, header.size);
  header.length = static_cast<uint16_t>(length);
  header.checksum = 0;
  // The narrow one has room for IPv4 without a tag, and nothing else is put there (is_narrow()).
  constexpr bool kWide = kBytes == sizeof(WideHeader::bytes);
  uint32_t type = load16(header.bytes + 12);
  const uint32_t at = kWide ? network_of(header.bytes, type) : 14;
  uint8_t* const ip = header.bytes + at;
  const bool ip6 = kWide && type == kIp6Type;
  if (type != kIp4Type && !ip6) return;
  const uint32_t network = ip6 ? 40 : 20, payload = length - at - network;
  const uint8_t protocol = ip[ip6 ? 6 : 9];
  if (ip6) {
    store16(ip + 4, payload);
  } else {
    store16(ip + 2, length - at);
    store16(ip + 10, 0);
    store16(ip + 10, internet_checksum(ip, 20));
  }
  uint8_t* const transport = ip + network;
  if (protocol == ip_protocol::kUdp) store16(transport + 4, payload);
  // Without a checksum, UDP over IPv4 has 0 there.
  const uint32_t place = protocol == ip_protocol::kTcp            ? 16
                         : protocol == ip_protocol::kUdp && ip6   ? 6
                         : protocol == ip_protocol::kIcmp         ? 2
                         : protocol == ip_protocol::kIcmp6 && ip6 ? 2
                                                                  : 0;
  if (place == 0) return;
  store16(transport + place, 0);
  ChecksumSum sum;
  if (protocol != ip_protocol::kIcmp) {
    sum.add(ip + (ip6 ? 8 : 12), ip6 ? 32 : 8).add16(protocol).add16(static_cast<uint16_t>(payload));
  }
  uint16_t checksum = sum.add(transport, header.size - at - network).checksum();
  const bool never_zero = protocol == ip_protocol::kUdp;
  if (checksum == 0 && never_zero) checksum = 0xffff;
  store16(transport + place, checksum);
  header.checksum = static_cast<uint8_t>((at + network + place) | (never_zero ? kNeverZero : 0));
}

bool matches(const KeyMatch& match, const PacketKey& key) {
  for (uint32_t w = 0; w < key_word::kCount; ++w)
    if (((key.w[w] ^ match.value[w]) & match.mask[w]) != 0) return false;
  for (const int shift : {16, 0}) {
    const uint32_t port = key.w[key_word::kPorts] >> shift & 0xffff;
    if (port < (match.low >> shift & 0xffff) || port > (match.high >> shift & 0xffff)) return false;
  }
  return true;
}

}  // namespace

KeyMatch without_context(const KeyMatch& match) {
  KeyMatch left = match;
  for (const uint32_t w : {key_word::kInPort, key_word::kMetadata, key_word::kMetadata + 1, key_word::kTunnelId,
                           key_word::kTunnelId + 1, key_word::kInPhyPort})
    left.value[w] = left.mask[w] = 0;
  return left;
}

PacketKey key_of(const WideHeader& header) {
  PacketBytes bytes;
  bytes.data = header.bytes;
  bytes.length = std::min<uint32_t>(header.length, sizeof header.bytes);
  return parse_frame(bytes, static_cast<int32_t>(bytes.length), {});
}

bool draw_header(const KeyMatch& match, const TrafficHeaderOptions& options, uint32_t length, TrafficRandom& random,
                 WideHeader& header) {
  constexpr uint8_t kDestination[6] = {2, 0, 0, 0, 0, 1}, kSource[6] = {2, 0, 0, 0, 0, 2};
  KeyDraw draw(match, random);
  header = WideHeader{};
  uint8_t* const frame = header.bytes;
  draw.mac(0, kDestination, frame);
  draw.mac(48, kSource, frame + 6);
  uint32_t at = 12;
  if (!draw.is_open(key_word::kVlan, 0x10000000) && (draw.value(key_word::kVlan) & 0x10000000) != 0) {
    store16(frame + at, 0x8100);
    store16(frame + at + 2, draw.word(key_word::kVlan) >> 16 & 0xefff);
    at += 4;
  }
  const uint32_t type = draw.ether_type();
  store16(frame + at, type);
  at += 2;
  uint8_t* const network = frame + at;
  if (type == kIp4Type || type == kIp6Type) {
    const uint32_t protocol = draw.protocol(options.protocol);
    const uint32_t tos = draw.value(key_word::kTypes) & 0xff;
    if (type == kIp4Type) {
      network[0] = 0x45;
      network[1] = static_cast<uint8_t>(tos);
      network[8] = options.ttl;
      network[9] = static_cast<uint8_t>(protocol);
      draw.address(key_word::kIp4Src, 1, network + 12);
      draw.address(key_word::kIp4Dst, 1, network + 16);
      at += 20;
    } else {
      store32(network, 6u << 28 | tos << 20 | draw.value(key_word::kLabel) >> 12);
      network[6] = static_cast<uint8_t>(protocol);
      network[7] = options.ttl;
      draw.address(key_word::kIp6Src, 4, network + 8);
      draw.address(key_word::kIp6Dst, 4, network + 24);
      at += 40;
    }
    at += draw_transport(draw, type == kIp6Type, protocol, frame + at, random);
    length = std::max(length, at + options.payload);
  } else if (type == kArpType || type == kRarpType) {
    // Ethernet and IPv4, with addresses of 6 and 4 bytes (RFC 826).
    store16(network, 1);
    store16(network + 2, 0x0800);
    store16(network + 4, 0x0604);
    store16(network + 6, draw.is_open(key_word::kPorts, 0xffff0000) ? 1 : draw.word(key_word::kPorts) >> 16);
    const uint32_t hardware[3] = {draw.word(key_word::kLinkLayer), draw.word(key_word::kLinkLayer + 1),
                                  draw.word(key_word::kLinkLayer + 2)};
    store32(network + 8, hardware[0]);
    store16(network + 12, hardware[1] >> 16);
    draw.address(key_word::kIp4Src, 1, network + 14);
    store16(network + 18, hardware[1]);
    store32(network + 20, hardware[2]);
    draw.address(key_word::kIp4Dst, 1, network + 24);
    at += 28;
  } else if (type == 0x8847 || type == 0x8848 || type == 0x88e7) {
    const uint32_t word = draw.word(key_word::kLabel);
    store32(network, type == 0x88e7 ? word >> 8 : (word & 0xffffff00) | options.ttl);
    at += 4;
  }
  header.size = static_cast<uint8_t>(at);
  fit(header, std::max(length, options.shortest));
  header.hash = toeplitz_frame(frame, std::min<uint32_t>(header.length, sizeof header.bytes));
  return matches(without_context(match), key_of(header));
}

bool is_narrow(const KeyMatch& match) {
  const bool tagged = (match.mask[key_word::kVlan] & match.value[key_word::kVlan] & 0x10000000) != 0;
  const uint32_t mask = match.mask[key_word::kTypes] >> 16;
  return !tagged && (mask == 0 || (mask == 0xffff && match.value[key_word::kTypes] >> 16 == kIp4Type));
}

NarrowHeader narrowed(const WideHeader& header) {
  NarrowHeader narrow;
  std::memcpy(narrow.bytes, header.bytes, sizeof narrow.bytes);
  narrow.hash = header.hash;
  narrow.length = header.length;
  narrow.size = header.size;
  narrow.checksum = header.checksum;
  return narrow;
}

void set_length(NarrowHeader& header, uint32_t length) { fit(header, length); }
void set_length(WideHeader& header, uint32_t length) { fit(header, length); }

}  // namespace headrace
