// A host that answers ping, and nothing else, at a network interface of Linux.
//
//     headrace run conf/ping-responder.click DEV=eth0 ADDR=10.0.0.1
//
// ADDR and MAC are its own: the interface needs no address, and must not have this one. The kernel receives the frames as
// well (SNIFFER true) and answers for its own addresses.

define($DEV eth0, $ADDR 10.0.0.1, $MAC 02:00:00:00:00:01);

AddressInfo(me $ADDR $MAC);

FromDevice($DEV, SNIFFER true, PROMISC true)
	-> HostEtherFilter(me)
	-> kind :: Classifier(12/0806 20/0001, 12/0800, -);
out :: Queue -> ToDevice($DEV);

kind[0] -> ARPResponder(me) -> out;
kind[1] -> CheckIPHeader(OFFSET 14)
	-> to_me :: IPClassifier(dst host me and icmp type echo, -);
to_me[0] -> CheckICMPHeader
	-> EtherMirror
	-> StripToNetworkHeader
	-> ICMPPingResponder
	-> Unstrip(14)
	-> out;
to_me[1] -> Discard;
kind[2] -> Discard;
