// The standard IP router of the Click papers with two interfaces, from capture file to capture files.
//
// The frames of IN arrive by interface 0, as fast as they can be read; what would leave by interface 0 and 1 goes to OUT0
// and OUT1. At the end of IN the router stops. It needs neither a network nor root:
//
//     headrace run conf/ip-router-pcap.click IN=in.pcap OUT0=out0.pcap OUT1=out1.pcap
//
// IN may be a pcap or a pcapng file, also compressed. MTU is that of both links. BURST is how many frames arrive together:
// with 1 the files have the order of IN, with more, frames that take different ways may overtake each other.
//
// Interface 0 is 10.0.0.1/24, interface 1 is 10.0.1.1/24. Their neighbors' Ethernet addresses are given, since no
// neighbor is there to answer an ARP request.

define($IN in.pcap, $OUT0 out0.pcap, $OUT1 out1.pcap, $MTU 1500, $BURST 32);

AddressInfo(if0 10.0.0.1/24 02:00:00:00:00:01,
	if1 10.0.1.1/24 02:00:00:00:00:02,
	peer0 10.0.0.2 02:00:00:00:01:01,
	peer1 10.0.1.2 02:00:00:00:01:02);

in :: FromDevice(pcap:$IN, BURST $BURST, STOP true)
	-> mine :: HostEtherFilter(if0)
	-> kind :: Classifier(12/0806 20/0001, 12/0806 20/0002, 12/0800, -);

// ARP: requests for our address are answered. Replies are not needed.
kind[0] -> arp :: ARPResponder(if0) -> out0 :: ToDump($OUT0, SNAPLEN 0);
kind[1] -> arp_replies :: Discard;
kind[3] -> other_types :: Discard;

// IP: check the header, look up the destination.
kind[2] -> Paint(1)
	-> Strip(14)
	-> check :: CheckIPHeader(INTERFACES if0:ipnet if1:ipnet, DETAILS true)
	-> rt :: RadixIPLookup(
		10.0.0.1/32 2, 10.0.0.0/32 2, 10.0.0.255/32 2,
		10.0.1.1/32 2, 10.0.1.0/32 2, 10.0.1.255/32 2,
		255.255.255.255/32 2, 0.0.0.0/32 2,
		10.0.0.0/24 0,
		10.0.1.0/24 1,
		20.0.0.0/8 peer1 1,
		30.0.0.0/8 peer0 0);

// For the router itself: echo requests are answered.
rt[2] -> for_me :: IPClassifier(icmp type echo, -);
for_me[0] -> ping :: ICMPPingResponder(BADADDRS if0:bcast if1:bcast 10.0.0.0 10.0.1.0) -> rt;
for_me[1] -> local :: Discard;

// Output, once for each interface. Errors become ICMP messages, which are routed like any other packet.
elementclass Output { $router, $paint, $mtu, $source, $destination |
	input -> broadcasts :: DropBroadcasts
		-> redirect :: PaintTee($paint)
		-> options :: IPGWOptions($router)
		-> FixIPSrc($router)
		-> ttl :: DecIPTTL
		-> fragmenter :: IPFragmenter($mtu)
		-> EtherEncap(0x0800, $source, $destination)
		-> output;
	// Only a sender on this link can go to the next router by itself (RFC 1812, 5.2.7.2).
	redirect[1] -> IPFilter(allow src net $router:ipnet) -> redirected :: ICMPError($router, redirect, host) -> [1] output;
	options[1] -> problem :: ICMPError($router, parameterproblem) -> [1] output;
	ttl[1] -> expired :: ICMPError($router, timeexceeded) -> [1] output;
	fragmenter[1] -> too_big :: ICMPError($router, unreachable, needfrag, PMTU $mtu) -> [1] output;
}

rt[0] -> port0 :: Output(if0, 1, $MTU, if0, peer0) -> out0;
rt[1] -> port1 :: Output(if1, 2, $MTU, if1, peer1) -> out1 :: ToDump($OUT1, SNAPLEN 0);
port0[1], port1[1] -> rt;
