"""conf/ip-router-pcap.click: a capture in, captures out, equal to what Scapy computes."""

import collections
import os
import pathlib
import re
import shutil
import struct
import subprocess
import sys

import pytest

pytest.importorskip("scapy", reason="python3-scapy is not installed")

from scapy.layers.inet import ICMP, IP, TCP, UDP
from scapy.layers.l2 import ARP, Ether
from scapy.packet import Raw
from scapy.utils import PcapNgWriter, PcapWriter, rdpcap

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from router_model import OWN_MAC, PEER_MAC, Case, Router, header_length, ip_packet, with_checksum

CONF = pathlib.Path(__file__).resolve().parent.parent.parent / "conf" / "ip-router-pcap.click"
HOST = "10.0.0.9"  # a neighbor on interface 0
FAR = "20.1.2.3"  # by a gateway on interface 1
NEAR = "10.0.1.77"  # on the link of interface 1
BACK = "30.1.2.3"  # by a gateway on interface 0
SIMULATED_TIME_S = 1000000000
MILLISECONDS_OF_DAY = SIMULATED_TIME_S % 86400 * 1000


def ether(packet, dst=OWN_MAC[0], type=0x0800):
    return bytes(Ether(src=PEER_MAC[0], dst=dst, type=type)) + bytes(packet)


def payload(length):
    return bytes(i * 7 & 255 for i in range(length))


def forwarded():
    for length in (0, 1, 18, 100, 536, 1000, 1472):
        for source, destination in ((HOST, FAR), (HOST, NEAR), ("20.9.9.9", NEAR)):
            yield Case(f"udp {length} to {destination}",
                       ether(IP(src=source, dst=destination, id=length, ttl=64) / UDP(sport=1000, dport=2000) / payload(length)))
    yield Case("tcp", ether(IP(src=HOST, dst=FAR, ttl=2, tos=0xb8) / TCP(sport=1, dport=80, flags="S", options=[("MSS", 1460)])))
    yield Case("ping through", ether(IP(src=HOST, dst=FAR, ttl=255) / ICMP(id=7, seq=9) / payload(56)))
    yield Case("an error through", ether(IP(src=HOST, dst=FAR) / ICMP(type=3, code=1) / IP(src=FAR, dst=HOST) / UDP()))
    yield Case("padded", ether(IP(src=HOST, dst=FAR) / UDP()) + bytes(18))
    yield Case("a fragment", ether(IP(src=HOST, dst=FAR, frag=100, flags="MF", proto=17) / payload(64)))
    # RFC 1624: the sum is 0xfffe, so one hop less makes it 0x00ff with the carry.
    for word in range(64):
        yield Case("checksum carries", ether(IP(src=HOST, dst=FAR, id=0xb000 + word * 0x40, ttl=64, proto=253) / b"x"))
    yield Case("leaves where it came in", ether(IP(src=HOST, dst=BACK) / UDP() / payload(40)))
    yield Case("leaves on the link where it came in", ether(IP(src=HOST, dst="10.0.0.44") / UDP() / payload(40)))


def local():
    yield Case("ping the router", ether(IP(src=HOST, dst="10.0.0.1", ttl=1, id=5) / ICMP(id=1, seq=2) / payload(56)))
    yield Case("ping its other side", ether(IP(src="20.5.5.5", dst="10.0.1.1", flags="DF") / ICMP(id=3, seq=4)))
    for to in ("10.0.0.255", "10.0.1.0", "0.0.0.0", "255.255.255.255"):
        yield Case(f"ping {to}", ether(IP(src=HOST, dst=to) / ICMP() / b"x"))
    yield Case("for the router", ether(IP(src=HOST, dst="10.0.0.1") / UDP()))
    yield Case("no route", ether(IP(src=HOST, dst="99.0.0.1") / UDP()))
    question = ARP(op=1, hwsrc=PEER_MAC[0], psrc=HOST, pdst="10.0.0.1")
    answer = ARP(op=2, hwsrc=OWN_MAC[0], psrc="10.0.0.1", hwdst=PEER_MAC[0], pdst=HOST)
    yield Case("ARP request", ether(question, dst="ff:ff:ff:ff:ff:ff", type=0x0806),
               answer=bytes(Ether(src=OWN_MAC[0], dst=PEER_MAC[0], type=0x0806)) + bytes(answer))
    yield Case("ARP for another", ether(ARP(op=1, hwsrc=PEER_MAC[0], psrc=HOST, pdst="10.0.0.8"), type=0x0806),
               drop=("arp", "no request for a known address"))
    yield Case("ARP reply", ether(answer, type=0x0806), drop=("arp_replies", "count"))
    yield Case("IPv6", ether(payload(60), type=0x86dd), drop=("other_types", "count"))
    yield Case("for another host on the link", ether(IP(src=HOST, dst=FAR) / UDP(), dst=PEER_MAC[1]), drop=("mine", "for another host"))
    yield Case("short frame", ether(b"")[:13], drop=("mine", "no Ethernet header"))


def expired():
    for ttl in (0, 1):
        for source in (HOST, "20.0.0.5", "99.1.1.1", "127.0.0.1", "224.0.0.9", "240.0.0.1"):
            yield Case(f"TTL {ttl} from {source}", ether(IP(src=source, dst=FAR, ttl=ttl) / UDP() / payload(30)))
    for length in (520, 521, 1000):
        yield Case("expired and long", ether(IP(src=HOST, dst=FAR, ttl=1) / UDP() / payload(length)))
    yield Case("expired and back", ether(IP(src=HOST, dst=BACK, ttl=1) / UDP()))
    yield Case("expired ping", ether(IP(src=HOST, dst=FAR, ttl=1) / ICMP() / payload(8)))
    for type in (3, 4, 5, 11, 12):
        yield Case("expired error", ether(IP(src=HOST, dst=FAR, ttl=1) / ICMP(type=type) / payload(8)))
    yield Case("expired fragment", ether(IP(src=HOST, dst=FAR, ttl=1, frag=3, proto=17) / payload(8)))
    yield Case("expired first fragment", ether(IP(src=HOST, dst=FAR, ttl=1, flags="MF", proto=17) / payload(8)))


def address(text):
    return bytes(map(int, text.split(".")))


def with_options():
    mine, now = address("10.0.1.1"), struct.pack("!I", MILLISECONDS_OF_DAY)

    def case(name, options, leaving=None, pointer=None, length=24, ttl=64, **more):
        return Case(name, ether(ip_packet(payload(length), options, src=HOST, dst=FAR, ttl=ttl, id=77)),
                    options=leaving or options, pointer=pointer, **more)

    yield case("NOPs", b"\1\1\1\1")
    yield case("end of list, then rubbish", b"\0\7\7\7")
    yield case("unknown option", b"\x5e\4ab")
    yield case("record route", b"\7\x0b\4" + bytes(8) + b"\0", b"\7\x0b\x08" + mine + bytes(4) + b"\0")
    yield case("record route behind a NOP", b"\1\7\7\4" + bytes(4), b"\1\7\7\x08" + mine)
    yield case("record route, half full", b"\7\x0b\x08" + bytes(8) + b"\0", b"\7\x0b\x0c" + bytes(4) + mine + b"\0")
    yield case("record route, full", b"\7\7\x08" + bytes(4) + b"\0")
    yield case("record route, pointer beyond it", b"\7\7\x0c" + bytes(4) + b"\0")
    yield case("timestamps", b"\x44\x0c\5\0" + bytes(8), b"\x44\x0c\x09\0" + now + bytes(4))
    yield case("timestamps, full", b"\x44\x08\x09\x00" + bytes(4), b"\x44\x08\x09\x10" + bytes(4))
    yield case("timestamp and address", b"\x44\x0c\5\1" + bytes(8), b"\x44\x0c\x0d\1" + mine + now)
    yield case("timestamp of this router", b"\x44\x0c\5\3" + mine + bytes(4), b"\x44\x0c\x0d\3" + mine + now)
    yield case("timestamp of another", b"\x44\x0c\5\3" + address("1.2.3.4") + bytes(4))
    route = b"\x83\x0b\x08" + address("10.0.0.8") + address("20.9.9.9") + b"\0"
    yield case("source route in transit", route)
    yield case("source route, expired", route, ttl=1, return_hop="10.0.0.8",
               reversed_route=b"\x83\x07\4" + address(HOST) + b"\0")
    yield case("source route that has not begun, expired", b"\x83\x07\4" + address("20.9.9.9") + b"\0", ttl=1)
    # What is wrong, by the offset from the header's beginning (RFC 792).
    yield case("record route, pointer too small", b"\7\7\3" + bytes(5), pointer=22)
    yield case("record route, room for half an address", b"\7\x09\x08" + bytes(9), pointer=22)
    yield case("record route, too short", b"\7\2\4\0", pointer=21)
    yield case("record route, longer than the header", b"\7\x20\4" + bytes(5), pointer=21)
    yield case("behind a NOP", b"\1\7\7\3" + bytes(4), pointer=23)
    yield case("no length", b"\1\1\1\7", pointer=23)
    yield case("length 0", b"\x5e\0\0\0", pointer=21)
    yield case("length 1", b"\x5e\1\0\0", pointer=21)
    yield case("timestamps, too short", b"\x44\3\5\0", pointer=21)
    yield case("timestamps, pointer too small", b"\x44\x0c\4\0" + bytes(8), pointer=22)
    yield case("timestamps, no such flag", b"\x44\x0c\5\2" + bytes(8), pointer=23)
    yield case("timestamps, room for half of one", b"\x44\x08\x07\0" + bytes(4), pointer=22)
    yield case("timestamps, overflow", b"\x44\x08\x09\xf0" + bytes(4), pointer=23)
    yield case("large, with options for each fragment", b"\x88\4ab" + b"\7\7\4" + bytes(4) + b"\0",
               b"\x88\4ab" + b"\7\7\x08" + mine + b"\0", copied=b"\x88\4ab", length=3000)
    yield case("large, options for the first fragment only", b"\7\7\4" + bytes(4) + b"\0", b"\7\7\x08" + mine + b"\0",
               length=3000)


def large():
    for length in (1473, 1480, 2000, 2953, 8900):
        for flags in (0, "DF"):
            yield Case(f"large {length} {flags}", ether(IP(src=HOST, dst=FAR, id=length, flags=flags) / UDP() / payload(length)))
    yield Case("large fragment", ether(IP(src=HOST, dst=FAR, id=9, flags="MF", frag=50, proto=17) / payload(3200)))
    yield Case("large last fragment", ether(IP(src=HOST, dst=FAR, id=9, frag=50, proto=17) / payload(3201)))
    yield Case("large fragment that must not be cut", ether(IP(src=HOST, dst=FAR, frag=50, flags="DF", proto=17) / payload(3201)))
    # At an MTU of 576 the last 4 bytes fit behind 552, and at 68 there is no such room.
    yield Case("large, last fragment full", ether(IP(src=HOST, dst=FAR, id=11, proto=253) / payload(552 + 556)))
    yield Case("large, back", ether(IP(src=HOST, dst=BACK, id=10) / UDP() / payload(2000)))


def link_broadcasts():
    for dst in ("ff:ff:ff:ff:ff:ff", "01:00:5e:01:02:03"):
        for to in (FAR, BACK):
            yield Case(f"to {dst}", ether(IP(src=HOST, dst=to) / UDP(), dst=dst), broadcast=True)
    yield Case("ping by broadcast", ether(IP(src=HOST, dst="10.0.0.1") / ICMP() / b"x", dst="ff:ff:ff:ff:ff:ff"), broadcast=True)


def broken():
    good = ip_packet(payload(20), src=HOST, dst=FAR)

    def case(name, packet, reason):
        return Case(name, ether(packet), drop=("check", reason))

    def changed(at, value):
        return with_checksum(good[:at] + value + good[at + len(value):])

    yield case("nothing behind the link header", b"", "tiny packet")
    yield case("19 bytes", good[:19], "tiny packet")
    yield case("version 6", changed(0, b"\x65"), "bad IP version")
    yield case("version 0", changed(0, b"\x05"), "bad IP version")
    yield case("header of 16 bytes", changed(0, b"\x44"), "bad IP header length")
    yield case("header longer than the packet", changed(0, b"\x4f"), "bad IP length")
    yield case("total length below the header's", changed(2, b"\0\x13"), "bad IP length")
    yield case("total length beyond the frame", changed(2, b"\0\x29"), "bad IP length")
    yield case("cut off", good[:-1], "bad IP length")
    for at in (1, 4, 8, 15, 19):
        yield case(f"byte {at} damaged", good[:at] + bytes([good[at] ^ 4]) + good[at + 1:], "bad IP checksum")
    options = ip_packet(b"", b"\7\7\4" + bytes(5), src=HOST, dst=FAR)
    yield case("option damaged", options[:24] + b"\1" + options[25:], "bad IP checksum")
    for source in ("10.0.0.255", "10.0.1.255", "255.255.255.255", "0.0.0.0"):
        yield case(f"from {source}", IP(src=source, dst=FAR) / UDP(), "bad source address")


CASES = [case for group in (forwarded, local, expired, with_options, large, link_broadcasts, broken) for case in group()]


def write_capture(path, cases):
    if path.suffix == ".pcapng":
        with PcapNgWriter(str(path)) as writer:
            for case in cases:
                writer.write(Ether(case.frame))
        return
    with PcapWriter(str(path), linktype=1) as writer:
        writer.write_header(None)
        for case in cases:
            writer.write_packet(case.frame, sec=SIMULATED_TIME_S, usec=0)


def read_capture(path):
    return [bytes(packet) for packet in rdpcap(str(path))]


def is_error(frame):
    packet = frame[14:]
    return frame[12:14] == b"\x08\0" and packet[9] == 1 and packet[header_length(packet)] in (3, 5, 11, 12) and packet[1] == 0xc0


def without_id(frame):
    """The frame with the identification of an ICMP error, which is counted up, taken out."""
    return frame[:14] + with_checksum(frame[14:18] + bytes(2) + frame[20:]) if is_error(frame) else frame


def compare(kind, got, wanted):
    for index, (g, w) in enumerate(zip(got, wanted)):
        assert g.hex() == w.hex(), f"{kind}: frame {index} is {Ether(g).summary()}, not {Ether(w).summary()}"
    assert len(got) == len(wanted), kind


def run(headrace, folder, mtu, burst, source="in.pcap"):
    """Runs the router; returns the frames of both interfaces and all drops and counts."""
    done = headrace("click", "--simtime", CONF, f"IN={folder / source}", f"OUT0={folder / 'out0.pcap'}",
                    f"OUT1={folder / 'out1.pcap'}", f"MTU={mtu}", f"BURST={burst}", "-h", "*.drop_reasons", "-h",
                    "Discard.count", "-h", "check.drop_details", "-h", "in.count")
    drops, details, count = {}, {}, None
    for line in done.stdout.splitlines():
        if head := re.fullmatch(r"(\S+)\.(\w+):", line):
            element, handler = head.groups()
        elif line and handler == "count":
            if element == "in":
                count = int(line)
            elif int(line):
                drops[element, "count"] = int(line)
        elif line:
            number, reason = line.split("\t")
            (drops if handler == "drop_reasons" else details)[element, reason] = int(number)
    return [read_capture(folder / f"out{i}.pcap") for i in (0, 1)], drops, details, count


def model(mtu, cases=CASES):
    router = Router(mtu)
    for case in cases:
        router.receive(case)
    return router


@pytest.mark.parametrize("mtu", [1500, 576, 68])
def test_frame_by_frame_in_order(headrace, tmp_path, mtu):
    write_capture(tmp_path / "in.pcap", CASES)
    out, drops, details, count = run(headrace, tmp_path, mtu, burst=1)
    wanted = model(mtu)
    for port in (0, 1):
        assert len(wanted.out[port]) > 30
        compare(f"interface {port}", out[port], wanted.out[port])
    assert drops == dict(wanted.drops)
    assert {key: n for key, n in details.items() if n} == {key: n for key, n in wanted.drops.items() if key[0] == "check"}
    assert count == len(CASES)


@pytest.mark.parametrize("burst", [32, 256])
def test_batches_do_the_same(headrace, tmp_path, burst):
    write_capture(tmp_path / "in.pcap", CASES)
    out, drops, _, _ = run(headrace, tmp_path, 1500, burst)
    wanted = model(1500)
    for port in (0, 1):
        got = collections.Counter(map(without_id, out[port]))
        assert got == collections.Counter(map(without_id, wanted.out[port])), f"interface {port}"
    assert drops == dict(wanted.drops)
    ids = [frame[18:20] for frame in out[0] + out[1] if is_error(frame)]
    assert len(set(ids)) == len(ids) > 20


def test_pcapng(headrace, tmp_path):
    cases = [case for case in CASES if case.drop is None]
    write_capture(tmp_path / "in.pcapng", cases)
    assert (tmp_path / "in.pcapng").read_bytes()[:4] == b"\x0a\x0d\x0d\x0a"
    out, _, _, count = run(headrace, tmp_path, 1500, burst=1, source="in.pcapng")
    assert count == len(cases)
    for port in (0, 1):
        compare(f"interface {port}", out[port], model(1500, cases).out[port])


def test_run_says_what_was_dropped(headrace, tmp_path):
    # By the clock of this machine nobody can foretell a timestamp.
    cases = [case for case in CASES if "timestamp" not in case.name]
    write_capture(tmp_path / "in.pcap", cases)
    text = headrace("run", CONF, f"IN={tmp_path / 'in.pcap'}", f"OUT0={tmp_path / 'out0.pcap'}",
                    f"OUT1={tmp_path / 'out1.pcap'}").stdout
    wanted = model(1500, cases)
    for (element, reason), number in wanted.drops.items():
        if reason != "count":
            assert re.search(rf"^{re.escape(element)} +{number}  {re.escape(reason)}$", text, re.M), text
    for port in (0, 1):
        got = read_capture(tmp_path / f"out{port}.pcap")
        compare(f"interface {port}", sorted(map(without_id, got)), sorted(map(without_id, wanted.out[port])))


BAD_CHECKSUM = " || ".join(f"{p}.checksum.status == 0" for p in ("ip", "udp", "tcp", "icmp"))


def tshark(path, display_filter):
    checks = [word for p in ("ip", "udp", "tcp") for word in ("-o", f"{p}.check_checksum:TRUE")]
    done = subprocess.run(["tshark", "-r", str(path), *checks, "-Y", display_filter], text=True, capture_output=True,
                          timeout=120, env=os.environ | {"HOME": str(path.parent)})
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.mark.skipif(not shutil.which("tshark"), reason="tshark is not installed")
def test_tshark_finds_no_bad_checksum(headrace, tmp_path):
    bad = [Case("bad", ether(IP(src=HOST, dst=FAR, chksum=1) / UDP())), Case("bad", ether(IP(src=HOST, dst=FAR) / UDP(chksum=1))),
           Case("bad", ether(IP(src=HOST, dst=FAR) / ICMP(chksum=1)))]
    write_capture(tmp_path / "bad.pcap", bad)
    assert len(tshark(tmp_path / "bad.pcap", BAD_CHECKSUM)) == len(bad)

    # Of datagrams of many sizes, all whose UDP and ICMP checksums are right as they come in.
    cases = [case for case in CASES if len(case.frame) < 1515 and "error" not in case.name and "fragment" not in case.name]
    write_capture(tmp_path / "in.pcap", cases)
    for mtu in (1500, 576):
        out, _, _, _ = run(headrace, tmp_path, mtu, burst=32)
        for port in (0, 1):
            assert len(out[port]) > 20
            assert tshark(tmp_path / f"out{port}.pcap", BAD_CHECKSUM) == []
