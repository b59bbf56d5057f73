#pragma once
#include "elements/devices/kernel_tun.hh"

namespace headrace {

/// A virtual interface for IP packets between the router and the host that it runs on.
///
///     KernelTun(ADDR/MASK [, GATEWAY, keyword HEADROOM, MTU, BURST, DEVNAME, TAP, IGNORE_QUEUE_OVERFLOWS])
///
/// Input 0 (optional), push or pull: IP packets for the host, without link header. Output 0, push: IP packets that the
/// host sends by the interface, with the network header and, for IPv4, the destination annotation set, spread over the
/// workers by flow. Output 1 (optional): packets that are not IP; without it they are dropped.
///
/// Creates a Linux tun device with the address and network mask, and brings it up. The host never sends packets for
/// ADDR by the interface, since they are its own; packets for other addresses of ADDR/MASK come out of this element.
/// The device is removed when the router stops; if it is deleted earlier, the element creates it again. In a hot swap
/// the new configuration keeps using the device. Needs root, or CAP_NET_ADMIN. See KernelTap for Ethernet frames.
///
/// ADDR/MASK: the host's address at the device; 0.0.0.0/0 for none.
/// GATEWAY: the host's default route goes by this address. Default none.
/// HEADROOM: free bytes before the data. Default 128.
/// MTU: maximum length of packets that the host sends by the device. It takes longer ones, up to 65,535 bytes, such as an
/// IPReassembler makes. Default 1500.
/// BURST: maximum number of packets read in a row. Default 32.
/// DEVNAME: the device's name. Default: chosen by the system, such as tun0.
/// TAP true: a KernelTap, with its keyword ETHER. Default false.
/// IGNORE_QUEUE_OVERFLOWS: accepted but ignored; overflows are counted, not printed.
///
/// Handlers: `dev_name` (r); `count`, `byte_count` (r) packets from the host and their bytes; `sent` (r) packets that
/// it accepted; `drops` (r) packets lost; `reset_counts` (w).
class KernelTun final : public KernelDevice {
 public:
  KernelTun() : KernelDevice(false) {}
  Status configure(Args& args) override { return configure_device(args, Packet::kDefaultHeadroom); }

 protected:
  void deliver(Batch& batch) override;
};

HEADRACE_ELEMENT(KernelTun)

}  // namespace headrace
