#pragma once
#include <headrace/element.hh>

#include "elements/standard/chatter.hh"

namespace headrace {

/// Brings the packets that the host, which the router runs on, sends by the router. Without a device that leads there
/// nothing comes, and it says so when the router starts.
///
///     FromHost(DEVNAME [, DST, keyword GATEWAY, ETHER, DST6, HEADROOM, MTU])
///
/// Output 0, push.
///
/// Handlers: `dev_name` (r).
class FromHost final : public Element {
 public:
  static constexpr Ports kPorts{"0/1"};
  static constexpr Processing kProcessing{"h/h"};

  Status configure(Args& args) override {
    IpPrefix dst;
    IpAddress gateway;
    EtherAddress ether;
    Ip6Prefix dst6;
    uint32_t headroom, mtu;
    args.read_mp("DEVNAME", device_).read_p("DST", dst).read("GATEWAY", gateway).read("ETHER", ether);
    args.read("DST6", dst6).read("HEADROOM", headroom).read("MTU", mtu).read("MTU_OUT", mtu);
    return args.complete();
  }
  Status initialize(Errors&) override {
    chatter("{}: no device leads from the host; nothing comes from it", declaration());
    return {};
  }
  void add_handlers(Handlers& handlers) override {
    handlers.read("dev_name", [this] { return device_; });
  }

 private:
  std::string device_;
};

HEADRACE_ELEMENT(FromHost)

}  // namespace headrace
