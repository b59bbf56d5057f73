// An OpenFlow switch of four ports, under any controller that speaks OpenFlow 1.0 or 1.3.
//
//     headrace run conf/openflow-switch.click
//     headrace run conf/openflow-switch.click LISTEN=ptcp:6654
//
// It needs no network: a TrafficSource draws headers inside the entries that the switch has from the start, and a
// TrafficSink stands for each port. While it runs, ovs-ofctl shows and changes what it does:
//
//     ovs-ofctl -O OpenFlow13 show unix:$PWD/openflow.mgmt
//     ovs-ofctl -O OpenFlow13 dump-flows unix:$PWD/openflow.mgmt
//     ovs-ofctl -O OpenFlow13 add-flow unix:$PWD/openflow.mgmt priority=9,udp,nw_dst=10.0.0.0/8,actions=dec_ttl,output:4
//     ovs-ofctl -O OpenFlow13 dump-ports unix:$PWD/openflow.mgmt
//
// Under a controller: start `ovs-testcontroller ptcp:6653` or `osken-manager --ofp-tcp-listen-port 6653 app.py`, and write
// CONTROLLER tcp:127.0.0.1:6653 beside LISTEN. FAIL says what the switch does when the controller is gone; see
// `headrace elements OpenFlowSwitch`.
//
// Between interfaces of Linux, port i + 1 is `FromDevice(eth1, SNIFFER false, PROMISC true) -> [i] sw` and `sw[i] -> Queue
// -> ToDevice(eth1)`. With LOCAL true, one input and output more are the host's: `sw[4] -> KernelTap(br0, 10.0.0.1/24) ->
// [4] sw`.

define($LISTEN punix:openflow.mgmt, $FLOWS data/switch.flows, $TRAFFIC uniform, $LENGTH 64);

sw :: OpenFlowSwitch(1, LISTEN $LISTEN, FLOWS $FLOWS);

// Nothing here looks at checksums of TCP.
TrafficSource($TRAFFIC, RULES data/switch.headers, CHECKSUM false, LENGTH $LENGTH) -> [0] sw;
Idle -> [1] sw;
Idle -> [2] sw;
Idle -> [3] sw;

sw[0] -> sink0 :: TrafficSink;
sw[1] -> sink1 :: TrafficSink;
sw[2] -> sink2 :: TrafficSink;
sw[3] -> sink3 :: TrafficSink;
