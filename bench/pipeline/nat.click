// A rewriter with many flows: looking them up, and, when CAPACITY is less than FLOWS, making and removing them.
//
//     headrace bench bench/pipeline/nat.click FLOWS=60000
//     headrace bench bench/pipeline/nat.click FLOWS=1000000 CAPACITY=1000000
//     headrace bench bench/pipeline/nat.click FLOWS=1000000 CAPACITY=60000
define($FLOWS 60000, $CAPACITY 65536, $LENGTH 64);

TrafficSource(uniform, FLOWS $FLOWS, LENGTH $LENGTH)
	-> Strip(14)
	-> CheckIPHeader
	-> rw :: IPRewriter(keep 0 0, MAPPING_CAPACITY $CAPACITY, UDP_GUARANTEE 0)
	-> EtherEncap(0x0800, 02:00:00:00:00:01, 02:00:00:00:01:01)
	-> TrafficSink;
