// Snap's SDN forwarder: a classifier chooses the port of each frame by thousands of rules; the frame goes to the next switch.
//
//     headrace run conf/sdn-forwarder.click
//     headrace run conf/sdn-forwarder.click RULES=my.flows
//     headrace bench conf/sdn-forwarder.click MISS=0.1 TRAFFIC=zipf
//
// It needs no network: a TrafficSource draws headers inside the rules, so that all of the table is used, and a TrafficSink
// stands for each port. RULES: a file of ClassBench's filters, which are spread over the ports, or of flows as ovs-ofctl
// writes them, about IPv4. Rules change while packets flow: `headrace elements FlowClassifier` tells of the handlers of
// `flows`. MISS: share of frames that no rule matches but one of everything, as ClassBench's sets have at their end.

define($RULES data/acl1_10k.rules.xz, $TRAFFIC uniform, $MISS 0, $LENGTH 64);

// Nothing here looks at checksums of TCP.
TrafficSource($TRAFFIC, RULES $RULES, MISS $MISS, CHECKSUM false, LENGTH $LENGTH)
	-> c0 :: Classifier(12/0800, -);

// What is not IPv4.
c0[1] -> Discard;

// Input: check the header, choose the port.
c0[0] -> Strip(14)
	-> CheckIPHeader
	-> flows :: FlowClassifier($RULES, FIELDS ip);

// Output, once for each port.
flows[0] -> EtherEncap(0x0800, 02:00:00:00:00:01, 02:00:00:00:01:01) -> sink0 :: TrafficSink;
flows[1] -> EtherEncap(0x0800, 02:00:00:00:00:02, 02:00:00:00:01:02) -> sink1 :: TrafficSink;
flows[2] -> EtherEncap(0x0800, 02:00:00:00:00:03, 02:00:00:00:01:03) -> sink2 :: TrafficSink;
flows[3] -> EtherEncap(0x0800, 02:00:00:00:00:04, 02:00:00:00:01:04) -> sink3 :: TrafficSink;
