#pragma once
#include "elements/devices/host_port.hh"

namespace headrace {

/// Receives the packets that the host on which the router runs sends by a virtual Ethernet interface.
///
///     FromHost(DEVNAME [, DST, keyword GATEWAY, ETHER, DST6, HEADROOM, MTU, BURST])
///
/// Output 0, push: Ethernet frames, with the time they were read, their packet type, and spread over the workers by
/// flow.
///
/// Creates a Linux tap device and brings it up; a ToHost with the same name sends frames to the host through it. The
/// host asks by ARP for the addresses of DST; something must answer: the network, if the frames go there, or an
/// ARPResponder. The device is removed when the router stops; if it is deleted earlier, the element creates it again.
/// In a hot swap the new configuration keeps using the device. Needs root, or CAP_NET_ADMIN. KernelTap is both
/// directions in one element.
///
/// DEVNAME: the device's name.
/// DST: the host's address at the device and its network, such as 10.0.0.1/24. Default: none, or what the device has.
/// GATEWAY: the host's default route goes by this address. Default none.
/// ETHER: the device's Ethernet address. Default: chosen by the system.
/// DST6: the same as DST for IPv6.
/// HEADROOM: free bytes before the data. Default 128.
/// MTU: maximum packet length in either direction, without Ethernet header. Default 1500.
/// BURST: maximum number of frames read in a row. Default 32.
///
/// Handlers: `dev_name` (r); `count`, `byte_count` (r) frames from the host and their bytes; `sent` (r) frames that it
/// accepted; `drops` (r) frames lost; `reset_counts` (w).
class FromHost final : public HostPort {
 public:
  static constexpr Ports kPorts{"0/1"};
  static constexpr Processing kProcessing{"h/h"};

  Status configure(Args& args) override;
};

HEADRACE_ELEMENT(FromHost)

}  // namespace headrace
