#include "elements/icmp/ICMPPingResponder.hh"

#include <algorithm>

#include "elements/ip/address_values.hh"
#include "headrace/checksum.hh"

namespace headrace {

bool ICMPPingResponder::can_be_answered(const Packet& p, const Ip4Header& ip) const {
  const IpAddress to = ip.dst;
  return ip.protocol == ip_protocol::kIcmp && !ip.is_fragment() &&
         p.network_length() >= ip.header_length() + static_cast<int>(sizeof(IcmpHeader)) &&
         ip.bytes()[ip.header_length()] == IcmpHeader::kEcho && !to.is_broadcast() && !to.is_multicast() &&
         to.host_order() >> 24 != 0 && p.packet_type() != PacketType::kBroadcast &&
         p.packet_type() != PacketType::kMulticast &&
         std::find(bad_addresses_.begin(), bad_addresses_.end(), to) == bad_addresses_.end();
}

Status ICMPPingResponder::configure(Args& args) {
  bad_addresses_.clear();
  count_reasons({"not an echo request to one host"});
  return args.read("BADADDRS", bad_addresses_).complete();
}

Packet* ICMPPingResponder::act(Packet* p, Emitter& emit) {
  Ip4Header* ip = ip4_header(*p);
  if (!ip || !can_be_answered(*p, *ip)) {
    emit(1, p);
    return nullptr;
  }

  // Exchanging the addresses leaves the sum as it is.
  const IpAddress destination = ip->src;
  ip->src = ip->dst;
  ip->dst = destination;
  uint16_t sum = checksum_replace16(ip->checksum, ip->fragment, 0);
  ip->fragment = 0;
  sum = checksum_replace16(sum, static_cast<uint16_t>(ip->ttl << 8 | ip->protocol), 255 << 8 | ip_protocol::kIcmp);
  ip->ttl = 255;
  ip->checksum = sum;

  auto& icmp = *reinterpret_cast<IcmpHeader*>(ip->bytes() + ip->header_length());
  sum = checksum_replace16(icmp.checksum, static_cast<uint16_t>(icmp.type << 8 | icmp.code), 0);
  icmp.type = IcmpHeader::kEchoReply;
  icmp.code = 0;
  if (sum == 0) {
    // Only a message of nothing but zeros has a sum of zero and so the checksum 0xffff; the update cannot tell.
    const int length = std::min<int>(ip->total_length, p->network_length()) - ip->header_length();
    icmp.checksum = 0;
    if (length > 0 && internet_checksum(&icmp, static_cast<size_t>(length)) == 0xffff) sum = 0xffff;
  }
  icmp.checksum = sum;

  std::memcpy(p->anno() + anno_offset::kDstIp, &ip->dst, 4);
  p->set_anno_u8(anno_offset::kPaint, 0);
  p->set_timestamp(clock::now());
  return p;
}

}  // namespace headrace
