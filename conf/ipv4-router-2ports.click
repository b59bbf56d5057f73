// The standard IP router of the Click papers between two network interfaces of Linux, with the host's own stack behind it.
//
//     headrace run conf/ipv4-router-2ports.click DEV0=eth0 ADDR0=10.0.0.1/24 DEV1=eth1 ADDR1=10.0.1.1/24
//
// The interfaces themselves get no addresses: the router has them. Frames that it receives are its own, the kernel does
// not see them. Each interface has a twin, a virtual interface TWIN0 or TWIN1 with the address and the Ethernet address
// (MAC0, MAC1) of its port. What is for the router itself, and what the router does not understand (IPv6, for one), goes
// to the host by the twin of the port where it came in; what the host sends by a twin leaves by its port. So ping, sshd
// and routing daemons on the router's addresses work, and tcpdump on a twin shows the host's traffic.
//
// Routes beyond the two networks: `rt.add`, such as headrace's control socket or a Script writes them. MTU is that of both
// links. Switch offloads off at both interfaces: ethtool -K DEV tx off tso off gso off gro off.

define($DEV0 eth0, $ADDR0 10.0.0.1/24, $MAC0 02:00:00:00:00:01, $TWIN0 twin0,
	$DEV1 eth1, $ADDR1 10.0.1.1/24, $MAC1 02:00:00:00:00:02, $TWIN1 twin1,
	$MTU 1500);

AddressInfo(if0 $ADDR0 $MAC0, if1 $ADDR1 $MAC1);

// A port. Input 0: IP packets to send, input 1: packets to the host as they came. Output 0: IP packets received, output 1:
// ICMP errors about hosts that do not answer.
elementclass Port { $dev, $name, $address, $mac, $twin, $mtu, $paint |
	FromDevice($dev, SNIFFER false, PROMISC true)
		-> mine :: HostEtherFilter($name)
		-> kind :: Classifier(12/0806 20/0001, 12/0806 20/0002, 12/0800, -);
	out :: Queue -> ToDevice($dev);
	host :: KernelTap($address, ETHER $mac, MTU $mtu, DEVNAME $twin) -> out;

	// ARP: requests for our address are answered; replies are for us and for the host.
	kind[0] -> ARPResponder($name) -> out;
	kind[1] -> replies :: Tee -> [1] arp :: ARPQuerier($name);
	replies[1] -> host;
	arp[0], arp[1] -> out;
	arp[2] -> ICMPError($name, unreachable, host) -> [1] output;
	kind[3] -> host;

	kind[2] -> Paint($paint)
		-> Strip(14)
		-> check :: CheckIPHeader(INTERFACES if0:ipnet if1:ipnet)
		-> output;
	input -> arp;
	input[1] -> Unstrip(14) -> host;
}

port0 :: Port($DEV0, if0, $ADDR0, $MAC0, $TWIN0, $MTU, 1);
port1 :: Port($DEV1, if1, $ADDR1, $MAC1, $TWIN1, $MTU, 2);

port0, port1 -> rt :: DirectIPLookup(
	if0:ip/32 2, if0:bcast/32 2, if1:ip/32 2, if1:bcast/32 2,
	255.255.255.255/32 2, 224.0.0.0/4 2,
	if0:ipnet 0,
	if1:ipnet 1,
	0.0.0.0/0 3);

// For the host: by the twin of the port where it came in.
rt[2] -> local :: PaintSwitch;
local[0] -> Discard;
local[1] -> [1] port0;
local[2] -> [1] port1;
port0[1], port1[1] -> rt;
rt[3] -> no_route :: ICMPError(if0, unreachable, net) -> rt;

// Output, once for each port. Errors become ICMP messages, which are routed like any other packet.
elementclass Output { $router, $paint, $mtu |
	input -> DropBroadcasts
		-> redirect :: PaintTee($paint)
		-> options :: IPGWOptions($router)
		-> FixIPSrc($router)
		-> ttl :: DecIPTTL
		-> fragmenter :: IPFragmenter($mtu)
		-> output;
	// Only a sender on this link can go to the next router by itself (RFC 1812, 5.2.7.2).
	redirect[1] -> IPFilter(allow src net $router:ipnet) -> ICMPError($router, redirect, host) -> [1] output;
	options[1] -> ICMPError($router, parameterproblem) -> [1] output;
	ttl[1] -> ICMPError($router, timeexceeded) -> [1] output;
	fragmenter[1] -> ICMPError($router, unreachable, needfrag, PMTU $mtu) -> [1] output;
}

rt[0] -> out0 :: Output(if0, 1, $MTU) -> port0;
rt[1] -> out1 :: Output(if1, 2, $MTU) -> port1;
out0[1], out1[1] -> rt;
