// An intrusion detection system alone, alerts counted but hardly written.
define($RULES ../../conf/data/sample.rules, $LENGTH 1024, $PAYLOAD text, $DISABLED false);

TrafficSource(uniform, LENGTH $LENGTH, PAYLOAD $PAYLOAD)
	-> ids :: IDSMatcher(RULES $RULES, DISABLED $DISABLED, ALERTS /dev/null, RATE 1)
	-> sink :: TrafficSink;
ids[1] -> alerted :: TrafficSink;
