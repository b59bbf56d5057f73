#include "elements/icmp/ICMPPingEncap.hh"

#include "elements/icmp/echo_request.hh"
#include "elements/ip/address_values.hh"

namespace headrace {

namespace {
enum Reason { kTooLong, kNoRoom };
constexpr uint8_t kEncapTtl = 255;
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
  write_echo_request(*p, src_, dst_, kEncapTtl, identifier_, number);
  return p;
}

void ICMPPingEncap::add_handlers(Handlers& handlers) {
  read_write_value(handlers, "src", src_, {}, Handler::kCalm);
  read_write_value(handlers, "dst", dst_, {}, Handler::kCalm);
}

}  // namespace headrace
