#include "elements/ip/ResetIPChecksum.hh"

#include "headrace/checksum.hh"

namespace headrace {

Status ResetIPChecksum::configure(Args& args) { return args.read_p("L4", transport).complete(); }

void ResetIPChecksum::add_handlers(Handlers& handlers, ShaderElementBase& element) {
  handlers.read("drops", [&element] { return std::to_string(element.counter(kBad)); });
}

Next ResetIPChecksum::escape(Packet*& p, Emitter& emit) const {
  Ip4Header& ip = *ip4_header(*p);  // shade has looked at its length
  set_ip_checksum(ip);
  if (ip.is_fragment()) return 0;
  const int length = ip.total_length - ip.header_length();
  const bool tcp = ip.protocol == ip_protocol::kTcp;
  const int least = tcp ? int{sizeof(TcpHeader)} : int{sizeof(UdpHeader)};
  if (length < least || length > p->network_length() - ip.header_length()) {
    static_cast<ShaderElementBase&>(emit.element()).count_event(kBad);
    return kDrop;
  }
  uint8_t* const segment = ip.bytes() + ip.header_length();
  Net16& sum = tcp ? reinterpret_cast<TcpHeader*>(segment)->checksum : reinterpret_cast<UdpHeader*>(segment)->checksum;
  sum = 0;
  const uint16_t checksum = transport_checksum(ip, segment, static_cast<size_t>(length));
  // A UDP sum of zero would say that there is none (RFC 768).
  sum = !tcp && checksum == 0 ? uint16_t{0xffff} : checksum;
  return 0;
}

}  // namespace headrace
