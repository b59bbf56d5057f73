// An OpenFlow switch with the entries of a file, between memory and memory: half of the frames are inside exact entries,
// half inside wildcard ones. bench/openflow_flows makes the files. BYTES and ROOM are enough for IPv4 without tags: a row of
// a device then has 64 bytes.

define($FOLDER ., $LENGTH 64, $BYTES 48, $ROOM 0);

sw :: OpenFlowSwitch(1, FLOWS $FOLDER/all.flows, BYTES $BYTES, ROOM $ROOM);
TrafficSource(uniform, RULES $FOLDER/exact.flows, CHECKSUM false, LENGTH $LENGTH) -> [0] sw;
TrafficSource(uniform, RULES $FOLDER/wildcard.flows, CHECKSUM false, LENGTH $LENGTH) -> [1] sw;
Idle -> [2] sw;
Idle -> [3] sw;
sw[0] -> TrafficSink;
sw[1] -> TrafficSink;
sw[2] -> TrafficSink;
sw[3] -> TrafficSink;
