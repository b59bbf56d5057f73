// What conf/ipv6-forward.click does, with every packet checked on its way out: lengths, one hop less to live, and the output
// that the table gives for its destination. LIMIT: frames to send; then the router stops.

define($ROUTES ../../conf/data/bgp-full-ipv6.txt.xz, $TRAFFIC uniform, $LENGTH 78, $LIMIT 1000, $TTL 63);

TrafficSource($TRAFFIC, PREFIXES $ROUTES, LENGTH $LENGTH, LIMIT $LIMIT, STOP true)
	-> Strip(14)
	-> check :: CheckIP6Header
	-> DecIP6HLIM
	-> rt :: LookupIP6Route(FILE $ROUTES);

elementclass Output { $source, $port |
	input -> EtherEncap(0x86dd, $source, 02:00:00:00:01:01)
		-> TrafficSink(CHECK true, TTL $TTL, TABLE rt, PORT $port);
}

rt[0] -> Output(02:00:00:00:00:01, 0);
rt[1] -> Output(02:00:00:00:00:02, 1);
rt[2] -> Output(02:00:00:00:00:03, 2);
rt[3] -> Output(02:00:00:00:00:04, 3);
