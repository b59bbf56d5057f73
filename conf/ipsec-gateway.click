// An IPsec gateway (RFC 4301) between two Linux interfaces, made of fine elements: IPv4 packets that policies want to be
// protected leave in ESP, on the CPU or on a device. It finds its neighbors by ARP. ipsec-secgw.click is shorter, forwards
// IPv6, too, and takes routes and neighbors from CONFIG.
//
//     headrace run conf/ipsec-gateway.click CONFIG=gateway.cfg LAN=eth1 WAN=eth0 LAN_ADDR=192.168.1.1/24 \
//         WAN_ADDR=203.0.113.2/24 GATEWAY=203.0.113.1 STATE=/var/lib/headrace/ipsec.state
//
// CONFIG has the policies and associations in the format of DPDK's ipsec-secgw; conf/ipsec-pair has two of them that fit
// together, and docs/ipsec.md tells all about them. STATE keeps initialization vectors from repeating after a restart.
//
// LAN is the inside: its hosts have LAN_ADDR as their gateway. WAN is the outside: GATEWAY is the next hop beyond its
// network. The interfaces themselves get no addresses: the gateway has them, with the Ethernet addresses LAN_ETH and
// WAN_ETH. Frames that it receives are its own, the kernel does not see them. Switch offloads off at both interfaces:
// ethtool -K DEV tx off tso off gso off gro off.
//
// MTU is that of both links. TUNNEL_MTU is the longest packet to be protected: MTU less what ESP adds, at most 77 bytes
// with IPv4 outside and 97 with IPv6, 8 more in UDP. Longer packets are fragmented before they are encrypted, or, if they must
// not be, their senders learn TUNNEL_MTU. IKE that is for the gateway's own address goes to `for_the_host`, where a
// KernelTap can take its place.
//
// LAN_OUT and WAN_OUT are where packets leave, if not by LAN and WAN: to try it on capture files, say pcap:FILE.

define($LAN eth1, $WAN eth0, $CONFIG ipsec-pair/left.cfg, $STATE "",
	$LAN_ADDR 192.168.1.1/24, $WAN_ADDR 203.0.113.2/24, $GATEWAY 203.0.113.1,
	$LAN_ETH 02:00:00:00:00:01, $WAN_ETH 02:00:00:00:00:02,
	$LAN_OUT $LAN, $WAN_OUT $WAN,
	$MTU 1500, $TUNNEL_MTU 1420);

AddressInfo(lan $LAN_ADDR $LAN_ETH, wan $WAN_ADDR $WAN_ETH);
db :: IPsecDatabase(CONFIG $CONFIG, STATE $STATE);

// One side: Ethernet, ARP and pings of the gateway's own address. Input 0: IP packets to send; the destination address
// annotation says to which neighbor. Output 0: checked IP packets that came in for others. Output 1: IP packets that came
// in for the gateway's own address. Output 2: what is too large for the link and must not be cut.
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
		-> owner :: IPClassifier(dst host $own:ip, -);
	owner[0] -> IPReassembler -> [1] output;
	owner[1] -> [0] output;
	fragments[1] -> [2] output;
}

lan :: Side($LAN, $LAN_OUT, lan, $MTU);
wan :: Side($WAN, $WAN_OUT, wan, $MTU);
to_wan :: StaticIPLookup(wan:ipnet 0, 0.0.0.0/0 $GATEWAY 0) -> wan;
to_lan :: StaticIPLookup(lan:ipnet 0, 0.0.0.0/0 1) -> lan;
to_lan[1] -> no_route :: Discard;

// From the inside to the outside.
lan[0] -> ttl_out :: DecIPTTL
	-> out :: IPsecPolicy(db, out)
	-> tunnel_mtu :: IPFragmenter($TUNNEL_MTU)
	-> IPsecESPEncap(db)
	-> IPsecAES(db, ENCRYPT true)
	-> IPsecAuthHMACSHA1(db, VERIFY false)
	-> to_wan;
out[1] -> to_wan;
ttl_out[1] -> ICMPError(lan, timeexceeded) -> lan;
tunnel_mtu[1] -> ICMPError(lan, unreachable, needfrag, PMTU $TUNNEL_MTU) -> lan;

// From the outside to the inside: what is protected, and what may bypass.
wan[1] -> esp :: IPsecESPLookup(db)
	-> IPsecAuthHMACSHA1(db, VERIFY true)
	-> IPsecAES(db, ENCRYPT false)
	-> IPsecESPUnencap(db)
	-> ttl_in :: DecIPTTL
	-> to_lan;
wan[0] -> in :: IPsecPolicy(db, in);
in[1] -> ttl_in;
in[0] -> Discard;
ttl_in[1] -> ICMPError(wan, timeexceeded) -> to_wan;

// The gateway itself.
esp[1] -> wan_self :: IPClassifier(icmp type echo, -);
wan_self[0] -> ICMPPingResponder -> to_wan;
wan_self[1] -> for_the_host :: Discard;
lan[1] -> lan_self :: IPClassifier(icmp type echo, -);
lan_self[0] -> ICMPPingResponder -> lan;
lan_self[1] -> Discard;

lan[2], wan[2] -> too_large :: Discard;
