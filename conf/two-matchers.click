// Two searches behind one classifier, in one chain: packets to even and to odd addresses are searched for different strings.
//
// On a device every packet is scanned by the element that it came to, and by no other: two cost what one costs.
// It needs no network. `headrace bench --mode device conf/two-matchers.click` measures it; SPLIT=33/00%00 sends all
// packets to the first one. LENGTH: bytes of a frame. PAYLOAD: text or random.

define($SPLIT 33/00%01, $LENGTH 1024, $PAYLOAD text, $FIRST data/applications.patterns, $SECOND data/applications.patterns,
	$ENGINE auto);

// Byte 33 of a frame is the last one of the destination address.
TrafficSource(uniform, LENGTH $LENGTH, PAYLOAD $PAYLOAD)
	-> way :: Classifier($SPLIT, -);
way[0] -> first :: StringMatcher(FILE $FIRST, ENGINE $ENGINE) -> sink0 :: TrafficSink;
way[1] -> second :: StringMatcher(FILE $SECOND, ENGINE $ENGINE) -> sink1 :: TrafficSink;
first[1] -> sink2 :: TrafficSink;
second[1] -> sink3 :: TrafficSink;
