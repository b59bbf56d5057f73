"""What ICMP6Error makes of packets is what Scapy would make, and tshark finds nothing wrong with it."""

import random
import shutil
import subprocess

import pytest

COUNT = 300

scapy = pytest.importorskip("scapy.all", reason="scapy is not installed (python3-scapy)")

GATEWAY = "2001:db8::fe"
KINDS = {
    "packettoobig, PMTU 1395": lambda: scapy.ICMPv6PacketTooBig(mtu=1395),
    "timeexceeded": lambda: scapy.ICMPv6TimeExceeded(code=0),
    "unreachable, adminprohibited": lambda: scapy.ICMPv6DestUnreach(code=1),
}


def packets(rng):
    """Packets of hosts, and whether they may be answered at all."""
    for i in range(COUNT):
        ip = scapy.IPv6(src=f"2001:db8:1::{i + 1:x}", dst=f"2001:db8:2::{rng.randrange(1, 65536):x}", hlim=rng.randrange(256),
                        tc=rng.randrange(256), fl=rng.randrange(1 << 20))
        if rng.random() < 0.3:
            ip /= scapy.IPv6ExtHdrDestOpt() if rng.random() < 0.5 else scapy.IPv6ExtHdrHopByHop()
        payload = rng.randbytes(rng.choice((0, 1, 7, 100, 1180, 1184, 1185, 1232, 1400)))
        kind = rng.randrange(5)
        inner = [scapy.UDP(sport=1000, dport=2000) / payload, scapy.TCP(flags="S") / payload,
                 scapy.ICMPv6EchoRequest(data=payload), scapy.ICMPv6DestUnreach() / payload,
                 scapy.ICMPv6TimeExceeded() / payload][kind]
        yield scapy.IPv6(bytes(ip / inner)), kind < 3


@pytest.mark.parametrize("kind", KINDS)
def test_answers(headrace, kind):
    sent = list(packets(random.Random(6)))
    scapy.wrpcap(str(headrace.folder / "in.pcap"), [p for p, _ in sent], linktype=101)
    headrace("run", "-q", "-w", "1", "-e", f"""
        FromDump(in.pcap, STOP true) -> CheckIP6Header -> ICMP6Error({GATEWAY}, {kind}, RATE 0) -> DecIP6HLIM
          -> ToDump(out.pcap, ENCAP IP);""")
    came = [bytes(p) for p in scapy.rdpcap(str(headrace.folder / "out.pcap"))]
    expected = []
    for packet, answered in sent:
        if answered:
            error = scapy.IPv6(src=GATEWAY, dst=packet.src, hlim=64) / KINDS[kind]() / scapy.Raw(bytes(packet)[:1232])
            expected.append(bytes(error))
    assert len(expected) > COUNT / 3
    assert came == expected

    if not shutil.which("tshark"):
        pytest.skip("tshark is not installed: what it says of the answers is not known")
    seen = subprocess.run(["tshark", "-r", headrace.folder / "out.pcap", "-T", "fields", "-e", "icmpv6.checksum.status", "-e",
                           "icmpv6.type", "-e", "icmpv6.mtu"], capture_output=True, text=True, check=True).stdout.splitlines()
    assert len(seen) == len(expected)
    number = {"packettoobig, PMTU 1395": "2", "timeexceeded": "3", "unreachable, adminprohibited": "1"}[kind]
    for line in seen:
        status, kinds, mtu = line.split("\t")
        # Behind the first comma is what tshark thinks of the packet that is quoted.
        assert status.split(",")[0] == "1" and kinds.split(",")[0] == number
        assert mtu == ("1395" if number == "2" else "")
