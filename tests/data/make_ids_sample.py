#!/usr/bin/env python3
"""Writes conf/data/ids-sample.pcap: a minute of small talk in which conf/data/sample.rules find something.

    tests/data/make_ids_sample.py FILE
"""

import random
import sys

from scapy.all import (DNS, DNSQR, DNSRR, ICMP, IP, TCP, UDP, Dot1Q, Ether, ICMPv6EchoRequest, IPOption_RR, IPv6,
                       IPv6ExtHdrDestOpt, Raw, wrpcap)

CLIENT, SERVER, RESOLVER = "192.168.0.10", "203.0.113.80", "192.168.0.1"
CLIENT6, SERVER6 = "2001:db8::10", "2001:db8:1::80"
AGENT = "User-Agent: Mozilla/5.0 (X11; Linux x86_64)"


def ether(vlan=None):
    header = Ether(src="02:00:00:00:00:10", dst="02:00:00:00:00:01")
    return header / Dot1Q(vlan=vlan) if vlan else header


class Stream:
    """A TCP connection; its segments are appended to `packets`."""

    def __init__(self, packets, sport, dport, six=False, vlan=None, options=False):
        self.packets, self.sport, self.dport, self.six, self.vlan = packets, sport, dport, six, vlan
        self.options = options
        self.seq = [1000, 9000]
        self.segment(0, b"", "S")
        self.segment(1, b"", "SA")
        self.segment(0, b"", "A")

    def segment(self, way, data, flags="PA"):
        ends = [(CLIENT6, SERVER6) if self.six else (CLIENT, SERVER), (self.sport, self.dport)]
        if way:
            ends = [pair[::-1] for pair in ends]
        (src, dst), (sport, dport) = ends
        ip = IPv6(src=src, dst=dst) / IPv6ExtHdrDestOpt() if self.six and self.options else \
            IPv6(src=src, dst=dst) if self.six else IP(src=src, dst=dst)
        stamp = (2000, 1000) if way else (1000, 2000 if "A" in flags else 0)
        options = [("NOP", None), ("NOP", None), ("Timestamp", stamp)] if self.options else []
        tcp = TCP(sport=sport, dport=dport, seq=self.seq[way], ack=self.seq[1 - way] if "A" in flags else 0, flags=flags,
                  options=options)
        self.packets.append(ether(self.vlan) / ip / tcp / Raw(data) if data else ether(self.vlan) / ip / tcp)
        self.seq[way] += len(data) + ("S" in flags) + ("F" in flags)

    def close(self):
        self.segment(0, b"", "FA")
        self.segment(1, b"", "FA")
        self.segment(0, b"", "A")


def request(path, *headers, agent=AGENT):
    return "\r\n".join([f"GET {path} HTTP/1.1", "Host: www.example.test", agent, *headers, "", ""]).encode()


def reply(status, body, kind="text/html"):
    return f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body


def sample():
    rng = random.Random(5)
    packets = []
    page = ("<html><body>" + " ".join(rng.choice(["router", "packet", "shader", "queue", "batch"]) for _ in range(120)) +
            "</body></html>").encode()

    def exchange(port, ask, answer=reply("200 OK", page), **stream):
        s = Stream(packets, 40000 + len(packets), port, **stream)
        s.segment(0, ask)
        s.segment(1, answer)
        s.close()

    for i in range(12):
        exchange(80, request(f"/news/{i}.html"), vlan=(None, 7)[i % 2], options=i % 3 == 0)
    exchange(80, request("/cgi?file=/etc/passwd"), reply("403 Forbidden", b"no"))
    exchange(80, request("/a/../../b"), vlan=7)
    exchange(80, request("/item?id=1", agent="User-Agent: sqlmap/1.7"))
    exchange(80, request("/item?id=1+UNION+ALL+SELECT+name"))
    exchange(80, request("/item?x=European+union+elects"))  # not what it looks like
    exchange(80, request("/cgi-bin/status", "Cookie: () { :;}; echo x"), options=True)
    exchange(80, request("/setup.exe"), reply("200 OK", b"MZ" + bytes(rng.randrange(256) for _ in range(300)), "application/octet-stream"))
    exchange(8080, request("/site.tar.bak"), six=True, options=True)
    exchange(80, request("/site.html"), six=True, vlan=7)
    exchange(8080, request("/health?file=.bak HTTP/1.", agent="User-Agent: headrace-monitor/1"), six=True)
    exchange(80, request("/eicar.txt"), reply("200 OK", b"X5O!P%@AP[ and the rest of such a string, xyzzy"))
    exchange(21, b"USER root\r\n", b"331 Password required\r\n")
    exchange(21, b"USER rooter\r\n", b"331 Password required\r\n")
    exchange(25, b"RCPT TO:<" + b"a" * 140 + b"@example.test>\r\n", b"550 no\r\n")
    exchange(6667, b"JOIN #routers\r\n", b":x!y@z PRIVMSG #routers :hello\r\n")

    for i, name in enumerate(["www.example.org", "Mail.Example.Test", "ftp.example.net"]):
        query = ether() / IP(src=CLIENT, dst=RESOLVER) / UDP(sport=50000 + i, dport=53)
        packets.append(query / DNS(id=i, rd=1, qd=DNSQR(qname=name)))
        answer = ether() / IP(src=RESOLVER, dst=CLIENT) / UDP(sport=53, dport=50000 + i)
        packets.append(answer / DNS(id=i, qr=1, rd=1, ra=1, rcode=3 if i == 2 else 0, qd=DNSQR(qname=name),
                                    an=DNSRR(rrname=name, rdata="192.0.2.1") if i < 2 else None))
    packets.append(ether() / IP(src=CLIENT, dst=SERVER) / UDP(sport=3000, dport=69) / Raw(b"\0\1boot.cfg\0octet\0"))

    echo = ICMP(type=8, id=1)
    packets.append(ether() / IP(src=CLIENT, dst=SERVER) / echo / Raw(bytes(range(56))))
    packets.append(ether() / IP(src=CLIENT, dst=SERVER) / echo / Raw(bytes(1000)))
    packets.append(ether(7) / IP(src=CLIENT, dst=SERVER) / echo / Raw(b"abcdefghijklmnopqrstuvwabcdefghi"))
    packets.append(ether() / IP(src=CLIENT, dst=SERVER, options=[IPOption_RR(routers=["0.0.0.0"] * 3)]) / echo / Raw(b"route"))
    packets.append(ether() / IPv6(src=CLIENT6, dst=SERVER6) / ICMPv6EchoRequest(data=b"six"))
    packets.append(ether() / IP(src=CLIENT, dst=SERVER) / TCP(sport=1, dport=22, flags="SF"))
    packets.append(ether() / IP(src=CLIENT, dst=SERVER) / TCP(sport=1, dport=22, flags=0))

    time = 1700000000.0
    for packet in packets:
        time += rng.uniform(0.0005, 0.3)
        packet.time = round(time, 6)
    return packets


if __name__ == "__main__":
    wrpcap(sys.argv[1], sample())
