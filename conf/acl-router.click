// The standard IP router of the Click papers (conf/ipv4-router.click) behind an access list of 10,000 rules.
//
//     headrace run conf/acl-router.click
//     headrace run conf/acl-router.click RULES=my.rules TRAFFIC=zipf
//     headrace bench conf/acl-router.click MISS=0.1
//
// It needs no network: a TrafficSource draws headers inside the rules, and a TrafficSink stands for each interface. RULES: a
// file of ClassBench's filters, all of which permit, or of flows as ovs-ofctl writes them: `actions=output:0` permits,
// `actions=output:1` denies, `actions=drop` does, too. What no rule matches is dropped. MISS: share of frames that no rule
// matches but one of everything. ROUTES: a file of prefixes, one a line; each gets one of the four interfaces by a hash.

define($ROUTES data/bgp-full-ipv4.txt.xz, $RULES data/acl1_10k.rules.xz, $TRAFFIC uniform, $MISS 0, $LENGTH 64,
	$MTU 1500);

// Nothing here looks at checksums of TCP.
TrafficSource($TRAFFIC, RULES $RULES, MISS $MISS, CHECKSUM false, LENGTH $LENGTH)
	-> c0 :: Classifier(12/0806 20/0001, 12/0806 20/0002, 12/0800, -);

// ARP requests for our own address, ARP replies (nobody asks here), what is neither ARP nor IP.
c0[0] -> ARPResponder(10.0.0.1 02:00:00:00:00:01) -> arp_replies :: Discard;
c0[1] -> Discard;
c0[3] -> Discard;

// Input: check the header, then whether the packet may pass; look up the destination.
c0[2] -> Paint(1)
	-> Strip(14)
	-> CheckIPHeader(INTERFACES 10.0.0.1/24 10.0.1.1/24 10.0.2.1/24 10.0.3.1/24)
	-> acl :: FlowClassifier($RULES, SPREAD 1, FIELDS ip)
	-> rt :: DirectIPLookup(FILE $ROUTES, 0.0.0.0/0 0);
acl[1] -> denied :: Counter -> Discard;

// Output, once for each interface. Errors become ICMP messages, which are routed like any other packet.
elementclass Output { $router, $mtu, $paint, $source, $destination |
	input -> DropBroadcasts
		-> redirect :: PaintTee($paint)
		-> options :: IPGWOptions($router)
		-> FixIPSrc($router)
		-> ttl :: DecIPTTL
		-> fragmenter :: IPFragmenter($mtu)
		-> EtherEncap(0x0800, $source, $destination)
		-> output;
	// Only a sender on this link can go to the next router by itself (RFC 1812, 5.2.7.2).
	redirect[1] -> IPFilter(allow src net $router/24) -> ICMPError($router, redirect, host) -> [1] output;
	options[1] -> ICMPError($router, parameterproblem) -> [1] output;
	ttl[1] -> ICMPError($router, timeexceeded) -> [1] output;
	fragmenter[1] -> ICMPError($router, unreachable, needfrag, PMTU $mtu) -> [1] output;
}

rt[0] -> port0 :: Output(10.0.0.1, $MTU, 2, 02:00:00:00:00:01, 02:00:00:00:01:01) -> sink0 :: TrafficSink;
rt[1] -> port1 :: Output(10.0.1.1, $MTU, 3, 02:00:00:00:00:02, 02:00:00:00:01:02) -> sink1 :: TrafficSink;
rt[2] -> port2 :: Output(10.0.2.1, $MTU, 4, 02:00:00:00:00:03, 02:00:00:00:01:03) -> sink2 :: TrafficSink;
rt[3] -> port3 :: Output(10.0.3.1, $MTU, 5, 02:00:00:00:00:04, 02:00:00:00:01:04) -> sink3 :: TrafficSink;
port0[1], port1[1], port2[1], port3[1] -> rt;
