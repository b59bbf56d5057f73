#include "elements/icmp/ICMPError.hh"

#include <algorithm>
#include <atomic>

#include "elements/ip/address_values.hh"
#include "elements/ip/icmp_names.hh"
#include "headrace/checksum.hh"

namespace headrace {

namespace {

/// The longest IP header, an ICMP header, and what RFC 792 wants quoted at least.
constexpr uint32_t kMinMtu = 60 + 8 + 60 + 8;
/// On the wire it is 64, the usual first value (RFC 1700): the standard router sends errors through its DecIPTTL, and
/// programs like tracepath tell from it how far away a router is.
constexpr uint8_t kErrorTtl = 65;
/// Internetwork control, and the precedence bits.
constexpr uint8_t kPrecedence = 0xc0, kPrecedenceMask = 0xe0;

/// One sequence for the whole process: errors that come from the same address must differ (RFC 791, 3.2).
std::atomic<uint16_t> g_next_id{1};

/// The source route option of a header that has been followed for a while, or null if there is none or it makes no
/// sense.
const uint8_t* find_source_route(const Ip4Header& ip) {
  const uint8_t* bytes = ip.bytes();
  const int end = ip.header_length();
  for (int at = 20; at + 1 < end;) {
    const uint8_t type = bytes[at];
    if (type == ip_option::kEnd) return nullptr;
    if (type == ip_option::kNop) {
      ++at;
      continue;
    }
    const int length = bytes[at + 1];
    if (length < 2 || at + length > end) return nullptr;
    if ((type == ip_option::kLooseSourceRoute || type == ip_option::kStrictSourceRoute) && length >= 3) {
      const int pointer = bytes[at + 2];
      if (pointer >= 4 && pointer % 4 == 0 && pointer <= length + 1) return bytes + at;
    }
    at += length;
  }
  return nullptr;
}

/// The way back to a sender.
struct ReturnPath {
  IpAddress first_hop;
  int length = 0;  ///< of the option, with padding; 0: none
  uint8_t option[40];
};

/// Reverses what a source route (null: none) has passed: the last router first, the sender last (RFC 1122, 3.2.1.8).
ReturnPath reverse_source_route(const uint8_t* route, IpAddress sender) {
  ReturnPath path;
  path.first_hop = sender;
  constexpr int kMostRouters = 9;  // in the 40 bytes of options
  const int passed = route ? std::min((route[2] - 4) / 4, kMostRouters) : 0;
  if (passed == 0) return path;
  const auto router = [&](int n) { return IpAddress::from_bytes(route + 3 + 4 * n); };
  path.first_hop = router(passed - 1);
  IpAddress hops[kMostRouters];
  int count = 0;
  while (count < passed - 1) {
    hops[count] = router(passed - 2 - count);
    ++count;
  }
  // A sender that recorded itself is there already.
  if (router(0) != sender) hops[count++] = sender;
  if (count == 0) return path;
  const int length = 3 + 4 * count;
  std::memcpy(path.option + 3, hops, sizeof(IpAddress) * static_cast<size_t>(count));
  path.option[0] = route[0];
  path.option[1] = static_cast<uint8_t>(length);
  path.option[2] = 4;
  path.length = (length + 3) & ~3;
  std::fill(path.option + length, path.option + path.length, ip_option::kEnd);
  return path;
}

}  // namespace

enum ICMPError::Reason : int {
  kNoHeader,
  kAboutError,
  kLinkBroadcast,
  kDestination,
  kSource,
  kLaterFragment,
  kSourceRouted,
  kOverRate,
  kNoBuffer,
  kNone
};

Status ICMPError::configure(Args& args) {
  IpAddress src;
  std::string type_name, code_name = "0";
  std::vector<IpAddress> bad_addresses;
  uint32_t mtu = 576, rate = 1000, burst = 100;
  uint16_t pmtu = 0;
  bool set_fix_ip_src = true;
  if (!args.read_mp("SRC", src)
           .read_mp("TYPE", type_name, WordArg())
           .read_p("CODE", code_name, WordArg())
           .read_p("BADADDRS", bad_addresses)
           .read("MTU", mtu, Between{kMinMtu, 65535u})
           .read("PMTU", pmtu)
           .read("RATE", rate, Between{0u, ErrorRate::kMostRate})
           .read("BURST", burst, Between{1u, ErrorRate::kMostBurst})
           .read("SET_FIX_ANNO", set_fix_ip_src)
           .read("USE_FIX_ANNO", set_fix_ip_src)
           .complete())
    return Status::failed();
  const std::optional<int> type = find_icmp_type(type_name);
  if (!type) return args.errors().error("TYPE: expected an ICMP type, a name or a number between 0 and 255");
  if (!is_icmp_error(*type)) return args.errors().error("ICMP type {} is not an error type", *type);
  const std::optional<int> code = find_icmp_code(*type, code_name);
  if (!code)
    return args.errors().error("CODE: expected a code of ICMP type {}, a name or a number between 0 and 255", *type);

  src_ = src;
  type_ = *type;
  code_ = *code;
  bad_addresses_ = std::move(bad_addresses);
  mtu_ = mtu;
  pmtu_ = pmtu;
  rate_.rate = rate;
  rate_.burst = burst;
  set_fix_ip_src_ = set_fix_ip_src;
  count_reasons({"no IP header", "about an ICMP error", "link broadcast or multicast", "destination is no host",
                 "source is no host", "not the first fragment", "redirect of a source route", "rate limit",
                 "no buffer"});
  return {};
}

void ICMPError::add_handlers(Handlers& handlers) {
  handlers.value("src", src_);
  read_value(handlers, "mtu", mtu_);
  write_value(handlers, "mtu", mtu_, Between{kMinMtu, 65535u}, {});
  handlers.value("pmtu", pmtu_);
  read_value(handlers, "rate", rate_.rate);
  write_value(handlers, "rate", rate_.rate, Between{0u, ErrorRate::kMostRate}, {});
  read_value(handlers, "burst", rate_.burst);
  write_value(handlers, "burst", rate_.burst, Between{1u, ErrorRate::kMostBurst}, {});
}

bool ICMPError::is_unicast(IpAddress address) const {
  return !address.is_broadcast() && !address.is_multicast() &&
         std::find(bad_addresses_.begin(), bad_addresses_.end(), address) == bad_addresses_.end();
}

bool ICMPError::is_host(IpAddress address) const {
  // Networks 0 and 127, and class E (RFC 1812, 5.3.7).
  const uint32_t net = address.host_order() >> 24;
  return is_unicast(address) && net != 0 && net != 127 && net < 240;
}

ICMPError::Reason ICMPError::find_exclusion(const Packet& p, const Ip4Header& ip, const uint8_t* source_route) const {
  if (ip.protocol == ip_protocol::kIcmp) {
    // Without a type it may be an error.
    const int length = ip.header_length();
    if (p.network_length() < length + 4 || is_icmp_error(ip.bytes()[length])) return kAboutError;
  }
  if (!is_unicast(ip.dst)) return kDestination;
  if (p.packet_type() == PacketType::kBroadcast || p.packet_type() == PacketType::kMulticast) return kLinkBroadcast;
  if (!is_host(ip.src)) return kSource;
  if (!ip.is_first_fragment()) return kLaterFragment;
  if (source_route && type_ == IcmpHeader::kRedirect) return kSourceRouted;
  return kNone;
}

Packet* ICMPError::act(Packet* p, Emitter&) {
  const Ip4Header* ip = ip4_header(*p);
  if (!ip) {
    drop(p, kNoHeader);
    return nullptr;
  }
  const uint8_t* source_route = find_source_route(*ip);
  if (const Reason reason = find_exclusion(*p, *ip, source_route); reason != kNone) {
    drop(p, reason);
    return nullptr;
  }
  if (rate_.is_over()) {
    drop(p, kOverRate);
    return nullptr;
  }
  if (source_route && type_ == IcmpHeader::kParameterProblem && code_ == 0) {
    // The problem may be the route itself.
    const uint8_t* problem = ip->bytes() + p->anno_u8(anno_offset::kIcmpParamProb);
    if (problem >= source_route && problem < source_route + source_route[1]) source_route = nullptr;
  }
  Packet* q = make_error(*p, *ip, source_route);
  if (!q) count_drops(1, kNoBuffer);
  p->kill();
  return q;
}

std::vector<RegionInfo> ICMPError::annotations() const {
  std::vector<RegionInfo> all = declared(Write{anno::dst_ip});
  const auto add = [&all](auto declaration) { all.push_back(declared(declaration)[0]); };
  if (set_fix_ip_src_) add(Write{anno::fix_ip_src});
  if (type_ == IcmpHeader::kParameterProblem && code_ == 0) add(Read{anno::icmp_param_prob});
  if (type_ == IcmpHeader::kRedirect) add(Read{anno::dst_ip});
  return all;
}

Packet* ICMPError::make_error(const Packet& p, const Ip4Header& about, const uint8_t* source_route) const {
  const ReturnPath path = reverse_source_route(source_route, about.src);
  const int header_length = 20 + path.length;
  const int quoted = std::min(p.network_length(), static_cast<int>(mtu_) - header_length - 8);
  const int length = header_length + 8 + quoted;
  Packet* q = Packet::make(static_cast<uint32_t>(length));
  if (!q) return nullptr;
  q->set_network_header(0, header_length);

  auto& icmp = *reinterpret_cast<IcmpHeader*>(q->transport_header());
  icmp.type = static_cast<uint8_t>(type_);
  icmp.code = static_cast<uint8_t>(code_);
  icmp.checksum = 0;
  icmp.rest = 0;
  if (type_ == IcmpHeader::kParameterProblem && code_ == 0)
    icmp.rest = uint32_t{p.anno_u8(anno_offset::kIcmpParamProb)} << 24;
  else if (type_ == IcmpHeader::kRedirect)
    std::memcpy(&icmp.rest, p.anno() + anno_offset::kDstIp, 4);
  else if (type_ == IcmpHeader::kUnreachable && code_ == 4)
    icmp.rest = pmtu_;
  std::memcpy(&icmp + 1, about.bytes(), static_cast<size_t>(quoted));
  icmp.checksum = internet_checksum(&icmp, static_cast<size_t>(8 + quoted));

  auto& ip = *reinterpret_cast<Ip4Header*>(q->network_header());
  ip.version_ihl = static_cast<uint8_t>(0x40 | header_length >> 2);
  ip.tos = type_ == IcmpHeader::kSourceQuench ? static_cast<uint8_t>(about.tos & kPrecedenceMask) : kPrecedence;
  ip.total_length = static_cast<uint16_t>(length);
  ip.id = g_next_id.fetch_add(1, std::memory_order_relaxed);
  ip.fragment = 0;
  ip.ttl = kErrorTtl;
  ip.protocol = ip_protocol::kIcmp;
  ip.src = src_;
  ip.dst = path.first_hop;
  std::memcpy(ip.bytes() + 20, path.option, static_cast<size_t>(path.length));
  set_ip_checksum(ip);

  std::memcpy(q->anno() + anno_offset::kDstIp, &ip.dst, 4);
  if (set_fix_ip_src_) q->set_anno_u8(anno_offset::kFixIpSrc, 1);
  q->set_timestamp(clock::now());
  return q;
}

}  // namespace headrace
