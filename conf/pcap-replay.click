// Sends the frames of a capture file by a network interface of Linux, with the times between them as they were recorded.
//
//     headrace run conf/pcap-replay.click FILE=in.pcap DEV=eth0
//
// FILE may be a pcap or a pcapng file, also compressed. TIMING false sends as fast as the interface takes them. At the end of
// the file the router stops. DEV may be pcap:FILE to write a capture file instead; that needs no root.

define($FILE in.pcap, $DEV eth0, $TIMING true);

FromDump($FILE, TIMING $TIMING, STOP true) -> q :: Queue -> out :: ToDevice($DEV);
