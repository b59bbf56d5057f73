#include "elements/icmp/ICMP6PingResponder.hh"

#include <utility>

#include "elements/ip6/nd_message.hh"
#include "headrace/checksum.hh"
#include "headrace/fields.hh"

namespace headrace {

namespace {

constexpr uint8_t kEcho6 = 128, kEchoReply6 = 129, kReplyHopLimit = 255;

bool is_single_node(const uint8_t* address) {
  const Ip6Address ip = Ip6Address::from_bytes(address);
  return ip && !ip.is_multicast();
}

/// The echo request in a packet that is to be answered, or null.
IcmpHeader* find_request(Packet& p) {
  if (!p.has_network_header() || p.network_length() < static_cast<int>(sizeof(Ip6Header) + sizeof(IcmpHeader)))
    return nullptr;
  auto& ip = *reinterpret_cast<Ip6Header*>(p.network_header());
  auto& icmp = *reinterpret_cast<IcmpHeader*>(&ip + 1);
  const bool request = ip.version_class_flow >> 28 == 6 && ip.next_header == ip_protocol::kIcmp6 &&
                       ip.payload_length >= sizeof(IcmpHeader) && icmp.type == kEcho6;
  return request && is_single_node(ip.src) && is_single_node(ip.dst) ? &icmp : nullptr;
}

}  // namespace

Status ICMP6PingResponder::configure(Args& args) {
  count_reasons({"not an echo request to one node"});
  return args.complete();
}

Packet* ICMP6PingResponder::act(Packet* p, Emitter& emit) {
  IcmpHeader* const icmp = find_request(*p);
  if (icmp == nullptr) {
    emit(1, p);
    return nullptr;
  }
  auto& ip = *reinterpret_cast<Ip6Header*>(p->network_header());
  // Exchanging the addresses leaves the sum as it is.
  std::swap(ip.src, ip.dst);
  ip.hop_limit = kReplyHopLimit;
  icmp->checksum = checksum_replace16(icmp->checksum, static_cast<uint16_t>(icmp->type << 8 | icmp->code),
                                      static_cast<uint16_t>(kEchoReply6 << 8));
  icmp->type = kEchoReply6;
  icmp->code = 0;
  std::memcpy(p->anno() + anno_offset::kDstIp6, ip.dst, sizeof ip.dst);
  p->set_anno_u8(anno_offset::kPaint, 0);
  p->set_timestamp(clock::now());
  return p;
}

}  // namespace headrace
