#pragma once
#include "elements/devices/kernel_tun.hh"

namespace headrace {

/// A virtual Ethernet interface between the router and the host that it runs on.
///
///     KernelTap(ADDR/MASK [, GATEWAY, keyword ETHER, MTU, HEADROOM, BURST, DEVNAME, IGNORE_QUEUE_OVERFLOWS])
///
/// Input 0 (optional), push or pull: Ethernet frames for the host, which receives them at the interface. Output 0,
/// push: frames that the host sends by it, with the time they were read, their packet type, and spread over the workers
/// by flow. Output 1 (optional): unused, for compatibility with KernelTun.
///
/// Creates a Linux tap device with the address and network mask, and brings it up. It lets `ping`, a server or a
/// routing daemon use the router's own addresses: send the packets that the router receives for itself into a
/// KernelTap, and forward the packets that come out of it. The host asks by ARP for the addresses of ADDR/MASK;
/// something must answer: the network, if the frames go there, or an ARPResponder. The device is removed when the
/// router stops; if it is deleted earlier, the element creates it again. In a hot swap the new configuration keeps
/// using the device. Needs root, or CAP_NET_ADMIN.
///
/// ADDR/MASK: the host's address at the device; 0.0.0.0/0 for none.
/// GATEWAY: the host's default route goes by this address. Default none.
/// ETHER: the device's Ethernet address: the host ignores frames to other addresses. Default 00:01:02:03:04:05.
/// MTU: maximum packet length in either direction, without Ethernet header. Default 1500.
/// HEADROOM: free bytes before the data. Default 128.
/// BURST: maximum number of frames read in a row. Default 32.
/// DEVNAME: the device's name. Default: chosen by the system, such as tap0.
/// IGNORE_QUEUE_OVERFLOWS: accepted but ignored; overflows are counted, not printed.
///
/// Handlers: `dev_name` (r); `count`, `byte_count` (r) frames from the host and their bytes; `sent` (r) frames that it
/// accepted; `drops` (r) frames lost; `reset_counts` (w).
class KernelTap final : public KernelDevice {
 public:
  KernelTap() : KernelDevice(true) {}
  Status configure(Args& args) override { return configure_device(args, Packet::kDefaultHeadroom); }
};

HEADRACE_ELEMENT(KernelTap)

}  // namespace headrace
