// A gateway that hides a network behind one address: network address and port translation (RFC 3022) between two Linux
// interfaces, for TCP, UDP, ping, and the ICMP errors about them.
//
//     headrace run conf/nat.click LAN=eth1 WAN=eth0 LAN_ADDR=192.168.1.1/24 WAN_ADDR=203.0.113.2/24 GATEWAY=203.0.113.1
//
// LAN is the inside: its hosts have LAN_ADDR as their default gateway. WAN is the outside: GATEWAY is the next hop beyond
// its network. The interfaces themselves get no addresses: the gateway has them, with the Ethernet addresses LAN_ETH and
// WAN_ETH. Frames that it receives are its own, the kernel does not see them. Switch offloads off at both interfaces:
// ethtool -K DEV tx off tso off gso off gro off.
//
// At most CAPACITY flows are kept. When that many are there, the one that has been idle for too long goes first; a flow
// that had a packet in the last five seconds stays. `headrace run` shows what was dropped and why;
// `-r rw.tcp_table -r rw.udp_table -r ping.table` lists the flows. MTU is that of both links.
//
// LAN_OUT and WAN_OUT are where packets leave, if not by LAN and WAN: to try it on capture files, say pcap:FILE.

define($LAN eth1, $WAN eth0,
	$LAN_ADDR 192.168.1.1/24, $WAN_ADDR 203.0.113.2/24, $GATEWAY 203.0.113.1,
	$LAN_ETH 02:00:00:00:00:01, $WAN_ETH 02:00:00:00:00:02,
	$LAN_OUT $LAN, $WAN_OUT $WAN,
	$CAPACITY 65536, $MTU 1500);

AddressInfo(lan $LAN_ADDR $LAN_ETH, wan $WAN_ADDR $WAN_ETH);

// One side: Ethernet, ARP and pings of the gateway's own address. Input 0: IP packets to send; the destination address
// annotation says to which neighbor. Output 0: checked IP packets that came in for others or for the flows. Output 1:
// IP packets that came in for the gateway's own address.
elementclass Side { $in, $out, $own, $mtu |
	FromDevice($in, SNIFFER false, PROMISC true)
		-> HostEtherFilter($own)
		-> kind :: Classifier(12/0806 20/0001, 12/0806 20/0002, 12/0800, -);

	queue :: Queue(4096) -> ToDevice($out);
	kind[0] -> ARPResponder($own) -> queue;
	input -> fragments :: IPFragmenter($mtu) -> arp :: ARPQuerier($own) -> queue;
	kind[1] -> [1] arp;
	kind[3] -> other_types :: Discard;

	kind[2] -> Strip(14)
		-> CheckIPHeader(INTERFACES $own:ipnet, DETAILS true)
		-> IPReassembler
		-> owner :: IPClassifier(dst host $own:ip, -);
	owner[0] -> [1] output;
	owner[1] -> [0] output;

	// What is too large for the link and must not be cut. The error quotes the packet as it is here.
	fragments[1] -> [2] output;
}

lan :: Side($LAN, $LAN_OUT, lan, $MTU);
wan :: Side($WAN, $WAN_OUT, wan, $MTU);

// Input 0: from inside. Input 1: from outside, where only what belongs to a flow comes in. Output 0: to the outside.
// Output 1: to the inside. Flows of both elements share the room.
rw :: IPRewriter(pattern wan:ip 1024-65535 - - 0 1, drop, MAPPING_CAPACITY $CAPACITY);
ping :: ICMPPingRewriter(pattern wan:ip - 0-65535 0 1, drop, MAPPING_CAPACITY rw);

// Errors about packets of the flows, from outside and from inside.
errors_in :: ICMPRewriter(rw ping) -> lan;
errors_out :: ICMPRewriter(rw ping) -> to_wan :: StaticIPLookup(wan:ipnet 0, 0.0.0.0/0 $GATEWAY 0) -> wan;

// From the inside to the outside: only the inside's own addresses.
lan[0] -> from_lan :: IPClassifier(src net lan:ipnet and not dst net lan:ipnet, -)
	-> lan_ttl :: DecIPTTL
	-> lan_kind :: IPClassifier(tcp or udp, icmp type echo, icmp, -);
lan_kind[0] -> [0] rw;
lan_kind[1] -> [0] ping;
lan_kind[2] -> errors_out;
lan_kind[3] -> other_protocols :: Discard;
from_lan[1] -> wrong_addresses :: Discard;
lan_ttl[1] -> ICMPError(lan, timeexceeded) -> lan;

// From the outside: all that is welcome is for the gateway's own address.
wan[1] -> wan_kind :: IPClassifier(tcp or udp, icmp type echo-reply, icmp type echo, icmp, -);
wan_kind[0] -> [1] rw;
wan_kind[1] -> [1] ping;
wan_kind[2] -> ICMPPingResponder -> to_wan;
wan_kind[3] -> errors_in;
wan_kind[4] -> Discard;
wan[0] -> not_for_us :: Discard;

rw[0], ping[0] -> to_wan;
rw[1], ping[1] -> wan_ttl :: DecIPTTL -> lan;
wan_ttl[1] -> ICMPError(wan, timeexceeded) -> errors_out;

// The gateway itself, seen from inside.
lan[1] -> lan_self :: IPClassifier(icmp type echo, -);
lan_self[0] -> ICMPPingResponder -> lan;
lan_self[1] -> Discard;

// Too large for a link: the sender learns the MTU. The packets have been rewritten, and so must the errors be.
wan[2] -> ICMPError(wan, unreachable, needfrag, PMTU $MTU) -> errors_in;
lan[2] -> ICMPError(wan, unreachable, needfrag, PMTU $MTU) -> errors_out;
