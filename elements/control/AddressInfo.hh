#pragma once
#include <headrace/element.hh>

namespace headrace {

/// Gives names to addresses.
///
///     AddressInfo(NAME ADDRESS..., ...)
///
/// Each argument gives a name to one or more addresses of different kinds. Other elements can then use the name in
/// their arguments: IPv4 (`18.26.4.44`) and IPv6 addresses, either with a prefix (`18.26.4.44/24`), and Ethernet
/// addresses (`00:50:ba:85:84:a9`). A prefix with host bits also names its address. The kind is chosen by the argument
/// that uses the name, or by a suffix: `NAME:ip`, `NAME:ipnet`, `NAME:bcast`, `NAME:gw`, `NAME:ip6`, `NAME:ip6net`,
/// `NAME:eth`.
///
///     AddressInfo(me 18.26.4.24/24 00:50:ba:85:84:a9);
///     ... -> ARPResponder(me) -> ...
///
/// Names are known in the compound element that the AddressInfo is part of, and in those within it. An undefined name
/// may be the name of a network device: it stands for the device's addresses.
class AddressInfo final : public Element {
 public:
  static constexpr Ports kPorts{"0/0"};
  int configure_phase() const override { return kInfoPhase; }
  Status configure(Args& args) override;
};

HEADRACE_ELEMENT(AddressInfo)

}  // namespace headrace
