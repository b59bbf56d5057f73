// A router that looks into packets: each is routed by its destination on a full Internet table, and those whose payload
// shows an application of the list are counted and marked on their way.
//
// It needs no network: a TrafficSource sends HTTP-like text to random destinations, and a TrafficSink stands for each
// interface. `headrace bench --mode device conf/dpi-router.click` measures it on a GPU.
//
// PATTERNS: a file of strings, one a line. LENGTH: bytes of a frame. PAYLOAD: text or random.

define($ROUTES data/bgp-full-ipv4.txt.xz, $PATTERNS data/applications.patterns, $LENGTH 1024, $PAYLOAD text);

TrafficSource(uniform, LENGTH $LENGTH, PAYLOAD $PAYLOAD)
	-> Strip(14)
	-> CheckIPHeader
	-> rt :: DirectIPLookup(FILE $ROUTES, 0.0.0.0/0 0);

// Paint 1 says that the payload is known; the pattern's number is in the annotation PATTERN.
elementclass Port { $source, $destination |
	input -> ttl :: DecIPTTL
		-> app :: AhoCorasick(FILE $PATTERNS)
		-> out :: EtherEncap(0x0800, $source, $destination)
		-> output;
	app[1] -> Paint(1) -> out;
}

rt[0] -> Port(02:00:00:00:00:01, 02:00:00:00:01:01) -> sink0 :: TrafficSink;
rt[1] -> Port(02:00:00:00:00:02, 02:00:00:00:01:02) -> sink1 :: TrafficSink;
rt[2] -> Port(02:00:00:00:00:03, 02:00:00:00:01:03) -> sink2 :: TrafficSink;
rt[3] -> Port(02:00:00:00:00:04, 02:00:00:00:01:04) -> sink3 :: TrafficSink;
