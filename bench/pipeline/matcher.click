// A search for patterns alone: what it costs, and how fast a device does it.
define($PATTERNS ../../conf/data/applications.patterns, $LENGTH 1024, $PAYLOAD text, $ENGINE auto);

TrafficSource(uniform, LENGTH $LENGTH, PAYLOAD $PAYLOAD)
	-> m :: StringMatcher(FILE $PATTERNS, ENGINE $ENGINE)
	-> sink :: TrafficSink;
m[1] -> found :: TrafficSink;
