// Two DPDK ports, wired to each other: what one receives the other sends. As it stands, two ports that make frames
// without end and swallow all; A and B name others:
//
//   headrace run conf/dpdk-forward.click A="net_af_packet0,iface=eth1" B="net_af_packet1,iface=eth2"
//   headrace run conf/dpdk-forward.click A=0000:03:00.0 B=0000:03:00.1
//
// The kernel also receives what comes by net_af_packet: let eth1 and eth2 have no addresses, and be part of no bridge.
//
// A port that is full loses frames rather than hold up the other direction. See `headrace elements FromDPDKDevice` for
// the ports there are, and what rights each needs.
define($A net_null0, $B net_null1, $BURST 64);

FromDPDKDevice("$A", PROMISC true, BURST $BURST) -> b :: ToDPDKDevice("$B", BLOCKING false);
FromDPDKDevice("$B", PROMISC true, BURST $BURST) -> a :: ToDPDKDevice("$A", BLOCKING false);
