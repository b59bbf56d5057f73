// What conf/ipv4-router.click does, with every packet checked on its way out: header checksum, one hop less to live, and the
// output that the table gives for its destination. LIMIT: frames to send; then the router stops.

define($ROUTES ../../conf/data/bgp-full-ipv4.txt.xz, $TRAFFIC uniform, $LIMIT 1000, $TTL 63);

TrafficSource($TRAFFIC, LIMIT $LIMIT, STOP true)
	-> Strip(14)
	-> check :: CheckIPHeader(INTERFACES 10.0.0.1/24 10.0.1.1/24)
	-> rt :: DirectIPLookup(FILE $ROUTES, 0.0.0.0/0 0);

elementclass Output { $source, $port |
	input -> ttl :: DecIPTTL -> IPFragmenter(1500) -> EtherEncap(0x0800, $source, 02:00:00:00:01:01)
		-> TrafficSink(CHECK true, TTL $TTL, TABLE rt, PORT $port);
}

rt[0] -> Output(02:00:00:00:00:01, 0);
rt[1] -> Output(02:00:00:00:00:02, 1);
rt[2] -> Output(02:00:00:00:00:03, 2);
rt[3] -> Output(02:00:00:00:00:04, 3);
