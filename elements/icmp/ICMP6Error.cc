#include "elements/icmp/ICMP6Error.hh"

#include <algorithm>
#include <optional>

#include "elements/ip/address_values.hh"
#include "elements/ip6/nd_message.hh"
#include "headrace/headers_of.hh"
#include "headrace/ip_protocol.hh"

namespace headrace {

namespace {

constexpr uint32_t kMinMtu6 = 1280;  // RFC 8200, section 5
/// As ICMPError: on the wire it is 64, because errors go through the routing table and a DecIP6HLIM.
constexpr uint8_t kErrorHopLimit = 65;
constexpr uint8_t kUnreachable6 = 1, kPacketTooBig = 2, kTimeExceeded6 = 3, kParameterProblem6 = 4;
constexpr uint8_t kUnrecognizedOption = 2;
/// Types below are errors (RFC 4443, section 2.1); a redirect counts as one here (RFC 4861, section 4.5).
constexpr uint8_t kInformational = 128, kRedirect6 = 137;

struct Icmp6Name {
  int type, code;  // code -1: the name of the type
  std::string_view name;
};
constexpr Icmp6Name kIcmp6Names[] = {
    {kUnreachable6, -1, "unreachable"},
    {kPacketTooBig, -1, "packettoobig"},
    {kTimeExceeded6, -1, "timeexceeded"},
    {kParameterProblem6, -1, "parameterproblem"},
    {kUnreachable6, 0, "noroute"},
    {kUnreachable6, 1, "adminprohibited"},
    {kUnreachable6, 2, "beyondscope"},
    {kUnreachable6, 3, "address"},
    {kUnreachable6, 4, "port"},
    {kUnreachable6, 5, "sourcepolicy"},
    {kUnreachable6, 6, "rejectroute"},
    {kTimeExceeded6, 0, "transit"},
    {kTimeExceeded6, 1, "reassembly"},
    {kParameterProblem6, 0, "header"},
    {kParameterProblem6, 1, "nextheader"},
    {kParameterProblem6, 2, "option"},
};

/// \param type of the code, or -1 to find a type
std::optional<int> find_icmp6(int type, std::string_view name) {
  for (const Icmp6Name& n : kIcmp6Names) {
    if (n.name != name || (type < 0) != (n.code < 0)) continue;
    if (type < 0) return n.type;
    if (n.type == type) return n.code;
  }
  uint8_t number = 0;
  return parse_argument(name, number, ArgContext()) ? std::optional<int>(number) : std::nullopt;
}

}  // namespace

Status ICMP6Error::configure(Args& args) {
  Ip6Address src;
  std::string type_name, code_name = "0";
  uint32_t pmtu = kMinMtu6, rate = 1000, burst = 100;
  if (!args.read_mp("SRC", src)
           .read_mp("TYPE", type_name, WordArg())
           .read_p("CODE", code_name, WordArg())
           .read("PMTU", pmtu, Between{kMinMtu6, 0xffffffffu})
           .read("RATE", rate, Between{0u, ErrorRate::kMostRate})
           .read("BURST", burst, Between{1u, ErrorRate::kMostBurst})
           .complete())
    return Status::failed();
  const std::optional<int> type = find_icmp6(-1, type_name);
  if (!type) return args.errors().error("TYPE: expected an ICMPv6 type, a name or a number between 0 and 255");
  if (*type >= kInformational) return args.errors().error("ICMPv6 type {} is not an error type", *type);
  const std::optional<int> code = find_icmp6(*type, code_name);
  if (!code)
    return args.errors().error("CODE: expected a code of ICMPv6 type {}, a name or a number between 0 and 255", *type);

  src_ = src;
  type_ = *type;
  code_ = *code;
  pmtu_ = pmtu;
  rate_.rate = rate;
  rate_.burst = burst;
  count_reasons({"no IPv6 header", "about an ICMPv6 error", "destination is no node", "link broadcast or multicast",
                 "source is no node", "rate limit", "no buffer"});
  return {};
}

void ICMP6Error::add_handlers(Handlers& handlers) {
  handlers.value("src", src_);
  read_value(handlers, "pmtu", pmtu_);
  write_value(handlers, "pmtu", pmtu_, Between{kMinMtu6, 0xffffffffu}, {});
  read_value(handlers, "rate", rate_.rate);
  write_value(handlers, "rate", rate_.rate, Between{0u, ErrorRate::kMostRate}, {});
  read_value(handlers, "burst", rate_.burst);
  write_value(handlers, "burst", rate_.burst, Between{1u, ErrorRate::kMostBurst}, {});
}

std::vector<RegionInfo> ICMP6Error::annotations() const {
  std::vector<RegionInfo> all = declared(Write{anno::dst_ip6});
  if (type_ == kParameterProblem6) all.push_back(declared(Read{anno::icmp_param_prob})[0]);
  return all;
}

ICMP6Error::Reason ICMP6Error::find_exclusion(const Packet& p) const {
  const auto length = static_cast<uint32_t>(p.network_length());
  const TransportPlace place = find_transport(PacketBytes{p.network_header(), length, 0});
  if (place.version != 6) return kNoHeader;
  if (place.protocol == ip_protocol::kIcmp6) {
    // Without a type it may be an error.
    if (!place.has_header || place.at >= place.end) return kAboutError;
    const uint8_t type = p.network_header()[place.at];
    if (type < kInformational || type == kRedirect6) return kAboutError;
  }
  const auto& ip = *reinterpret_cast<const Ip6Header*>(p.network_header());
  const bool to_groups = type_ == kPacketTooBig || (type_ == kParameterProblem6 && code_ == kUnrecognizedOption);
  if (!to_groups) {
    if (Ip6Address::from_bytes(ip.dst).is_multicast()) return kDestination;
    if (p.packet_type() == PacketType::kBroadcast || p.packet_type() == PacketType::kMulticast) return kLinkBroadcast;
  }
  const Ip6Address source = Ip6Address::from_bytes(ip.src);
  return source.is_multicast() || !source ? kSource : kNone;
}

Packet* ICMP6Error::act(Packet* p, Emitter&) {
  const bool whole = p->has_network_header() && p->network_length() >= static_cast<int>(sizeof(Ip6Header));
  Reason reason = whole ? find_exclusion(*p) : kNoHeader;
  if (reason == kNone && rate_.is_over()) reason = kOverRate;
  if (reason != kNone) {
    drop(p, reason);
    return nullptr;
  }
  Packet* q = make_error(*p);
  if (!q) count_drops(1, kNoBuffer);
  p->kill();
  return q;
}

Packet* ICMP6Error::make_error(const Packet& p) const {
  constexpr uint32_t kHeaders = sizeof(Ip6Header) + sizeof(IcmpHeader);
  const uint32_t quoted = std::min(static_cast<uint32_t>(p.network_length()), kMinMtu6 - kHeaders);
  Packet* q = Packet::make(kHeaders + quoted);
  if (!q) return nullptr;
  q->set_network_header(0, sizeof(Ip6Header));

  auto& icmp = *reinterpret_cast<IcmpHeader*>(q->transport_header());
  icmp.type = static_cast<uint8_t>(type_);
  icmp.code = static_cast<uint8_t>(code_);
  icmp.checksum = 0;
  icmp.rest = type_ == kPacketTooBig ? pmtu_ : type_ == kParameterProblem6 ? p.anno_u8(anno_offset::kIcmpParamProb) : 0;
  std::memcpy(&icmp + 1, p.network_header(), quoted);

  auto& ip = *reinterpret_cast<Ip6Header*>(q->network_header());
  const auto length = static_cast<uint16_t>(sizeof(IcmpHeader) + quoted);
  ip.version_class_flow = 6u << 28;
  ip.payload_length = length;
  ip.next_header = ip_protocol::kIcmp6;
  ip.hop_limit = kErrorHopLimit;
  src_.copy_to(ip.src);
  std::memcpy(ip.dst, reinterpret_cast<const Ip6Header*>(p.network_header())->src, sizeof ip.dst);
  icmp.checksum = icmp6_checksum(ip, &icmp, length);

  std::memcpy(q->anno() + anno_offset::kDstIp6, ip.dst, sizeof ip.dst);
  q->set_timestamp(clock::now());
  return q;
}

}  // namespace headrace
