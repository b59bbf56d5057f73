#!/usr/bin/python3
"""Writes tests/fuzz/corpus/rewriter: sequences of packets for fuzz_rewriter, of every kind that the graph tells apart."""

import pathlib
import socket
import struct

FOLDER = pathlib.Path(__file__).resolve().parent / "rewriter"
INSIDE, OUTSIDE, ERROR, RAW, REPAIR, WAIT = 0, 1, 2, 4, 8, 16
CLIENT, SERVER, NAT, NAT_FTP, OTHER = "10.0.0.9", "20.0.0.1", "1.0.0.1", "1.0.0.2", "19.0.0.1"


def ip(src, dst, proto, payload, fragment=0, options=b""):
    return struct.pack("!BBHHHBBH4s4s", 0x45 + len(options) // 4, 0, 20 + len(options) + len(payload), 1, fragment, 64, proto, 0,
                       socket.inet_aton(src), socket.inet_aton(dst)) + options + payload


def tcp(sport, dport, data=b"", flags=0x10, seq=1, ack=1, options=b""):
    return struct.pack("!HHIIBBHHH", sport, dport, seq, ack, (20 + len(options)) // 4 << 4, flags, 1000, 0, 0) + options + data


def udp(sport, dport, data=b""):
    return struct.pack("!HHHH", sport, dport, 8 + len(data), 0) + data


def icmp(type, rest, data=b""):
    return struct.pack("!BBHI", type, 0, 0, rest) + data


def record(packet, flags=REPAIR):
    return struct.pack("<BH", flags, len(packet)) + packet


def out(packet):
    return record(packet, REPAIR | INSIDE)


def back(packet):
    return record(packet, REPAIR | OUTSIDE)


def error(packet):
    return record(packet, REPAIR | ERROR)


def main():
    server_tcp = ip(NAT, SERVER, 6, tcp(1024, 80))
    inputs = {
        "tcp": [out(ip(CLIENT, SERVER, 6, tcp(2000, 80, flags=2))), back(ip(SERVER, NAT, 6, tcp(80, 1024, b"data"))),
                out(ip(CLIENT, SERVER, 6, tcp(2000, 80, b"x", 0x11))), back(ip(SERVER, NAT, 6, tcp(80, 1024, b"", 4)))],
        "udp": [out(ip(CLIENT, SERVER, 17, udp(2000, 53, b"q"))), back(ip(SERVER, NAT, 17, udp(53, 1024, b"a"))),
                record(ip(CLIENT, SERVER, 17, udp(2000, 53, b"q")), INSIDE)],
        "ping": [out(ip(CLIENT, SERVER, 1, icmp(8, 7 << 16, b"abc"))), back(ip(SERVER, NAT, 1, icmp(0, 5 << 16, b"abc")))],
        "ping_zero": [out(ip(CLIENT, SERVER, 1, icmp(8, 0))), back(ip(SERVER, NAT, 1, icmp(0, 5 << 16)))],
        "error": [out(ip(CLIENT, SERVER, 17, udp(2000, 53, b"q"))),
                  error(ip(OTHER, NAT, 1, icmp(3, 0, ip(NAT, SERVER, 17, udp(1024, 53, b"q"))))),
                  error(ip(CLIENT, SERVER, 1, icmp(3, 0, ip(SERVER, CLIENT, 17, udp(53, 2000, b"q")))))],
        "error_ping": [out(ip(CLIENT, SERVER, 1, icmp(8, 7 << 16, b"abc"))),
                       error(ip(OTHER, NAT, 1, icmp(11, 0, ip(NAT, SERVER, 1, icmp(8, 5 << 16, b"abc")))))],
        "error_tcp": [out(ip(CLIENT, SERVER, 6, tcp(2000, 80))), error(ip(OTHER, NAT, 1, icmp(3, 0, server_tcp))),
                      error(ip(OTHER, NAT, 1, icmp(3, 0, server_tcp[:28])))],
        "ftp": [out(ip(CLIENT, SERVER, 6, tcp(2000, 21, b"x", seq=100))),
                out(ip(CLIENT, SERVER, 6, tcp(2000, 21, b"PORT 10,0,0,9,7,209\r\n", seq=101))),
                out(ip(CLIENT, SERVER, 6, tcp(2000, 21, b"LIST\r\n", seq=122))),
                back(ip(SERVER, NAT_FTP, 6, tcp(21, 1024, b"ok", ack=121, options=bytes.fromhex("0101050a0000007900000083"))))],
        "addresses": [out(ip(CLIENT, SERVER, 47, b"gre")), back(ip(SERVER, "3.0.0.1", 47, b"gre")),
                      out(ip(CLIENT, "30.0.0.1", 47, b"gre")), out(ip("10.0.0.8", SERVER, 17, b"fragment", 5))],
        "options": [out(ip(CLIENT, SERVER, 17, udp(2000, 53, b"q"), options=bytes.fromhex("94040000")))],
        "flood": [out(ip(f"10.0.0.{i}", SERVER, 17, udp(2000, 53))) for i in range(20)]
                 + [record(ip(f"10.0.1.{i}", SERVER, 6, tcp(2000, 80, flags=2)), REPAIR | WAIT) for i in range(4)],
        "short": [record(ip(CLIENT, SERVER, 6, b"12345678"), RAW), record(ip(CLIENT, SERVER, 17, b"1234567"), RAW),
                  record(b"\x45", RAW), record(ip(CLIENT, NAT, 1, icmp(3, 0, b"\x45" * 19)), RAW | ERROR),
                  record(ip(CLIENT, SERVER, 6, tcp(2000, 21, b"PORT 1,2,3,4,5,6\n")[:18]), RAW)],
    }
    for name, records in inputs.items():
        (FOLDER / name).write_bytes(b"".join(records))


if __name__ == "__main__":
    main()
