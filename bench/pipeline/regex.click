// A search for regular expressions alone: what it costs, and how fast a device does it.
define($EXPRESSIONS applications.expressions, $LENGTH 1024, $PAYLOAD text);

TrafficSource(uniform, LENGTH $LENGTH, PAYLOAD $PAYLOAD)
	-> m :: RegexMatcher(FILE $EXPRESSIONS)
	-> sink :: TrafficSink;
m[1] -> found :: TrafficSink;
