#include "elements/ip/IPEncap.hh"

#include "headrace/checksum.hh"
#include "headrace/router.hh"

namespace headrace {

namespace {

/// The ECN field: ECT takes true and false beside the numbers of the two code points.
struct EctArg {
  bool parse(std::string_view text, uint8_t& out, const ArgContext& context) const {
    bool on = false;
    if (text == "2")
      out = 2;
    else if (parse_argument(text, on, ArgContext(context.scope())))
      out = on ? 1 : 0;
    else
      return context.error("bad ECT value '{}', expected true, false or 2", text);
    return true;
  }
};

/// Bits of the type-of-service byte (RFC 3168, section 5).
constexpr uint8_t kEct1 = 1, kEct0 = 2, kCongestion = 3;

}  // namespace

Status IPEncap::configure(Args& args) {
  uint8_t protocol = 0, ttl = 250, ect = 0;
  IpAddress src, dst;
  std::string dst_text;
  std::optional<uint8_t> tos, dscp;
  bool congestion = false, dont_fragment = false;
  if (!args.read_mp("PROTO", protocol, IpProtocol())
           .read_mp("SRC", src)
           .read_mp("DST", dst_text, AnyArg())
           .read("TOS", tos)
           .read("TTL", ttl)
           .read("DSCP", dscp, Between{0, 63})
           .read("ECT", ect, EctArg())
           .read("CE", congestion)
           .read("DF", dont_fragment)
           .complete())
    return Status::failed();
  const bool from_annotation = dst_text == "DST_ANNO";
  if (!from_annotation && !parse_argument(dst_text, dst, ArgContext(args.scope())))
    return args.errors().error("DST: expected an IP address or DST_ANNO");
  if (tos && dscp) return args.errors().error("cannot set both TOS and DSCP");
  if (tos && (ect || congestion)) return args.errors().error("cannot set both TOS and ECN bits");
  if (ect && congestion) return args.errors().error("can set at most one ECN option");

  header_ = {};
  header_.version_ihl = 0x45;
  header_.tos = tos.value_or(static_cast<uint8_t>(dscp.value_or(0) << 2 | (congestion ? kCongestion
                                                                           : ect == 1 ? kEct1
                                                                           : ect == 2 ? kEct0
                                                                                      : 0)));
  header_.fragment = dont_fragment ? 0x4000 : 0;
  header_.ttl = ttl;
  header_.protocol = protocol;
  header_.src = src;
  header_.dst = dst;
  dst_from_annotation_ = from_annotation;
  count_reasons({"no room in front", "too long for IP"});
  return {};
}

Packet* IPEncap::act(Packet* p, Emitter&) {
  if (p->length() > 65535 - sizeof(Ip4Header)) {
    drop(p, kTooLong);
    return nullptr;
  }
  if (!p->push(sizeof(Ip4Header))) {
    drop(p, kNoRoom);
    return nullptr;
  }
  p->set_network_header(0, sizeof(Ip4Header));
  auto& ip = *reinterpret_cast<Ip4Header*>(p->data());
  ip = header_;
  if (dst_from_annotation_)
    ip.dst = IpAddress::from_bytes(p->anno() + anno_offset::kDstIp);
  else
    IpAddress(ip.dst).copy_to(p->anno() + anno_offset::kDstIp);
  ip.total_length = static_cast<uint16_t>(p->length());
  const auto workers = static_cast<uint32_t>(router().threads());
  ip.id = static_cast<uint16_t>(sent_.local()++ * workers + static_cast<uint32_t>(thread_id()) % workers);
  set_ip_checksum(ip);
  return p;
}

void IPEncap::add_handlers(Handlers& handlers) {
  handlers.argument("src", "SRC", 1, true);
  handlers.argument("dst", "DST", 2, true);
  // Read what is in effect, not how the argument was written.
  handlers.read("src", [this] { return IpAddress(header_.src).unparse(); });
  handlers.read("dst", [this] { return dst_from_annotation_ ? "DST_ANNO" : IpAddress(header_.dst).unparse(); });
}

}  // namespace headrace
