#include "elements/icmp/ICMPIPEncap.hh"

#include <cstring>

#include "elements/ip/address_values.hh"
#include "elements/ip/icmp_names.hh"
#include "headrace/checksum.hh"
#include "headrace/router.hh"

namespace headrace {

namespace {

enum EncapReason { kIcmpTooLong, kIcmpNoRoom };
constexpr uint8_t kIcmpTtl = 255;

bool is_timestamp(uint8_t type) { return type == IcmpHeader::kTimestamp || type == IcmpHeader::kTimestampReply; }

/// True for the messages that have an identifier and a sequence number.
bool is_sequenced(uint8_t type) {
  return type == IcmpHeader::kEcho || type == IcmpHeader::kEchoReply || is_timestamp(type) ||
         type == IcmpHeader::kInfoRequest || type == IcmpHeader::kInfoReply;
}

}  // namespace

Status ICMPIPEncap::configure(Args& args) {
  IpAddress src, dst;
  std::string type_name, code_name = "0";
  uint16_t identifier = 0;
  if (!args.read_mp("SRC", src)
           .read_mp("DST", dst)
           .read_mp("TYPE", type_name, WordArg())
           .read_p("CODE", code_name, WordArg())
           .read("IDENTIFIER", identifier)
           .complete())
    return Status::failed();
  const std::optional<int> type = find_icmp_type(type_name);
  if (!type) return args.errors().error("TYPE: expected an ICMP type, a name or a number between 0 and 255");
  const std::optional<int> code = find_icmp_code(*type, code_name);
  if (!code)
    return args.errors().error("CODE: expected a code of ICMP type {}, a name or a number between 0 and 255", *type);
  src_ = src;
  dst_ = dst;
  type_ = static_cast<uint8_t>(*type);
  code_ = static_cast<uint8_t>(*code);
  identifier_ = identifier;
  count_reasons({"too long for IP", "no room in front"});
  return {};
}

uint16_t ICMPIPEncap::next_number() {
  const uint32_t workers = static_cast<uint32_t>(router().threads());
  const uint32_t n = count_.local()++;
  return static_cast<uint16_t>((uint64_t{n} * workers + static_cast<uint32_t>(thread_id())) % 0xffff + 1);
}

Packet* ICMPIPEncap::act(Packet* p, Emitter&) {
  const uint32_t icmp_length = is_timestamp(type_) ? 20 : 8;
  const uint32_t headers = sizeof(Ip4Header) + icmp_length;
  if (p->length() > 65535 - headers) {
    drop(p, kIcmpTooLong);
    return nullptr;
  }
  if (!p->push(headers)) {
    drop(p, kIcmpNoRoom);
    return nullptr;
  }
  p->set_network_header(0, sizeof(Ip4Header));
  std::memset(p->data(), 0, headers);
  const uint16_t number = next_number();
  auto& ip = *reinterpret_cast<Ip4Header*>(p->data());
  ip.version_ihl = 0x45;
  ip.total_length = static_cast<uint16_t>(p->length());
  ip.id = number;
  ip.ttl = kIcmpTtl;
  ip.protocol = ip_protocol::kIcmp;
  ip.src = src_;
  ip.dst = dst_;
  set_ip_checksum(ip);

  auto& icmp = *reinterpret_cast<IcmpHeader*>(&ip + 1);
  icmp.type = type_;
  icmp.code = code_;
  if (is_sequenced(type_)) icmp.rest = uint32_t{identifier_} << 16 | number;
  icmp.checksum = internet_checksum(&icmp, p->length() - sizeof(Ip4Header));
  dst_.copy_to(p->anno() + anno_offset::kDstIp);
  return p;
}

void ICMPIPEncap::add_handlers(Handlers& handlers) {
  handlers.value("src", src_, {}, Handler::kCalm);
  handlers.value("dst", dst_, {}, Handler::kCalm);
}

}  // namespace headrace
