// IPv6 forwarding between four interfaces, on a full Internet routing table.
//
// It needs no network: a TrafficSource sends frames to random addresses inside the table's prefixes, and a TrafficSink
// stands for each interface. `headrace bench conf/ipv6-forward.click` measures it.
//
// ROUTES: a file of prefixes, one a line. This one has no next hops, so each prefix gets one of the four interfaces by a
// hash. LENGTH: bytes of a frame, 62 to 1514.

define($ROUTES data/bgp-full-ipv6.txt.xz, $TRAFFIC uniform, $LENGTH 64);

TrafficSource($TRAFFIC, PREFIXES $ROUTES, LENGTH $LENGTH)
	-> c0 :: Classifier(12/86dd, -);

// What is not IPv6. Nobody asks for our link address here.
c0[1] -> Discard;

// Input: check the header, take one hop off, look up the destination.
c0[0] -> Strip(14)
	-> CheckIP6Header
	-> DecIP6HLIM
	-> rt :: LookupIP6Route(FILE $ROUTES, ::/0 0);

// Output, once for each interface.
rt[0] -> EtherEncap(0x86dd, 02:00:00:00:00:01, 02:00:00:00:01:01) -> sink0 :: TrafficSink;
rt[1] -> EtherEncap(0x86dd, 02:00:00:00:00:02, 02:00:00:00:01:02) -> sink1 :: TrafficSink;
rt[2] -> EtherEncap(0x86dd, 02:00:00:00:00:03, 02:00:00:00:01:03) -> sink2 :: TrafficSink;
rt[3] -> EtherEncap(0x86dd, 02:00:00:00:00:04, 02:00:00:00:01:04) -> sink3 :: TrafficSink;
