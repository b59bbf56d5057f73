#!/usr/bin/python3
"""Writes tests/fuzz/corpus/router: sequences of frames for fuzz_router, of every kind that the graph tells apart."""

import pathlib
import struct

FOLDER = pathlib.Path(__file__).resolve().parent / "router"

ROUTER = [bytes.fromhex("020000000001"), bytes.fromhex("020000000002")]
PEER = [bytes.fromhex("020000000101"), bytes.fromhex("020000000102")]
BROADCAST = b"\xff" * 6
SECOND, KEEP_CHECKSUM, KEEP_LENGTH, BATCH, TASKS, WAIT = 1, 2, 4, 8, 16, 32


def address(text):
    return bytes(map(int, text.split(".")))


def frame(data, flags=0, interface=0):
    return struct.pack("<BH", flags | interface, len(data)) + data


def checksum(data):
    words = struct.unpack(f"!{(len(data) + 1) // 2}H", data + bytes(len(data) % 2))
    total = sum(words)
    while total >> 16:
        total = (total & 0xffff) + (total >> 16)
    return ~total & 0xffff


def ip(payload=b"", src="10.0.0.9", dst="20.0.0.1", proto=17, ttl=64, options=b"", fragment=0, id=1, flags=0, interface=0,
       mac=None, cut=None):
    """A frame; the fuzz target fills in length and checksum."""
    options += bytes(-len(options) % 4)
    header = struct.pack("!BBHHHBBH4s4s", 0x45 + len(options) // 4, 0, 20 + len(options) + len(payload), id, fragment, ttl, proto,
                         0, address(src), address(dst))
    data = (mac or ROUTER[interface]) + PEER[interface] + b"\x08\0" + header + options + payload
    return frame(data[:cut], flags, interface)


def l4(proto, segment, at, src, dst):
    """The segment with its checksum filled in at `at`."""
    pseudo = address(src) + address(dst) + struct.pack("!HH", proto, len(segment)) if proto != 1 else b""
    return segment[:at] + struct.pack("!H", checksum(pseudo + segment)) + segment[at + 2:]


def udp(data, src="10.0.0.9", dst="10.0.0.1", **more):
    return ip(l4(17, struct.pack("!HHHH", 1000, 2000, 8 + len(data), 0) + data, 6, src, dst), src, dst, **more)


def tcp(options=b"", src="10.0.0.9", dst="10.0.0.1", **more):
    options += bytes(-len(options) % 4)
    head = struct.pack("!HHIIBBHHH", 1, 80, 7, 0, (5 + len(options) // 4) << 4, 2, 100, 0, 0)
    return ip(l4(6, head + options, 16, src, dst), src, dst, proto=6, **more)


def icmp(type, code=0, rest=bytes(4), data=b"", src="10.0.0.9", dst="10.0.0.1", **more):
    return ip(l4(1, bytes([type, code, 0, 0]) + rest + data, 2, src, dst), src, dst, proto=1, **more)


def arp(operation, sender, sender_ip, target, target_ip, interface=0, mac=BROADCAST, cut=None):
    data = mac + sender + b"\x08\x06" + struct.pack("!HHBBH", 1, 0x800, 6, 4, operation)
    return frame((data + sender + address(sender_ip) + target + address(target_ip))[:cut], 0, interface)


def reply(interface, host):
    return arp(2, PEER[interface], host, ROUTER[interface], f"10.0.{interface}.1", interface, ROUTER[interface])


BODY = bytes(range(256)) * 8
QUOTE = bytes.fromhex("4500001c000100004011000014000001" "0a000009" "03e807d000080000")
OPTIONS = {
    "nop": b"\1\1\1",
    "end": b"\0\xff\xff",
    "record_route": b"\7\x0b\4" + bytes(8),
    "record_route_full": b"\7\7\x08" + bytes(4),
    "record_route_bad": b"\7\7\3" + bytes(4),
    "timestamp": b"\x44\x0c\5\0" + bytes(8),
    "timestamp_address": b"\x44\x0c\5\1" + bytes(8),
    "timestamp_given": b"\x44\x0c\5\3" + address("10.0.1.1") + bytes(4),
    "timestamp_overflow": b"\x44\x08\x09\xf0" + bytes(4),
    "source_route": b"\x83\x0b\x08" + address("10.0.0.8") + address("20.9.9.9"),
    "strict_route": b"\x89\x07\x04" + address("10.0.0.8"),
    "alert": b"\x94\4\0\0",
    "too_long": b"\7\x27\4",
    "no_length": b"\1\1\1\x44",
    "many": b"\1\x94\4\0\0\7\7\4" + bytes(4) + b"\x44\x08\5\0" + bytes(4),
}

CASES = {
    "arp_request": arp(1, PEER[0], "10.0.0.9", bytes(6), "10.0.0.1"),
    "arp_proxy": arp(1, PEER[0], "10.0.0.9", bytes(6), "10.0.7.7"),
    "arp_reply": reply(1, "10.0.1.2"),
    "arp_short": arp(1, PEER[0], "10.0.0.9", bytes(6), "10.0.0.1", cut=30),
    "arp_then_packets": ip(BODY[:20]) + reply(1, "10.0.1.2") + ip(BODY[:30], flags=BATCH) + ip(BODY[:40], flags=TASKS),
    "arp_many_hosts": b"".join(ip(b"", dst=f"10.0.1.{i}") for i in range(2, 40)) + reply(1, "10.0.1.30") + reply(1, "10.0.1.2"),
    "arp_polls": ip() + reply(1, "10.0.1.2") + b"".join(ip(flags=WAIT) for _ in range(12)),
    "udp_forward": reply(1, "10.0.1.2") + ip(BODY[:100]) + ip(BODY[:18], dst="10.0.1.2"),
    "udp_back": reply(0, "10.0.0.9") + reply(0, "10.0.0.2") + ip(BODY[:40], dst="30.0.0.1"),
    "other_interface": reply(0, "10.0.0.9") + ip(BODY[:40], src="20.0.0.1", dst="10.0.0.9", interface=SECOND),
    "expired": reply(0, "10.0.0.9") + ip(BODY[:40], ttl=1) + ip(BODY[:1000], ttl=0),
    "large": reply(1, "10.0.1.2") + ip(BODY[:1400]),
    "large_df": reply(0, "10.0.0.9") + ip(BODY[:1400], fragment=0x4000),
    "large_options": reply(1, "10.0.1.2") + ip(BODY[:1400], options=OPTIONS["many"]),
    "small_mtu": reply(0, "10.0.0.9") + ip(BODY[:200], src="20.0.0.1", dst="10.0.0.9", interface=SECOND),
    "ping": reply(0, "10.0.0.9") + icmp(8, rest=b"\0\1\0\2", data=BODY[:56]),
    "ping_broadcast": icmp(8, data=BODY[:8], dst="10.0.0.255", mac=BROADCAST),
    "icmp_error": icmp(3, 4, b"\0\0\5\0", QUOTE) + icmp(11, data=QUOTE, ttl=1, dst="20.0.0.1"),
    "icmp_redirect": icmp(5, 1, b"\x0a\0\0\7", QUOTE),
    "icmp_timestamp": icmp(13, data=bytes(12)) + icmp(15) + icmp(17, data=bytes(4)),
    "icmp_short": ip(b"\x08", proto=1, dst="10.0.0.1", ttl=1) + ip(b"\x08\0\0", proto=1, dst="20.0.0.1", ttl=1),
    "udp_local": reply(0, "10.0.0.9") + udp(BODY[:30]),
    "udp_echo_port": ip(struct.pack("!HHHH", 7, 7, 8, 0), dst="10.0.0.1"),
    "udp_bad_length": ip(struct.pack("!HHHH", 1, 2, 200, 0), dst="10.0.0.1") + ip(struct.pack("!HHHH", 1, 2, 3, 0), dst="10.0.0.1"),
    "tcp_local": tcp(b"\2\4\5\xb4\1\3\3\7\4\2"),
    "tcp_sack": tcp(b"\1\1\5\x12" + bytes(16) + b"\x08\x0a" + bytes(8)),
    "tcp_bad_options": tcp(b"\5\3\x02\x05\xff") + ip(bytes(12) + b"\xf0\x02" + bytes(6), proto=6, dst="10.0.0.1"),
    "protocol": reply(0, "10.0.0.9") + ip(BODY[:20], proto=47, dst="10.0.0.1"),
    "reassembly": reply(0, "10.0.0.9") + b"".join(
        ip(BODY[at:at + 64], dst="10.0.0.1", id=9, fragment=at // 8 | (0x2000 if at < 192 else 0)) for at in (64, 0, 192, 128)),
    "reassembly_overlap": b"".join(
        ip(BODY[:64], dst="10.0.0.1", id=9, fragment=f) for f in (0x2000, 0x2004, 0x2006, 0x0008, 0x0002)),
    "reassembly_timeout": reply(0, "10.0.0.9") + ip(BODY[:64], dst="10.0.0.1", id=9, fragment=0x2000) + b"".join(
        ip(BODY[:8], dst="10.0.0.1", id=i, fragment=0x2001, flags=WAIT) for i in range(10, 15)),
    "reassembly_end": ip(BODY[:64], dst="10.0.0.1", fragment=0x1fff) + ip(BODY[:1400], dst="10.0.0.1", fragment=0x1ff0),
    "reassembly_memory": b"".join(ip(BODY[:1480], dst="10.0.0.1", id=i, fragment=0x2000) for i in range(14)),
    "fragment_forward": ip(BODY[:800], fragment=0x2010) + ip(BODY[:800], fragment=0x1fff),
    "broken": b"".join(ip(BODY[:20], cut=n) for n in (0, 1, 13, 14, 15, 33, 34, 40)) + ip(flags=KEEP_CHECKSUM)
    + ip(BODY[:20], flags=KEEP_LENGTH, cut=40) + frame(ROUTER[0] + PEER[0] + b"\x08\0" + b"\x4f" + bytes(40)),
    "broken_versions": b"".join(frame(ROUTER[0] + PEER[0] + b"\x08\0" + bytes([v]) + bytes(39)) for v in (0x65, 0x05, 0x44, 0x40)),
    "sources": b"".join(ip(src=s, ttl=1) for s in ("0.0.0.0", "255.255.255.255", "127.0.0.1", "224.0.0.1", "10.0.0.255")),
    "destinations": b"".join(ip(dst=d) for d in ("0.0.0.0", "255.255.255.255", "127.0.0.1", "224.0.0.1", "10.0.0.0", "10.0.1.255")),
    "link_broadcast": ip(BODY[:8], mac=BROADCAST) + ip(BODY[:8], mac=b"\1\0\x5e\0\0\1", ttl=1) + ip(mac=PEER[1]),
    "other_type": frame(ROUTER[0] + PEER[0] + b"\x86\xdd\x60" + bytes(60)) + frame(ROUTER[0] + PEER[0] + b"\x81\0\0\5\x08\0\x45"),
    "padded": reply(1, "10.0.1.2") + ip(BODY[:4] + bytes(30), flags=KEEP_LENGTH | KEEP_CHECKSUM),
} | {f"option_{name}": reply(1, "10.0.1.2") + reply(0, "10.0.0.9") + ip(BODY[:16], options=options) + ip(ttl=1, options=options)
     + ip(BODY[:16], dst="10.0.0.1", proto=99, options=options) for name, options in OPTIONS.items()}


def main():
    FOLDER.mkdir(exist_ok=True)
    for name, data in CASES.items():
        (FOLDER / name).write_bytes(data)


if __name__ == "__main__":
    main()
