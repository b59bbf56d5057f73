#!/usr/bin/env python3
"""Makes the capture files of this folder with Scapy (2.5).

Each has the same three packets: a UDP datagram at 1.000001234 s, the first 60 bytes of a 242-byte UDP datagram at 2.5 s,
and an ARP request at 3 s.
"""

import gzip
import lzma
import os

from scapy.all import ARP, IP, UDP, Ether, PcapNgWriter, PcapWriter

FOLDER = os.path.dirname(os.path.abspath(__file__))


def packets():
    ether = Ether(src="02:00:00:00:00:01", dst="02:00:00:00:00:02")
    first = ether / IP(src="1.0.0.1", dst="2.0.0.2", id=1) / UDP(sport=10, dport=20) / b"hello"
    second = ether / IP(src="1.0.0.3", dst="2.0.0.4", id=2) / UDP(sport=30, dport=40) / (b"x" * 200)
    third = Ether(src="02:00:00:00:00:01", dst="ff:ff:ff:ff:ff:ff") / ARP(psrc="1.0.0.1", pdst="1.0.0.9")
    made = []
    for packet, sec, nsec, captured in ((first, 1, 1234, None), (second, 2, 500000000, 60), (third, 3, 0, None)):
        data = bytes(packet)
        made.append((data[:captured], sec, nsec, len(data)))
    return made


def write_pcap(name, endianness, nano):
    with PcapWriter(os.path.join(FOLDER, name), linktype=1, endianness=endianness, nano=nano) as out:
        out.write_header(None)
        for data, sec, nsec, length in packets():
            out._write_packet(data, sec=sec, usec=nsec if nano else nsec // 1000, caplen=len(data), wirelen=length)


def write_pcapng(name):
    out = PcapNgWriter(os.path.join(FOLDER, name))
    out.linktype = 1
    out.header_done = False
    out.write_header(None)
    for data, sec, nsec, length in packets():
        out._write_packet(data, sec=sec + nsec / 1e9, caplen=len(data), wirelen=length)
    out.flush()


write_pcap("little_micro.pcap", "<", False)
write_pcap("big_micro.pcap", ">", False)
write_pcap("little_nano.pcap", "<", True)
write_pcap("big_nano.pcap", ">", True)
write_pcapng("little.pcapng")
with open(os.path.join(FOLDER, "little_micro.pcap"), "rb") as plain:
    content = plain.read()
with gzip.GzipFile(os.path.join(FOLDER, "little_micro.pcap.gz"), "wb", mtime=0) as packed:
    packed.write(content)
with lzma.open(os.path.join(FOLDER, "little_micro.pcap.xz"), "wb") as packed:
    packed.write(content)
# Ends within the second packet.
with open(os.path.join(FOLDER, "truncated.pcap"), "wb") as cut:
    cut.write(content[:24 + 16 + 47 + 16 + 10])
