"""Frames that TrafficSource draws inside rules: Scapy and tshark say whether they are right."""

import collections
import re
import shutil
import struct
import subprocess

import pytest

scapy = pytest.importorskip("scapy.all", reason="python3-scapy is not installed (tools/deps test)")

RULES = """\
tcp,nw_src=10.0.0.0/8,nw_dst=192.168.7.0/24,tp_dst=1000-2000 actions=drop
udp,nw_dst=203.0.113.0/28,tp_src=4000-4001 actions=drop
icmp,icmp_type=8,icmp_code=0,nw_dst=198.51.100.7 actions=drop
ip,nw_proto=47,nw_src=172.16.0.0/12 actions=drop
ip,dl_vlan=10,nw_src=10.9.0.0/16,ip_dscp=46 actions=drop
tcp6,ipv6_dst=2001:db8:1::/48,tp_dst=443 actions=drop
udp6,ipv6_src=2001:db8:2::/48,tp_dst=53-60 actions=drop
icmp6,icmpv6_type=135,icmpv6_code=0,nd_target=2001:db8::1 actions=drop
arp,arp_op=1,arp_tpa=192.0.2.0/24 actions=drop
"""


def dumped(headrace, arguments, rules=RULES, limit=900, workers=1):
    """Frames that a source has made."""
    (headrace.folder / "my.rules").write_text(rules)
    (headrace.folder / "draw.click").write_text(
        f"s :: TrafficSource({arguments}, FLOWS {limit}, LIMIT {limit}, STOP true) -> ToDump(out.pcap, SNAPLEN 0);\n")
    done = headrace("run", "-q", "--workers", workers, "draw.click")
    assert done.stderr == ""
    data, at, frames = (headrace.folder / "out.pcap").read_bytes(), 24, []
    while at < len(data):
        length = struct.unpack_from("<I", data, at + 8)[0]
        frames.append(data[at + 16:at + 16 + length])
        at += 16 + length
    assert len(frames) == limit
    return frames


def checked(frame):
    """What kind of frame it is. Lengths and checksums are those that Scapy computes."""
    ether = scapy.Ether(frame)
    tag = 4 if frame[12:14] == b"\x81\x00" else 0
    kind = struct.unpack_from("!H", frame, 12 + tag)[0]
    ip = frame[14 + tag:]
    if kind == 0x0800:
        layer = ether[scapy.IP]
        assert scapy.checksum(ip[:20]) == 0 and layer.len == len(ip)
        segment, pseudo = ip[20:], lambda protocol: scapy.in4_chksum(protocol, layer, segment)
    elif kind == 0x86dd:
        layer = ether[scapy.IPv6]
        assert layer.plen == len(ip) - 40
        segment, pseudo = ip[40:], lambda protocol: scapy.in6_chksum(protocol, layer, segment)
    else:
        assert kind == 0x0806
        return "arp"
    protocol = layer.proto if kind == 0x0800 else layer.nh
    if protocol == 6:
        assert pseudo(6) == 0 and segment[12] == 0x50
    elif protocol == 17:
        assert struct.unpack_from("!H", segment, 4)[0] == len(segment)
        # Over IPv4 there is none.
        assert pseudo(17) == 0 if kind == 0x86dd else segment[6:8] == b"\0\0"
    elif protocol == 1:
        assert scapy.checksum(segment) == 0
    elif protocol == 58:
        assert pseudo(58) == 0
    return f"{'ip' if kind == 0x0800 else 'ip6'} {protocol}" + (" tagged" if tag else "")


def number(address):
    return int.from_bytes(scapy.inet_aton(address), "big")


def inside(frame):
    """The rule of RULES that a frame is inside of."""
    ether = scapy.Ether(frame)
    if scapy.ARP in ether:
        return 8 if ether.op == 1 and number(ether.pdst) >> 8 == number("192.0.2.0") >> 8 else None
    if scapy.IPv6 in ether:
        ip = ether[scapy.IPv6]
        segment = bytes(frame[54:])
        port = struct.unpack_from("!H", segment, 2)[0]
        if ip.nh == 6 and ip.dst.startswith("2001:db8:1:") and port == 443:
            return 5
        if ip.nh == 17 and ip.src.startswith("2001:db8:2:") and 53 <= port <= 60:
            return 6
        target = bytes.fromhex("20010db8000000000000000000000001")
        return 7 if ip.nh == 58 and segment[0:2] == b"\x87\0" and segment[8:24] == target else None
    ip = ether[scapy.IP]
    src, dst = number(ip.src), number(ip.dst)
    at = 18 if scapy.Dot1Q in ether else 14
    sport, dport = struct.unpack_from("!HH", frame, at + 20)
    if scapy.Dot1Q in ether:
        return 4 if ether.vlan == 10 and src >> 16 == number("10.9.0.0") >> 16 and ip.tos >> 2 == 46 else None
    if ip.proto == 6 and src >> 24 == 10 and dst >> 8 == number("192.168.7.0") >> 8 and 1000 <= dport <= 2000:
        return 0
    if ip.proto == 17 and dst >> 4 == number("203.0.113.0") >> 4 and sport in (4000, 4001):
        return 1
    if ip.proto == 1 and dst == number("198.51.100.7") and frame[34:36] == b"\x08\0":
        return 2
    return 3 if ip.proto == 47 and src >> 20 == number("172.16.0.0") >> 20 else None


@pytest.mark.parametrize("arguments", [
    "LENGTH 60", "LENGTH 64", "LENGTH 65", "LENGTH 200", "LENGTH 1514", "imix", "LENGTH 300, PAYLOAD text",
    "LENGTH 301, PAYLOAD random", "LENGTH 64, STAMP true", "LENGTH 64, SEQUENCE true", "LENGTH 150, SEQUENCE true, STAMP true"])
def test_frames_are_inside_rules_and_right(headrace, arguments):
    kind = arguments if "imix" in arguments else f"uniform, {arguments}"
    frames = dumped(headrace, f"{kind}, RULES my.rules")
    by_rule = collections.Counter(inside(frame) for frame in frames)
    assert set(by_rule) == set(range(9)) and all(n > 60 for n in by_rule.values())
    kinds = collections.Counter(checked(frame) for frame in frames)
    assert set(kinds) == {"ip 6", "ip 17", "ip 1", "ip 47", "ip6 6", "ip6 17", "ip6 58", "arp", "ip 6 tagged", "ip 17 tagged"}
    if (length := re.search(r"LENGTH (\d+)", arguments)) and int(length[1]) > 130:
        assert {len(frame) for frame in frames} == {int(length[1])}


def test_tshark_finds_nothing_wrong(headrace):
    if not shutil.which("tshark"):
        pytest.skip("tshark is not installed (tools/deps test)")
    dumped(headrace, "uniform, LENGTH 173, PAYLOAD random, RULES my.rules")
    checks = [word for name in ("ip", "tcp", "udp") for word in ("-o", f"{name}.check_checksum:TRUE")]
    fields = ["ip.checksum.status", "tcp.checksum.status", "udp.checksum.status", "icmp.checksum.status", "icmpv6.checksum.status"]
    shown = subprocess.run(["tshark", "-r", headrace.folder / "out.pcap", *checks, "-T", "fields",
                            *(word for field in fields for word in ("-e", field))], text=True, capture_output=True, check=True)
    columns = list(zip(*(line.split("\t") for line in shown.stdout.splitlines())))
    good, absent = "1", "3"
    for field, column in zip(fields, columns):
        assert set(column) <= {"", good, absent} and good in column, field
    assert absent not in columns[1]


@pytest.mark.parametrize("arguments, seen", [
    ("uniform, PROTOCOL tcp", {"ip 6"}), ("uniform, PROTOCOL udp", {"ip 17"}), ("zipf, PROTOCOL tcp, LENGTH 500", {"ip 6"}),
    ("uniform, PREFIXES prefixes.txt, PROTOCOL tcp", {"ip6 6"}),
    ("uniform, RULES any.rules, PROTOCOL tcp", {"ip 6"}), ("uniform, RULES any.rules, PROTOCOL udp", {"ip 17"}),
    ("uniform, RULES any.rules", {"ip 6", "ip 17"})])
def test_protocol(headrace, arguments, seen):
    (headrace.folder / "prefixes.txt").write_text("2001:db8::/32\n")
    (headrace.folder / "any.rules").write_text("ip,nw_dst=10.0.0.0/8 actions=drop\n")
    if arguments == "uniform, PROTOCOL udp":
        frames = dumped(headrace, arguments)
        assert {frame[23] for frame in frames} == {17}
        return
    assert {checked(frame) for frame in dumped(headrace, arguments)} == seen


def test_the_same_seed_makes_the_same_frames(headrace):
    arguments = "zipf, RULES my.rules, MISS 0.1, LENGTH 100, PAYLOAD text"
    first = dumped(headrace, arguments)
    assert dumped(headrace, arguments) == first
    other = dumped(headrace, arguments + ", SEED 2")
    assert other != first
    assert sorted(dumped(headrace, "zipf, RULES my.rules", workers=2)) == sorted(dumped(headrace, "zipf, RULES my.rules"))


def test_changes_of_length_and_payload_keep_checksums_right(headrace):
    (headrace.folder / "my.rules").write_text(RULES)
    (headrace.folder / "change.click").write_text(
        "s :: TrafficSource(uniform, RULES my.rules, FLOWS 900, LIMIT 900, STOP true, ACTIVE false) -> ToDump(out.pcap, SNAPLEN 0);\n"
        "Script(write s.length 217, write s.payload random, write s.active true);\n")
    assert headrace("run", "-q", "-w", 1, "change.click").stderr == ""
    data, at, kinds = (headrace.folder / "out.pcap").read_bytes(), 24, collections.Counter()
    while at < len(data):
        length = struct.unpack_from("<I", data, at + 8)[0]
        frame = data[at + 16:at + 16 + length]
        assert length == 217 and inside(frame) is not None
        kinds[checked(frame)] += 1
        at += 16 + length
    assert sum(kinds.values()) == 900 and len(kinds) == 10


def test_checksums_may_leave_the_payload_out(headrace):
    """Then they are right for a payload of zeros."""
    text = "uniform, LENGTH 400, PAYLOAD random, RULES my.rules, CHECKSUM false"
    sizes = {6: 20, 17: 8, 1: 8, 58: 32, 47: 8}
    for frame in dumped(headrace, text):
        at = 18 if frame[12:14] == b"\x81\0" else 14
        if frame[at] >> 4 not in (4, 6) or frame[at - 2:at] == b"\x08\x06":
            continue
        end = at + (20 + sizes[frame[at + 9]] if frame[at] >> 4 == 4 else 40 + sizes[frame[at + 6]])
        assert any(frame[end:])
        checked(frame[:end] + bytes(len(frame) - end))


def test_numbers_of_a_sequence_arrive(headrace):
    (headrace.folder / "my.rules").write_text(RULES.replace("arp,", "#"))
    (headrace.folder / "sequence.click").write_text(
        "TrafficSource(uniform, RULES my.rules, LIMIT 20000, FLOWS 5000, STOP true, SEQUENCE true) -> s :: TrafficSink(SEQUENCE true);\n")
    text = headrace("run", "-q", "-w", 2, "sequence.click", "-r", "s.sequence_checked", "-r", "s.sequence_lost",
                    "-r", "s.sequence_doubled", "-r", "s.sequence_reordered").stdout
    assert re.findall(r"^s\.sequence_\w+: (\d+)$", text, re.M) == ["20000", "0", "0", "0"]


def test_all_that_is_drawn_hits(headrace):
    """Exactly the share of misses is what FlowClassifier finds no rule for."""
    (headrace.folder / "my.rules").write_text(RULES.replace("drop", "0"))
    (headrace.folder / "hit.click").write_text(
        "TrafficSource(uniform, RULES my.rules, MISS $MISS, LIMIT 100000, FLOWS 100000, STOP true) -> MarkMACHeader"
        " -> f :: FlowClassifier(my.rules) -> s :: TrafficSink;\n")
    for share in (0, 0.25):
        text = headrace("run", "-q", "-w", 1, "hit.click", f"MISS={share}", "-r", "s.count").stdout
        count = int(re.search(r"^s\.count: (\d+)$", text, re.M)[1])
        assert abs(count - 100000 * (1 - share)) <= (700 if share else 0)


MISTAKES = [
    ("RULES none.rules", "RULES: none.rules: No such file or directory"),
    ("RULES bad.rules", "RULES: bad.rules: no rules"),
    ("PROTOCOL sctp", "PROTOCOL: expected tcp or udp"),
    ("MISS 0.1", "MISS: there are no RULES"),
    ("RULES good.rules, MISS 1.5", "MISS: out of range"),
    ("RULES good.rules, PREFIXES prefixes.txt", "RULES: PREFIXES are given, too"),
    ("in.pcap, RULES good.rules", "RULES: TRAFFIC is a file of frames"),
    ("in.pcap, PROTOCOL tcp", "PROTOCOL: TRAFFIC is a file of frames"),
]


@pytest.mark.parametrize("arguments, message", MISTAKES)
def test_mistakes_are_named(headrace, arguments, message):
    for name, text in (("bad.rules", "tcp actions=0\n".replace("tcp", "tpc")), ("good.rules", "tcp actions=0\nnonsense\n"),
                       ("prefixes.txt", "2001:db8::/32\n"), ("in.pcap", "")):
        (headrace.folder / name).write_text(text)
    (headrace.folder / "bad.click").write_text(f"TrafficSource({arguments}) -> Discard;\n")
    error = headrace("check", "bad.click", status=1).stderr
    assert "bad.click:1: While configuring 'TrafficSource@1 :: TrafficSource':\n" in error and message in error


def test_bad_lines_are_warnings_with_file_and_line(headrace):
    (headrace.folder / "good.rules").write_text("tcp actions=0\nnonsense\n")
    (headrace.folder / "c.click").write_text("TrafficSource(RULES good.rules) -> Discard;\n")
    assert "RULES: good.rules:2: expected a ClassBench rule" in headrace("check", "c.click").stderr
