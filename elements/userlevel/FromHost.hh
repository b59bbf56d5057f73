#pragma once
#include "elements/userlevel/host_port.hh"

namespace headrace {

/// Brings the packets that the host, which the router runs on, sends by a virtual Ethernet interface.
///
///     FromHost(DEVNAME [, DST, keyword GATEWAY, ETHER, DST6, HEADROOM, MTU, BURST])
///
/// Output 0, push: Ethernet frames, with the time they were read, their packet type, and spread over the workers by
/// flow.
///
/// Makes a tap device of Linux and takes it up; a ToHost of the same name gives the host frames by it. The host asks by
/// ARP for the addresses of DST; somebody must answer: the network, if the frames go there, or an ARPResponder. The
/// device goes away with the router; one that somebody deleted is made again. A configuration that takes over from a
/// running one goes on with the same device. Needs the rights of root, or CAP_NET_ADMIN. KernelTap is both directions
/// in one element.
///
/// DEVNAME: the device's name.
/// DST: the host's address at the device and its network, such as 10.0.0.1/24. Default: none, or what the device has.
/// GATEWAY: the host's default route goes by this address. Default none.
/// ETHER: the device's Ethernet address. Default: one that the system makes.
/// DST6: the same as DST for IPv6.
/// HEADROOM: free bytes before the data. Default 128.
/// MTU: longest packets in either direction, without Ethernet header. Default 1500.
/// BURST: most frames read in a row. Default 32.
///
/// Handlers: `dev_name` (r); `count`, `byte_count` (r) frames from the host and their bytes; `sent` (r) frames that it
/// took; `drops` (r) frames lost; `reset_counts` (w).
class FromHost final : public HostPort {
 public:
  static constexpr Ports kPorts{"0/1"};
  static constexpr Processing kProcessing{"h/h"};

  Status configure(Args& args) override;
};

HEADRACE_ELEMENT(FromHost)

}  // namespace headrace
