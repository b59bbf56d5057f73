"""FlowClassifier in whole configurations: its counters equal those of the sinks while rules come and go, on the CPU and on
devices, also when jobs are late; and it decides as a linear search of the rules, on packets that Scapy makes."""

import os
import pathlib
import random
import re

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent

WAYS = {
    "cpu": ["--mode", "cpu", "--workers", "1"],
    "workers": ["--mode", "cpu", "--workers", "3"],
    "device": ["--mode", "device", "--backend", os.environ.get("HEADRACE_DEVICE", "reference"), "--workers", "2"],
    "both": ["--mode", "fixed=0.5", "--backend", os.environ.get("HEADRACE_DEVICE", "reference"), "--workers", "2"],
}

CHURN = """
TrafficSource(uniform, LIMIT 300000, RATE 400000, STOP true, FLOWS 5000) -> Strip(14) -> CheckIPHeader
    -> f :: FlowClassifier(rules.txt);
f[0] -> c0 :: Counter -> Discard;
f[1] -> c1 :: Counter -> Discard;
f[2] -> c2 :: Counter -> Discard;
f[3] -> c3 :: Counter -> Discard;
Script(TYPE ACTIVE, label again,
  write f.add "priority=20,ip,nw_dst=192.0.0.0/4 actions=3
priority=30,udp,nw_dst=128.0.0.0/3 actions=3",
  wait 2ms,
  write f.ctrl "remove priority=20,ip,nw_dst=192.0.0.0/4
add priority=40,udp,nw_dst=200.0.0.0/5,tp_dst=1-60000 actions=3
remove priority=30,udp,nw_dst=128.0.0.0/3",
  wait 2ms,
  write f.remove "priority=40,udp,nw_dst=200.0.0.0/5,tp_dst=1-60000",
  goto again);
"""


@pytest.mark.parametrize("way", WAYS)
def test_counters_equal_the_sinks_while_rules_change(headrace, way):
    (headrace.folder / "rules.txt").write_text("priority=100,udp,nw_dst=0.0.0.0/2 actions=1\n"
                                               "priority=100,udp,nw_dst=64.0.0.0/2 actions=2\npriority=0 actions=0\n")
    (headrace.folder / "churn.click").write_text(CHURN)
    run = headrace("run", "churn.click", *WAYS[way], *(f"--read={name}" for name in (
        "c0.count", "c1.count", "c2.count", "c3.count", "c1.byte_count", "c2.byte_count", "f.counts", "f.count")))
    got = {name: int(value) for name, value in re.findall(r"^([fc]\d?\.\w+): (\d+)$", run.stdout, re.M)}
    counts = {rule: (int(packets), int(size)) for packets, size, rule in re.findall(r"(\d+)\t(\d+)\t(\S+) actions", run.stdout)}
    assert got["c0.count"] + got["c1.count"] + got["c2.count"] + got["c3.count"] == 300000, run.stdout
    assert got["c3.count"] > 0, run.stdout
    # Half of the traffic goes to rules that stay.
    assert counts["priority=100,udp,nw_dst=0.0.0.0/2"] == (got["c1.count"], got["c1.byte_count"])
    assert counts["priority=100,udp,nw_dst=64.0.0.0/2"] == (got["c2.count"], got["c2.byte_count"])
    # The rule of lowest priority decides for what others leave, and counts it.
    assert counts["priority=0"][0] == got["c0.count"]
    assert got["c1.count"] > 10000 and got["c2.count"] > 10000


@pytest.mark.parametrize("way", ["cpu", "device"])
def test_frames_go_where_a_linear_search_sends_them(headrace, way):
    scapy = pytest.importorskip("scapy.all", reason="python3-scapy is not installed (tools/deps test)")
    r = random.Random(5)
    packets = []
    for _ in range(300):
        frame = scapy.Ether(src="02:00:00:00:00:01", dst=r.choice(["02:00:00:00:00:02", "33:33:00:00:00:01"]))
        if r.random() < 0.4:
            frame /= scapy.Dot1Q(vlan=r.choice([10, 11]), prio=r.choice([0, 5]))
        kind = r.randrange(4)
        if kind == 0:
            frame /= scapy.ARP(op=r.choice([1, 2]), psrc="192.0.2.1", pdst="192.0.2.2")
        elif kind == 1:
            frame /= scapy.IPv6(src="2001:db8::1", dst=r.choice(["2001:db8::2", "2001:db9::2"]))
            if r.random() < 0.3:
                frame /= scapy.IPv6ExtHdrDestOpt()
            frame /= r.choice([scapy.TCP, scapy.UDP])(sport=r.randrange(1, 5), dport=r.choice([53, 80]))
        else:
            frame /= scapy.IP(src="10.0.0.1", dst=r.choice(["10.1.0.1", "10.2.0.1"]), tos=r.choice([0, 184]))
            frame /= r.choice([scapy.TCP, scapy.UDP])(sport=r.randrange(1, 5), dport=r.choice([53, 80]))
        packets.append(frame)

    def has(layer):
        return lambda p: p.haslayer(layer)

    def port(p, number):
        return (p.haslayer(scapy.TCP) or p.haslayer(scapy.UDP)) and p[scapy.TCP if p.haslayer(scapy.TCP) else scapy.UDP].dport == number

    rules = [
        ("priority=90,arp,arp_op=2", has(scapy.ARP), lambda p: p[scapy.ARP].op == 2),
        ("priority=80,tcp6,ipv6_dst=2001:db8::/32,tp_dst=80", has(scapy.IPv6), lambda p: p.haslayer(scapy.TCP)
         and p[scapy.IPv6].dst == "2001:db8::2" and port(p, 80)),
        ("priority=70,ipv6,ipv6_exthdr=0x8/0x8", has(scapy.IPv6), lambda p: p.haslayer(scapy.IPv6ExtHdrDestOpt)),
        ("priority=60,dl_vlan=10,ip,ip_dscp=46", has(scapy.IP), lambda p: p.haslayer(scapy.Dot1Q)
         and p[scapy.Dot1Q].vlan == 10 and p[scapy.IP].tos == 184),
        ("priority=50,vlan_vid=0x1000/0x1000,vlan_pcp=5", has(scapy.Dot1Q), lambda p: p[scapy.Dot1Q].prio == 5),
        ("priority=40,udp,nw_dst=10.1.0.0/16,tp_src=2-3", has(scapy.IP), lambda p: p.haslayer(scapy.UDP)
         and p[scapy.IP].dst == "10.1.0.1" and 2 <= p[scapy.UDP].sport <= 3),
        ("priority=30,dl_dst=01:00:00:00:00:00/01:00:00:00:00:00", lambda p: True, lambda p: p.dst.startswith("33")),
        ("priority=0", lambda p: True, lambda p: True),
    ]
    (headrace.folder / "rules.txt").write_text("".join(f"{text} actions={i}\n" for i, (text, *_) in enumerate(rules)))
    scapy.wrpcap(str(headrace.folder / "in.pcap"), packets)
    expected = [0] * len(rules)
    for packet in packets:
        expected[next(i for i, (_, there, test) in enumerate(rules) if there(packet) and test(packet))] += 1
    (headrace.folder / "frames.click").write_text("FromDump(in.pcap, STOP true) -> f :: FlowClassifier(rules.txt);" + "".join(
        f"f[{i}] -> c{i} :: Counter -> Discard;" for i in range(len(rules))))
    run = headrace("run", "frames.click", *WAYS[way], *(f"--read=c{i}.count" for i in range(len(rules))))
    assert [int(n) for n in re.findall(r"^c\d\.count: (\d+)$", run.stdout, re.M)] == expected, run.stdout
    assert all(n > 0 for n in expected), expected


def test_bad_lines_are_all_named(headrace):
    (headrace.folder / "rules.txt").write_text("udp actions=0\nnonsense\nip,nw_src=1.2.3 actions=0\nudp actions=7\n")
    (headrace.folder / "bad.click").write_text("Idle -> FlowClassifier(rules.txt) -> Discard;")
    said = headrace("check", "bad.click")
    for text in ("rules.txt:2: expected a ClassBench rule", "rules.txt:3: bad value '1.2.3' for nw_src",
                 "rules.txt:4: output 7: this element has 1 output"):
        assert text in said.stdout + said.stderr
    (headrace.folder / "bad.click").write_text("Idle -> FlowClassifier(rules.txt, STRICT true) -> Discard;")
    said = headrace("check", "bad.click", status=1)
    assert "rules.txt:4: output 7" in said.stdout + said.stderr
