#include "elements/icmp/ICMPPingEncap.hh"

#include "elements/icmp/echo_request.hh"
#include "elements/ip/address_values.hh"
#include "headrace/router.hh"

namespace headrace {

namespace {
enum Reason { kTooLong, kNoRoom };
constexpr uint8_t kEncapTtl = 255;
}  // namespace

Status ICMPPingEncap::configure(Args& args) {
  count_reasons({"too long for IP", "no room in front"});
  return args.read_mp("SRC", src_).read_mp("DST", dst_).read("IDENTIFIER", identifier_).complete();
}

uint16_t ICMPPingEncap::next_number() {
  const uint32_t workers = static_cast<uint32_t>(router().threads());
  const uint32_t n = count_.local()++;
  return static_cast<uint16_t>((uint64_t{n} * workers + static_cast<uint32_t>(thread_id())) % 0xffff + 1);
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
  write_echo_request(*p, src_, dst_, kEncapTtl, identifier_, next_number());
  return p;
}

void ICMPPingEncap::add_handlers(Handlers& handlers) {
  handlers.value("src", src_, {}, Handler::kCalm);
  handlers.value("dst", dst_, {}, Handler::kCalm);
}

}  // namespace headrace
