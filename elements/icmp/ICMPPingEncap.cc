#include "elements/icmp/ICMPPingEncap.hh"

#include "elements/ip/address_values.hh"
#include "headrace/checksum.hh"

namespace headrace {

namespace {
enum Reason { kTooLong, kNoRoom };
constexpr uint8_t kTtl = 255;
}  // namespace

Status ICMPPingEncap::configure(Args& args) {
  count_reasons({"too long for IP", "no room in front"});
  return args.read_mp("SRC", src_).read_mp("DST", dst_).read("IDENTIFIER", identifier_).complete();
}

Packet* ICMPPingEncap::act(Packet* p, Emitter&) {
  constexpr uint32_t kHeaders = sizeof(Ip4Header) + sizeof(IcmpHeader);
  if (p->length() > 65535 - kHeaders) {
    drop(p, kTooLong);
    return nullptr;
  }
  if (!p->push(kHeaders)) {
    drop(p, kNoRoom);
    return nullptr;
  }
  const auto number = static_cast<uint16_t>(count_.fetch_add(1, std::memory_order_relaxed) % 0xffff + 1);
  p->set_network_header(0, sizeof(Ip4Header));
  auto& ip = *reinterpret_cast<Ip4Header*>(p->data());
  ip.version_ihl = 0x45;
  ip.tos = 0;
  ip.total_length = static_cast<uint16_t>(p->length());
  ip.id = number;
  ip.fragment = 0;
  ip.ttl = kTtl;
  ip.protocol = ip_protocol::kIcmp;
  ip.src = src_;
  ip.dst = dst_;
  set_ip_checksum(ip);

  auto& icmp = *reinterpret_cast<IcmpHeader*>(&ip + 1);
  icmp.type = IcmpHeader::kEcho;
  icmp.code = 0;
  icmp.checksum = 0;
  icmp.rest = uint32_t{identifier_} << 16 | number;
  icmp.checksum = internet_checksum(&icmp, p->length() - sizeof(Ip4Header));
  dst_.copy_to(p->anno() + anno_offset::kDstIp);
  return p;
}

void ICMPPingEncap::add_handlers(Handlers& handlers) {
  read_write_value(handlers, "src", src_, {}, Handler::kCalm);
  read_write_value(handlers, "dst", dst_, {}, Handler::kCalm);
}

}  // namespace headrace
