#!/usr/bin/python3
"""Writes tests/fuzz/corpus/esp: sequences of packets for fuzz_esp, of every kind that it tells apart."""

import pathlib
import socket
import struct

FOLDER = pathlib.Path(__file__).resolve().parent / "esp"
AGAIN, AUTHENTIC, PROPER, DAMAGED, CONGESTION = 8, 0x10, 0x20, 0x40, 0x80


def record(flags, data):
    return struct.pack("<BH", flags, len(data)) + data


def ip4(proto, payload, src="192.0.2.2", dst="192.0.2.1", fragment=0, tos=0):
    return struct.pack("!BBHHHBBH4s4s", 0x45, tos, 20 + len(payload), 1, fragment, 64, proto, 0, socket.inet_aton(src),
                       socket.inet_aton(dst)) + payload


def ip6(next_header, payload, src="2001:db8::2", dst="2001:db8::1"):
    pton = lambda a: socket.inet_pton(socket.AF_INET6, a)
    return struct.pack("!IHBB", 6 << 28, len(payload), next_header, 64) + pton(src) + pton(dst) + payload


def udp(payload, port=4500):
    return struct.pack("!HHHH", port, port, 8 + len(payload), 0) + payload


def trailer(n, next_header):
    return bytes(range(1, n + 1)) + bytes([n, next_header])


def esp(number, length=60):
    return struct.pack("!II", 0x1000 + number, 1) + bytes(i & 255 for i in range(length))


inner4 = ip4(17, udp(b"inside", 53), "10.0.0.5", "10.9.0.1")
inner6 = ip6(17, udp(b"inside", 53), "2001:db8::5", "2001:db8:9::1")
every = range(8)
inputs = {
    "proper": b"".join(record(AUTHENTIC | PROPER | i, p) for i in every for p in (inner4, inner6)),
    "again": b"".join(record(AUTHENTIC | PROPER | again | i, inner4) for i in every for again in (0, AGAIN, 0, AGAIN)),
    "damaged": b"".join(record(AUTHENTIC | PROPER | DAMAGED | i, inner4 + bytes(at)) for i in every for at in (0, 256, 512))
    + b"".join(record(AUTHENTIC | PROPER | AGAIN | i, inner4) for i in every),
    "congestion": b"".join(record(AUTHENTIC | PROPER | CONGESTION | i, p) for i in every
                           for p in (inner4, ip4(6, bytes(20), tos=1), inner6, ip6(6, bytes(20)))),
    "padding": b"".join(record(AUTHENTIC | i, p) for i in every for p in (
        ip4(17, bytes(42), "10.0.0.1") + trailer(0, 4), ip4(17, bytes(26), "10.0.0.1") + b"\1\2\3\4\5\6\7\7\7\4",
        ip4(17, bytes(26)) + trailer(14, 4) + b"\xff\4", bytes(30) + b"\0\x3b", b"", bytes(16), bytes(14) + b"\x0e\x04")),
    "policy": b"".join(record(AUTHENTIC | i, ip4(17, bytes(26 + 16 * k), f"10.{k}.0.1") + trailer(0, 4)) for i in every for k in every),
    "lengths": b"".join(record(AUTHENTIC | i, struct.pack("!BBH", version, 0, n) + bytes(42) + b"\0" + bytes([4 if version < 0x50 else 41]))
                        for i in (0, 4) for version in (0x45, 0x41, 0x4f, 0x60, 0) for n in (0, 19, 20, 46, 47, 65535)),
    "raw": b"".join(record(0, p) for i in every for p in (
        ip4(50, esp(i)), ip6(50, esp(i)), ip4(17, udp(esp(i))), ip6(17, udp(esp(i))), ip4(50, esp(i, 3)), ip4(50, esp(i), fragment=0x2000),
        ip4(50, esp(i), src="192.0.2.7"), ip4(50, b"\0\0\x10"))),
    "raw-udp": b"".join(record(0, ip4(17, p)) for p in (udp(b"\xff"), udp(bytes(4) + b"ike"), udp(b""), udp(b"abc"), udp(b"x" * 40, 500), b"\x11\x94")),
    "raw-headers": b"".join(record(0, p) for p in (
        ip6(0, bytes([50, 0]) + bytes(6) + esp(4)), ip6(43, bytes([50, 1]) + bytes(14) + esp(4)), ip6(44, bytes([50, 0, 0, 1]) + bytes(4) + esp(4)),
        ip6(60, bytes([50, 255]) + bytes(6)), b"\x4f" + ip4(50, esp(0))[1:], b"\x45", b"\x60", ip6(50, b""), b"\x40" + bytes(30))),
}
FOLDER.mkdir(exist_ok=True)
for name, data in inputs.items():
    (FOLDER / name).write_bytes(data)
