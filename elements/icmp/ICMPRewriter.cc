#include "elements/icmp/ICMPRewriter.hh"

#include <optional>

#include "elements/icmp/ping_checksum.hh"
#include "headrace/router.hh"
#include "headrace/text.hh"

namespace headrace {

namespace {

bool has_ports(uint8_t protocol) {
  return protocol == ip_protocol::kTcp || protocol == ip_protocol::kUdp || protocol == ip_protocol::kDccp;
}

/// Changes of 16-bit words, summed up for checksums that cover them (RFC 1624).
class Words {
 public:
  void replace(uint16_t before, uint16_t after) { sum_ += static_cast<uint16_t>(~before) + uint32_t{after}; }
  void replace(IpAddress before, IpAddress after) {
    replace(static_cast<uint16_t>(before.host_order() >> 16), static_cast<uint16_t>(after.host_order() >> 16));
    replace(static_cast<uint16_t>(before.host_order()), static_cast<uint16_t>(after.host_order()));
  }
  /// Repairs a checksum.
  void repair(Net16& checksum) const {
    if (sum_ % 0xffff == 0) return;  // nothing changed
    uint32_t sum = static_cast<uint16_t>(~static_cast<uint16_t>(checksum)) + sum_;
    while (sum >> 16) sum = (sum & 0xffff) + (sum >> 16);
    checksum = static_cast<uint16_t>(~sum);
  }
  /// Repairs one that another checksum covers.
  void repair_within(Net16& checksum, bool zero_is_none, Words& outer) const {
    const uint16_t before = checksum;
    repair(checksum);
    if (zero_is_none && checksum == 0) checksum = 0xffff;
    outer.replace(before, checksum);
  }

 private:
  uint32_t sum_ = 0;
};

}  // namespace

Status ICMPRewriter::configure(Args& args) {
  std::string maps;
  AnnotationArg<1> reply_anno;
  bool with_reply_anno = false;
  if (!args.read_mp("MAPS", maps, AnyArg())
           .read("DST_ANNO", dst_anno_)
           .read_status("REPLY_ANNO", reply_anno, with_reply_anno)
           .complete())
    return Status::failed();
  if (with_reply_anno) reply_anno_ = reply_anno;
  count_reasons({"no ICMP error about a known flow", "not ICMP"});

  Status status;
  for (const std::string& word : detail::words_of(maps)) {
    const size_t colon = word.find(':');
    const std::string name = word.substr(0, colon);
    Map map{dynamic_cast<RewriterBase*>(router().find(name, this)), -1};
    const std::optional<int> offset =
        colon == std::string::npos ? -1 : whole_number<int>(std::string_view(word).substr(colon + 1));
    if (offset) map.offset = *offset;
    if (!map.rewriter || !offset)
      status = args.errors().error("{} not an IP rewriter", name);
    else if (map.offset >= 0 && map.offset + map.rewriter->noutputs() > noutputs())
      status = args.errors().error("{} port offset requires more than {} {}", word, noutputs(),
                                   noutputs() == 1 ? "output" : "outputs");
    else
      maps_.push_back(map);
  }
  return status;
}

Packet* ICMPRewriter::act(Packet* p, Emitter& emit) {
  Ip4Header* ip = ip4_header(*p);
  if (!ip || ip->protocol != ip_protocol::kIcmp) {
    drop(p, kNotIcmp);
    return nullptr;
  }
  const int output = ip->is_first_fragment() ? rewrite(*p, *ip) : -1;
  if (output == 0) return p;
  if (output > 0 || noutputs() > 1)
    emit(static_cast<Next>(output > 0 ? output : 1), p);
  else
    drop(p, kOther);
  return nullptr;
}

int ICMPRewriter::rewrite(Packet& p, Ip4Header& ip) const {
  auto& icmp = *reinterpret_cast<IcmpHeader*>(ip.bytes() + ip.header_length());
  const int length = p.network_length() - ip.header_length();
  if (length < 8 + 20) return -1;
  if (icmp.type != IcmpHeader::kUnreachable && icmp.type != IcmpHeader::kTimeExceeded &&
      icmp.type != IcmpHeader::kParameterProblem && icmp.type != IcmpHeader::kSourceQuench &&
      icmp.type != IcmpHeader::kRedirect)
    return -1;
  auto& quoted = *reinterpret_cast<Ip4Header*>(&icmp + 1);
  const int header = quoted.header_length();
  if (quoted.version_ihl >> 4 != 4 || header < 20) return -1;
  const int rest = length - 8 - header;  // quoted bytes behind the quoted IP header
  uint8_t* transport = quoted.bytes() + header;

  // The flow is the one whose packets come back the way that the quoted packet went.
  FlowId back{quoted.dst, quoted.src, 0, 0};
  bool with_transport = false;
  if (rest >= 8 && quoted.is_first_fragment()) {
    if (has_ports(quoted.protocol)) {
      const auto& ports = *reinterpret_cast<const UdpHeader*>(transport);
      back.sport = ports.dst_port;
      back.dport = ports.src_port;
      with_transport = true;
    } else if (quoted.protocol == ip_protocol::kIcmp && transport[0] == IcmpHeader::kEcho) {
      back.sport = static_cast<uint16_t>(reinterpret_cast<const IcmpHeader*>(transport)->rest >> 16);
      with_transport = true;
    }
  }
  const FlowEntry* entry = nullptr;
  const Map* map = nullptr;
  for (size_t i = 0; i < maps_.size() && !entry; ++i) {
    map = &maps_[i];
    entry = map->rewriter->find_reply(quoted.protocol, back);
  }
  if (!entry) return -1;
  // What a packet on that way back becomes; an address that does not count in the flow stays.
  const FlowId to = entry->rewritten();
  const IpAddress new_src = entry->id().dst ? to.dst : IpAddress(quoted.src);
  const IpAddress new_dst = entry->id().src ? to.src : IpAddress(quoted.dst);

  // The message goes to the sender of the quoted packet, and may come from its receiver.
  Words outer;
  if (IpAddress(ip.src) == IpAddress(quoted.dst)) {
    outer.replace(ip.src, new_dst);
    ip.src = new_dst;
  }
  if (IpAddress(ip.dst) == IpAddress(quoted.src)) {
    outer.replace(ip.dst, new_src);
    ip.dst = new_src;
    if (dst_anno_) new_src.copy_to(p.anno() + anno_offset::kDstIp);
  }
  outer.repair(ip.checksum);
  if (entry->is_reply() && reply_anno_ >= 0) p.set_anno_u8(reply_anno_, entry->flow().reply_anno());

  Words addresses, message;
  addresses.replace(quoted.src, new_src);
  addresses.replace(quoted.dst, new_dst);
  message = addresses;
  quoted.src = new_src;
  quoted.dst = new_dst;
  addresses.repair_within(quoted.checksum, false, message);

  if (with_transport && quoted.protocol == ip_protocol::kIcmp) {
    const auto before = static_cast<uint16_t>(reinterpret_cast<const IcmpHeader*>(transport)->rest >> 16);
    if (entry->id().dport != 0 || entry->id().sport != 0) {
      uint16_t checksums[2];
      set_ping_identifier(transport, rest, to.dport, checksums);
      message.replace(before, to.dport);
      message.replace(checksums[0], checksums[1]);
    }
  } else if (quoted.is_first_fragment() && has_ports(quoted.protocol) && rest >= 8) {
    auto& udp = *reinterpret_cast<UdpHeader*>(transport);  // the ports of TCP and DCCP are at the same place
    Words pseudo = addresses;
    if (entry->id().sport != 0 || entry->id().dport != 0) {
      for (Words* words : {&message, &pseudo}) {
        words->replace(udp.src_port, to.dport);
        words->replace(udp.dst_port, to.sport);
      }
      udp.src_port = to.dport;
      udp.dst_port = to.sport;
    }
    if (quoted.protocol == ip_protocol::kTcp) {
      if (rest >= 18) pseudo.repair_within(reinterpret_cast<TcpHeader*>(transport)->checksum, false, message);
    } else if (quoted.protocol != ip_protocol::kUdp || udp.checksum != 0) {
      pseudo.repair_within(udp.checksum, quoted.protocol == ip_protocol::kUdp, message);
    }
  }
  message.repair(icmp.checksum);
  return map->offset >= 0 ? map->offset + entry->output() : 0;
}

}  // namespace headrace
