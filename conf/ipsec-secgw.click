// An IPsec gateway between two Linux interfaces that is configured by a file of DPDK's ipsec-secgw: policies,
// associations, routes and neighbors (docs/ipsec.md).
//
//     headrace run conf/ipsec-secgw.click CONFIG=gateway.cfg WAN=eth0 LAN=eth1 WAN_ADDR=192.0.2.1/24 \
//         LAN_ADDR=10.1.0.1/16 STATE=/var/lib/headrace/ipsec.state
//
// For CONFIG, WAN is port 0, the unprotected side, and LAN is port 1, the protected one. All neighbors are in the file:
// there is one for each port. Where hosts must be found by ARP, use ipsec-gateway.click. STATE keeps initialization
// vectors from repeating after a restart.
//
// The interfaces themselves get no addresses: the gateway has them, with the Ethernet addresses WAN_ETH and LAN_ETH. Each
// may have several, of IPv4 and IPv6: LAN_ADDR="10.1.0.1/16 2001:db8:1::1/48". Frames that it receives are its own, the
// kernel does not see them. Switch offloads off at both interfaces: ethtool -K DEV tx off tso off gso off gro off.
//
// For IKE connect the host: gw[2] -> KernelTun(192.0.2.1/32) -> [2] gw;
//
// WAN_OUT and LAN_OUT are where packets leave, if not by WAN and LAN: to try it on capture files, say pcap:FILE.

define($WAN eth0, $LAN eth1, $CONFIG ipsec-pair/left.cfg, $STATE "",
	$WAN_ADDR 192.0.2.1/24, $LAN_ADDR 10.1.0.1/16,
	$WAN_ETH 02:00:00:00:01:02, $LAN_ETH 02:00:00:00:01:01,
	$WAN_OUT $WAN, $LAN_OUT $LAN, $MTU 1500);

gw :: IPsecGateway(CONFIG $CONFIG,
	PORT unprotected $WAN_ETH $WAN_ADDR,
	PORT protected $LAN_ETH $LAN_ADDR,
	MTU $MTU, STATE $STATE);

FromDevice($WAN, SNIFFER false, PROMISC true) -> [0] gw [0] -> Queue(4096) -> ToDevice($WAN_OUT);
FromDevice($LAN, SNIFFER false, PROMISC true) -> [1] gw [1] -> Queue(4096) -> ToDevice($LAN_OUT);
