#include "elements/ip6/nd_message.hh"

#include <algorithm>
#include <array>

#include "headrace/checksum.hh"

namespace headrace {

namespace {

constexpr uint8_t kNdHopLimit = 255;
constexpr size_t kIcmpAt = sizeof(EtherHeader) + sizeof(Ip6Header);
/// Up to the target.
constexpr size_t kFixedLength = offsetof(NdMessage, option);

/// Iterates over the options after the target. The second byte of each is its length in units of eight bytes.
struct NdOptions {
  explicit NdOptions(const NdMessage& nd)
      : at(&nd.option), end(&nd.type + static_cast<uint16_t>(nd.ip6.payload_length)) {}
  /// Moves to the next option. Returns false at the end, or if the option is incomplete.
  bool next() {
    if (end - at < kUnit || at[1] == 0 || end - at < at[1] * kUnit) return false;
    option = at;
    at += option[1] * kUnit;
    return true;
  }
  static constexpr int kUnit = 8;
  const uint8_t* option = nullptr;
  const uint8_t* at;
  const uint8_t* end;
};

bool nd_options_are_whole(const NdMessage& nd) {
  NdOptions options(nd);
  while (options.next()) {
  }
  return options.at == options.end;
}

}  // namespace

uint16_t icmp6_checksum(const Ip6Header& ip6, const void* message, uint16_t length) {
  return ChecksumSum().add(ip6.src, 32).add16(length).add16(ip_protocol::kIcmp6).add(message, length).checksum();
}

const NdMessage* nd_message(const Packet& p, uint8_t type) {
  if (p.length() < kFixedLength) return nullptr;
  const auto& nd = *reinterpret_cast<const NdMessage*>(p.data());
  const uint16_t length = nd.ip6.payload_length;
  if (nd.ether.type != eth::kTypeIp6 || nd.ip6.version_class_flow >> 28 != 6 ||
      nd.ip6.next_header != ip_protocol::kIcmp6 || nd.ip6.hop_limit != kNdHopLimit || nd.type != type || nd.code != 0 ||
      length < kFixedLength - kIcmpAt || length > p.length() - kIcmpAt ||
      Ip6Address::from_bytes(nd.target).is_multicast())
    return nullptr;
  return nd_options_are_whole(nd) && icmp6_checksum(nd.ip6, &nd.type, length) == 0 ? &nd : nullptr;
}

std::optional<EtherAddress> nd_ether(const NdMessage& nd, uint8_t option) {
  for (NdOptions options(nd); options.next();)
    if (options.option[0] == option && options.option[1] == 1) return EtherAddress::from_bytes(options.option + 2);
  return {};
}

Ip6Address solicited_node(const Ip6Address& target) {
  std::array<uint8_t, 16> bytes{0xff, 0x02, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0xff};
  std::copy(target.data() + 13, target.data() + 16, bytes.begin() + 13);
  return Ip6Address(bytes);
}

EtherAddress ip6_multicast_group(const Ip6Address& ip) {
  const auto& b = ip.bytes();
  return EtherAddress({0x33, 0x33, b[12], b[13], b[14], b[15]});
}

Packet* make_nd_message(uint8_t type, uint8_t flags, const EtherAddress& from_ether, const Ip6Address& from,
                        const EtherAddress& to_ether, const Ip6Address& to, const Ip6Address& target, uint8_t option) {
  Packet* p = Packet::make(sizeof(NdMessage));
  if (!p) return nullptr;
  std::memset(p->data(), 0, sizeof(NdMessage));
  auto& nd = *reinterpret_cast<NdMessage*>(p->data());
  nd.ether.dst = to_ether;
  nd.ether.src = from_ether;
  nd.ether.type = eth::kTypeIp6;
  nd.ip6.version_class_flow = uint32_t{6} << 28;
  nd.ip6.payload_length = NdMessage::kIcmpLength;
  nd.ip6.next_header = ip_protocol::kIcmp6;
  nd.ip6.hop_limit = kNdHopLimit;
  from.copy_to(nd.ip6.src);
  to.copy_to(nd.ip6.dst);
  nd.type = type;
  nd.flags = flags;
  target.copy_to(nd.target);
  nd.option = option;
  nd.option_units = 1;
  nd.option_ether = from_ether;
  nd.checksum = icmp6_checksum(nd.ip6, &nd.type, NdMessage::kIcmpLength);
  p->set_mac_header();
  p->set_network_header(sizeof(EtherHeader), sizeof(Ip6Header));
  return p;
}

}  // namespace headrace
