#include "elements/tcpudp/UDPIPEncap.hh"

#include "headrace/checksum.hh"
#include "headrace/router.hh"

namespace headrace {

namespace {

constexpr uint8_t kDatagramTtl = 250;

/// An address, or DST_ANNO.
struct Destination {
  IpAddress address;
  bool from_annotation = false;
};

struct DestinationArg {
  bool parse(std::string_view text, Destination& out, const ArgContext& context) const {
    out.from_annotation = text == "DST_ANNO";
    return out.from_annotation || parse_argument(text, out.address, context);
  }
};

}  // namespace

Status UDPIPEncap::configure(Args& args) {
  Destination dst;
  IpAddress src;
  uint16_t src_port, dst_port;
  bool checksum = true;
  const TcpUdpPort port{ip_protocol::kUdp};
  if (!args.read_mp("SRC", src)
           .read_mp("SPORT", src_port, port)
           .read_mp("DST", dst, DestinationArg())
           .read_mp("DPORT", dst_port, port)
           .read_p("CHECKSUM", checksum)
           .complete())
    return Status::failed();
  src_ = src;
  dst_ = dst.address;
  dst_from_annotation_ = dst.from_annotation;
  src_port_ = src_port;
  dst_port_ = dst_port;
  checksum_ = checksum;
  count_reasons({"no room in front", "too long for IP"});
  return {};
}

Packet* UDPIPEncap::act(Packet* p, Emitter&) {
  constexpr uint32_t kHeaders = sizeof(Ip4Header) + sizeof(UdpHeader);
  if (p->length() > 65535 - kHeaders) {
    drop(p, kTooLong);
    return nullptr;
  }
  if (!p->push(kHeaders)) {
    drop(p, kNoRoom);
    return nullptr;
  }
  p->set_network_header(0, sizeof(Ip4Header));
  auto& ip = *reinterpret_cast<Ip4Header*>(p->data());
  auto& udp = *reinterpret_cast<UdpHeader*>(&ip + 1);
  if (!dst_from_annotation_) dst_.copy_to(p->anno() + anno_offset::kDstIp);

  ip.version_ihl = 0x45;
  ip.tos = 0;
  ip.total_length = static_cast<uint16_t>(p->length());
  const auto workers = static_cast<uint32_t>(router().threads());
  ip.id = static_cast<uint16_t>(sent_.local()++ * workers + static_cast<uint32_t>(thread_id()) % workers);
  ip.fragment = 0;
  ip.ttl = kDatagramTtl;
  ip.protocol = ip_protocol::kUdp;
  ip.src = src_;
  ip.dst = IpAddress::from_bytes(p->anno() + anno_offset::kDstIp);
  set_ip_checksum(ip);

  const uint32_t length = p->length() - sizeof(Ip4Header);
  udp.src_port = src_port_;
  udp.dst_port = dst_port_;
  udp.length = static_cast<uint16_t>(length);
  udp.checksum = 0;
  if (checksum_) {
    // Zero would say that there is no checksum (RFC 768).
    const uint16_t sum = transport_checksum(ip, &udp, length);
    udp.checksum = sum ? sum : 0xffff;
  }
  return p;
}

void UDPIPEncap::add_handlers(Handlers& handlers) {
  handlers.argument("src", "SRC", 0, true);
  handlers.argument("sport", "SPORT", 1, true);
  handlers.argument("dst", "DST", 2, true);
  handlers.argument("dport", "DPORT", 3, true);
  // Read what is in effect, not how the argument was written.
  handlers.read("src", [this] { return src_.unparse(); });
  handlers.read("sport", [this] { return std::to_string(src_port_); });
  handlers.read("dst", [this] { return dst_.unparse(); });
  handlers.read("dport", [this] { return std::to_string(dst_port_); });
}

}  // namespace headrace
