#include "src/io/pcap/link_type.hh"

#include <pcap/pcap.h>

#include <cstring>

#include "headrace/args.hh"
#include "headrace/headers_of.hh"

namespace headrace::io {

namespace {

struct Name {
  std::string_view name;
  int type;
};
// The first name of a type is the one that is printed.
constexpr Name kNames[] = {
    {"NULL", DLT_NULL},
    {"IP", DLT_RAW},
    {"ETHER", DLT_EN10MB},
    {"FDDI", DLT_FDDI},
    {"ATM", DLT_ATM_RFC1483},
    {"RFC1483", DLT_ATM_RFC1483},
    {"ATM_RFC1483", DLT_ATM_RFC1483},
    {"802_11", DLT_IEEE802_11},
    {"802.11", DLT_IEEE802_11},
    {"802_11_RADIO", DLT_IEEE802_11_RADIO},
    {"802.11_RADIO", DLT_IEEE802_11_RADIO},
    {"SLL", DLT_LINUX_SLL},
    {"SLL2", DLT_LINUX_SLL2},
    {"AIRONET", DLT_AIRONET_HEADER},
    {"HDLC", DLT_C_HDLC},
    {"PPP_HDLC", DLT_PPP_SERIAL},
    {"PPP", DLT_PPP},
    {"SUNATM", DLT_SUNATM},
    {"PRISM", DLT_PRISM_HEADER},
};

constexpr int kFileRaw = 101;  // LINKTYPE_RAW: the systems do not agree on DLT_RAW
constexpr int kNotIp = -1;

/// Reads from the link header; everything beyond the packet's end fails.
class Bytes {
 public:
  Bytes(const uint8_t* data, int length) : data_(data), length_(length) {}
  PacketBytes bytes() const { return {data_, static_cast<uint32_t>(length_)}; }
  int length() const { return length_; }
  bool has(int end) const { return end <= length_; }
  int u8(int at) const { return at < length_ ? data_[at] : kNotIp; }
  int u16(int at) const { return at + 2 <= length_ ? data_[at] << 8 | data_[at + 1] : kNotIp; }

 private:
  const uint8_t* data_;
  int length_;
};

bool is_ip_type(int ethertype) { return ethertype == 0x0800 || ethertype == 0x86dd; }

/// Offset behind an Ethernet type at `at`, past VLAN tags.
int behind_ethertype(const Bytes& b, int at) {
  if (!b.has(at + 2)) return kNotIp;
  uint32_t type;
  at = behind_tags(b.bytes(), at, b.length(), type);
  return is_ip_type(static_cast<int>(type)) ? at : kNotIp;
}

int behind_fddi(const Bytes& b, int at);

/// Behind an LLC header at `at` (RFC 1483, RFC 2684).
int behind_llc(const Bytes& b, int at) {
  constexpr int kIpSap = 0x06, kSnapSap = 0xaa;
  if (b.u8(at) == kIpSap && b.u8(at + 1) == kIpSap) return at + 4;
  if (b.u8(at) != kSnapSap || b.u8(at + 1) != kSnapSap || !b.has(at + 8)) return kNotIp;
  const int organization = b.u8(at + 3) << 16 | b.u16(at + 4);
  if (organization == 0x000000 || organization == 0x0000f8) return behind_ethertype(b, at + 6);
  if (organization == 0x0080c2) {
    const int bridged = b.u16(at + 6);
    if (bridged == 0x0001 || bridged == 0x0007) return behind_ethertype(b, at + 8 + 12);
    if (bridged == 0x0004 || bridged == 0x000a) return behind_fddi(b, at + 8 + 1);
  }
  return kNotIp;
}

int behind_fddi(const Bytes& b, int at) {
  // The frame control must say "asynchronous LLC".
  return b.has(at + 13) && (b.u8(at) & 0xf0) == 0x50 ? behind_llc(b, at + 13) : kNotIp;
}

int behind_wifi(const Bytes& b, int at) {
  if (!b.has(at + 24) || (b.u8(at) & 0x0c) != 0x08) return kNotIp;
  const bool four_addresses = (b.u8(at + 1) & 3) == 3;
  const bool qos = (b.u8(at) & 0x80) != 0;
  return behind_llc(b, at + (four_addresses ? 30 : 24) + (qos ? 2 : 0));
}

int behind_ppp(const Bytes& b, int at) {
  if (b.u8(at) == 0xff && b.u8(at + 1) == 0x03) at += 2;
  const int first = b.u8(at);
  if (first == 0x21 || first == 0x57) return at + 1;
  return b.u16(at) == 0x21 || b.u16(at) == 0x57 ? at + 2 : kNotIp;
}

int behind_null(const Bytes& b) {
  if (!b.has(4)) return kNotIp;
  // The family is in the byte order of the machine that captured, and each system numbers IPv6 its own way.
  const int family = b.u16(0) != 0 ? b.u8(0) | b.u8(1) << 8 : b.u16(2);
  return family == 2 || family == 10 || family == 24 || family == 28 || family == 30 ? 4 : kNotIp;
}

int ip_offset(const Bytes& b, int type) {
  switch (type) {
    case DLT_RAW:
    case kFileRaw:
      return 0;
    case DLT_EN10MB:
      return behind_ethertype(b, 12);
    case DLT_FDDI:
      return behind_fddi(b, 0);
    case DLT_SUNATM:
      return behind_llc(b, 4);
    case DLT_ATM_RFC1483:
      return behind_llc(b, 0);
    case DLT_LINUX_SLL:
      return is_ip_type(b.u16(14)) ? 16 : kNotIp;
    case DLT_LINUX_SLL2:
      return is_ip_type(b.u16(0)) ? 20 : kNotIp;
    case DLT_C_HDLC:
      return is_ip_type(b.u16(2)) ? 4 : kNotIp;
    case DLT_PPP_SERIAL:
      if (b.u8(0) == 0x0f || b.u8(0) == 0x8f) return is_ip_type(b.u16(2)) ? 4 : kNotIp;
      return behind_ppp(b, 0);
    case DLT_PPP:
      return behind_ppp(b, 0);
    case DLT_IEEE802_11:
      return behind_wifi(b, 0);
    case DLT_PRISM_HEADER:
      return behind_wifi(b, 144);
    case DLT_IEEE802_11_RADIO: {
      const int header = b.has(4) ? b.u8(2) | b.u8(3) << 8 : 0;
      return header >= 8 ? behind_wifi(b, header) : kNotIp;
    }
    case DLT_NULL:
      return behind_null(b);
    default:
      return kNotIp;
  }
}

}  // namespace

int parse_link_type(std::string_view name) {
  for (const Name& n : kNames)
    if (n.name == name) return n.type;
  uint16_t number;
  if (name.size() >= 2 && name[0] == '#' && parse_argument(name.substr(1), number, ArgContext())) return number;
  return -1;
}

std::string link_type_name(int type) {
  for (const Name& n : kNames)
    if (n.type == type) return std::string(n.name);
  return type < 0 ? "<none>" : "#" + std::to_string(type);
}

int file_link_type(int type) {
  switch (type) {
    case DLT_RAW:
      return kFileRaw;
    case DLT_ATM_RFC1483:
      return 100;
    case DLT_C_HDLC:
      return 104;
    default:
      return type;
  }
}

bool can_find_ip(int type) {
  if (type == kFileRaw) return true;
  for (const Name& n : kNames)
    if (n.type == type) return type != DLT_AIRONET_HEADER;
  return false;
}

bool mark_ip_header(Packet& p, int type) {
  const int length = static_cast<int>(p.length());
  const int offset = ip_offset(Bytes(p.data(), length), type);
  if (offset < 0 || offset + 20 > length) return false;
  const uint8_t* ip = p.data() + offset;
  if (ip[0] >> 4 == 4) {
    const int header = (ip[0] & 15) * 4;
    if (header < 20 || offset + header > length) return false;
    p.set_network_header(offset, header);
    std::memcpy(p.anno() + anno_offset::kDstIp, ip + 16, 4);
    return true;
  }
  constexpr int kIp6Header = 40;
  if (ip[0] >> 4 != 6 || offset + kIp6Header > length) return false;
  p.set_network_header(offset, kIp6Header);
  return true;
}

}  // namespace headrace::io
