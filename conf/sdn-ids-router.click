// Snap's intrusion detection router with a classifier in front: rules say which packets are searched, and which are trusted.
//
//     headrace run conf/sdn-ids-router.click
//     headrace run --mode device conf/sdn-ids-router.click RULES=my.flows IDS=/etc/suricata/rules/suricata.rules
//     headrace bench conf/sdn-ids-router.click LENGTH=1514
//
// All of it is one chain, from the classifier to the encapsulation; on a device only the packets that the classifier sends
// there are searched. It needs no network: a TrafficSource draws headers inside the rules, and a TrafficSink stands for each
// interface. RULES: a file of flows as ovs-ofctl writes them, about IPv4: `actions=output:0` has packets searched,
// `actions=output:1` trusts them, `actions=drop` drops them; or of ClassBench's filters, every other one of which trusts. MISS:
// share of frames that no rule matches but one of everything. IDS: a file of rules of Snort or Suricata. Each alert is one line
// of JSON on standard output, at most RATE a second for each rule. ROUTES: a file of prefixes, one a line; each gets one of the
// four interfaces by a hash.

define($ROUTES data/bgp-full-ipv4.txt.xz, $RULES data/acl1_10k.rules.xz, $IDS data/sample.rules, $TRAFFIC uniform, $MISS 0,
	$LENGTH 1024, $PAYLOAD text, $ALERTS -, $RATE 1);

// Nothing here looks at checksums of TCP.
TrafficSource($TRAFFIC, RULES $RULES, MISS $MISS, CHECKSUM false, LENGTH $LENGTH, PAYLOAD $PAYLOAD)
	-> c0 :: Classifier(12/0806 20/0001, 12/0806 20/0002, 12/0800, -);

// ARP requests for our own address, ARP replies (nobody asks here), what is neither ARP nor IP.
c0[0] -> ARPResponder(10.0.0.1 02:00:00:00:00:01) -> arp_replies :: Discard;
c0[1] -> Discard;
c0[3] -> Discard;

// Input: check the header, classify, search the payload, look up the destination.
c0[2] -> Paint(1)
	-> Strip(14)
	-> CheckIPHeader(INTERFACES 10.0.0.1/24 10.0.1.1/24 10.0.2.1/24 10.0.3.1/24)
	-> flows :: FlowClassifier($RULES, FIELDS ip);
flows[0] -> ids :: IDSMatcher(RULES $IDS, ALERTS $ALERTS, RATE $RATE)
	-> rt :: DirectIPLookup(FILE $ROUTES, 0.0.0.0/0 0);
flows[1] -> rt;

// What alerts goes its own way.
ids[1] -> alerted :: Counter -> Discard;

// Output, once for each interface. Errors become ICMP messages, which are routed like any other packet.
elementclass Output { $router, $paint, $source, $destination |
	input -> DropBroadcasts
		-> redirect :: PaintTee($paint)
		-> options :: IPGWOptions($router)
		-> FixIPSrc($router)
		-> ttl :: DecIPTTL
		-> fragmenter :: IPFragmenter(1500)
		-> EtherEncap(0x0800, $source, $destination)
		-> output;
	redirect[1] -> ICMPError($router, redirect, host) -> [1] output;
	options[1] -> ICMPError($router, parameterproblem) -> [1] output;
	ttl[1] -> ICMPError($router, timeexceeded) -> [1] output;
	fragmenter[1] -> ICMPError($router, unreachable, needfrag) -> [1] output;
}

rt[0] -> port0 :: Output(10.0.0.1, 2, 02:00:00:00:00:01, 02:00:00:00:01:01) -> sink0 :: TrafficSink;
rt[1] -> port1 :: Output(10.0.1.1, 3, 02:00:00:00:00:02, 02:00:00:00:01:02) -> sink1 :: TrafficSink;
rt[2] -> port2 :: Output(10.0.2.1, 4, 02:00:00:00:00:03, 02:00:00:00:01:03) -> sink2 :: TrafficSink;
rt[3] -> port3 :: Output(10.0.3.1, 5, 02:00:00:00:00:04, 02:00:00:00:01:04) -> sink3 :: TrafficSink;
port0[1], port1[1], port2[1], port3[1] -> rt;
