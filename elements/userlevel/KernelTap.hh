#pragma once
#include "elements/userlevel/kernel_tun.hh"

namespace headrace {

/// A virtual Ethernet interface between the router and the host that it runs on.
///
///     KernelTap(ADDR/MASK [, GATEWAY, keyword ETHER, MTU, HEADROOM, BURST, DEVNAME, IGNORE_QUEUE_OVERFLOWS])
///
/// Input 0 (optional), push or pull: Ethernet frames for the host, which receives them at the interface. Output 0,
/// push: frames that the host sends by it, with the time they were read, their packet type, and spread over the workers
/// by flow. Output 1 (optional): nothing; it is there for KernelTun.
///
/// Makes a tap device of Linux with the address and network mask, and takes it up. So `ping`, a server or a routing
/// daemon on the router's own addresses works: what the router receives for itself goes into a KernelTap, and what
/// comes out of it is sent. The host asks by ARP for the addresses of ADDR/MASK; somebody must answer: the network, if
/// the frames go there, or an ARPResponder. The device goes away with the router; one that somebody deleted is made
/// again. A configuration that takes over from a running one goes on with the same device. Needs the rights of root, or
/// CAP_NET_ADMIN.
///
/// ADDR/MASK: the host's address at the device; 0.0.0.0/0 for none.
/// GATEWAY: the host's default route goes by this address. Default none.
/// ETHER: the device's Ethernet address: frames to other ones are ignored by the host. Default 00:01:02:03:04:05.
/// MTU: longest packets in either direction, without Ethernet header. Default 1500.
/// HEADROOM: free bytes before the data. Default 128.
/// BURST: most frames read in a row. Default 32.
/// DEVNAME: the device's name. Default: made by the system, such as tap0.
/// IGNORE_QUEUE_OVERFLOWS: understood; overflows are counted, not printed.
///
/// Handlers: `dev_name` (r); `count`, `byte_count` (r) frames from the host and their bytes; `sent` (r) frames that it
/// took; `drops` (r) frames lost; `reset_counts` (w).
class KernelTap final : public KernelDevice {
 public:
  KernelTap() : KernelDevice(true) {}
  Status configure(Args& args) override { return configure_device(args, Packet::kDefaultHeadroom); }
};

HEADRACE_ELEMENT(KernelTap)

}  // namespace headrace
