"""IDSMatcher replays captures: the alerts that it writes are those of rules that match, worked out here independently."""

import collections
import json
import pathlib
import random
import re

import pytest

scapy = pytest.importorskip("scapy.all")

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
SAMPLE = ROOT / "conf" / "data"


def replay(headrace, capture, arguments, *options):
    """(alerts by sid, lines of JSON, what handlers said) of a run."""
    eve = headrace.folder / "eve.json"
    eve.unlink(missing_ok=True)
    text = (f"FromDump({capture}, STOP true) -> m :: IDSMatcher({arguments}, ALERTS eve.json)\n -> clean :: Counter -> Discard;\n"
            "m[1] -> alerted :: Counter -> Discard;\n")
    (headrace.folder / "ids.click").write_text(text)
    done = headrace("run", "-q", "ids.click", *options, "-r", "m.alerts", "-r", "clean.count", "-r", "alerted.count", "-r", "m.cut")
    out = done.stdout[done.stdout.index("m.alerts:"):]
    counts = {int(sid): int(n) for sid, n in re.findall(r"^(?:m\.alerts: ?)?(\d+) (\d+) ", out, re.M)}
    values = {name: int(n) for name, n in re.findall(r"^(clean\.count|alerted\.count|m\.cut): (\d+)$", out, re.M)}
    lines = [json.loads(line) for line in eve.read_text().splitlines()]
    return counts, lines, values


def sids(lines):
    return dict(collections.Counter(line["alert"]["signature_id"] for line in lines))


MODES = [("cpu",), ("device", "--backend", "reference")]


@pytest.mark.parametrize("mode", MODES, ids=lambda m: m[0])
def test_sample(headrace, mode):
    counts, lines, values = replay(headrace, SAMPLE / "ids-sample.pcap",
                                   f"RULES {SAMPLE / 'sample.rules'}, CLASSIFICATION {SAMPLE / 'sample.classification'}, RATE 0",
                                   "--mode", *mode)
    assert counts == sids(lines)
    assert set(counts) == set(range(9000001, 9000021))
    assert all(counts[sid] == 1 for sid in counts), counts
    assert values["m.cut"] == 0
    assert values["clean.count"] + values["alerted.count"] == 230
    by_sid = {line["alert"]["signature_id"]: line for line in lines}
    six = by_sid[9000018]
    assert (six["src_ip"], six["dest_ip"], six["dest_port"], six["proto"]) == ("2001:db8::10", "2001:db8:1::80", 8080, "TCP")
    assert six["timestamp"].startswith("2023-11-14T22:1") and six["timestamp"].endswith("+0000")
    echo = by_sid[9000015]
    assert (echo["icmp_type"], echo["icmp_code"], echo["proto"]) == (8, 0, "ICMP") and "src_port" not in echo
    assert by_sid[9000001]["alert"] == {"action": "allowed", "gid": 1, "signature_id": 9000001, "rev": 1,
                                        "signature": "SAMPLE request of /etc/passwd", "category": "Web application attack",
                                        "severity": 1}


def test_sample_is_what_its_script_writes(tmp_path):
    import runpy
    packets = runpy.run_path(ROOT / "tests" / "data" / "make_ids_sample.py")["sample"]()
    scapy.wrpcap(str(tmp_path / "again.pcap"), packets)
    assert (tmp_path / "again.pcap").read_bytes() == (SAMPLE / "ids-sample.pcap").read_bytes()


PORTS = {"any": lambda port: True, "80": lambda port: port == 80, "443": lambda port: port == 443, "!80": lambda port: port != 80,
         "[80,8080]": lambda port: port in (80, 8080), "[1:100,!80]": lambda port: port <= 100 and port != 80}


def random_rules(rng):
    """Rules with their meaning as a function of (protocol, ports, payload)."""
    rules = []
    words = [bytes(rng.choice(b"abAB|\"\\;:\x00\xff") for _ in range(rng.randint(1, 4))) for _ in range(30)]

    def quoted(word):
        return "".join(f"|{c:02x}|" if c in b'|"\\;:' or not 32 <= c < 127 else chr(c) for c in word)

    for sid in range(1, 121):
        protocol, word, nocase = rng.choice(["tcp", "udp", "ip"]), rng.choice(words), rng.random() < .4
        sports, dports, arrow = rng.choice(["any", rng.choice(list(PORTS))]), rng.choice(list(PORTS)), rng.choice(["->", "->", "->", "<>"])
        offset, depth = rng.choice([0, 0, 1, 5]), rng.choice([None, None, 8, 20])
        other, size = rng.choice(words), rng.choice([None, None, 30])
        negated = rng.random() < .3
        options = f'content:"{quoted(word)}"; ' + ("nocase; " if nocase else "") + (f"offset:{offset}; " if offset else "")
        if depth:
            options += f"depth:{depth}; "
        kind = rng.choice(["alone", "and", "regex", "near"])
        if kind == "and":
            options += f'content:{"!" if negated else ""}"{quoted(other)}"; '
        elif kind == "regex":
            options += f'pcre:{"!" if negated else ""}"/' + "".join(f"\\x{c:02x}" for c in other) + '[ab]+$/i"; '
        elif kind == "near":
            options += f'content:"{quoted(other)}"; distance:1; within:{len(other) + 6}; '
        if size:
            options += f"dsize:>{size}; "
        text = f"alert {protocol} any {sports} {arrow} any {dports} ({options}sid:{sid};)"

        flags = re.I if nocase else 0
        start, end = f"(?s:.{{{offset},}}?)", depth

        def meaning(packet, protocol=protocol, sports=sports, dports=dports, arrow=arrow, word=word, flags=flags, offset=offset,
                    depth=depth, kind=kind, other=other, negated=negated, size=size):
            kind_of, sport, dport, payload = packet
            ways = [(sport, dport)] + [(dport, sport)] * (arrow == "<>")
            if not any(PORTS[sports](a) and PORTS[dports](b) for a, b in ways):
                return False
            if protocol not in (kind_of, "ip") or (size and len(payload) <= size):
                return False
            room = payload[offset:offset + depth] if depth else payload[offset:]
            first = re.compile(b"(?=" + re.escape(word) + b")", flags)
            places = [m.start() + offset for m in first.finditer(room)]
            if not places:
                return False
            if kind == "and":
                return (other in payload) != negated
            if kind == "regex":
                return bool(re.search(re.escape(other) + rb"[ab]+(?=\n?\Z)", payload, re.I)) != negated
            if kind == "near":
                return any(other in payload[p + len(word) + 1:p + len(word) + 1 + len(other) + 6] for p in places)
            return True

        rules.append((sid, text, meaning))
    return rules, words


@pytest.mark.parametrize("seed", [1, 2])
def test_random_rules_on_random_packets(headrace, seed):
    rng = random.Random(seed)
    rules, words = random_rules(rng)
    (headrace.folder / "r.rules").write_text("\n".join(text for _, text, _ in rules) + "\n")
    packets, frames = [], []
    for _ in range(400):
        payload = b"".join(rng.choice([rng.choice(words), bytes([rng.choice(b"abcxyz ")])]) for _ in range(rng.randint(0, 30)))
        protocol, sport, dport = rng.choice(["tcp", "udp"]), rng.choice([1, 80, 8080]), rng.choice([80, 443, 8080])
        packets.append((protocol, sport, dport, payload))
        ip = scapy.IP(src="10.0.0.1", dst="10.0.0.2") if rng.random() < .7 else scapy.IPv6(src="::1", dst="::2")
        l4 = scapy.TCP(sport=sport, dport=dport, options=rng.choice([[], [("MSS", 1460)]])) if protocol == "tcp" else scapy.UDP(sport=sport, dport=dport)
        frame = scapy.Ether(src="02:00:00:00:00:01", dst="02:00:00:00:00:02") / ip / l4 / scapy.Raw(payload)
        frames.append(bytes(frame) + bytes(max(0, 60 - len(frame))))  # padded, as an Ethernet does
    scapy.wrpcap(str(headrace.folder / "in.pcap"), [scapy.Ether(f) for f in frames])
    expected = {sid: n for sid, _, meaning in rules if (n := sum(meaning(p) for p in packets))}
    assert len(expected) > 60
    for mode in MODES:
        counts, lines, values = replay(headrace, "in.pcap", "RULES r.rules, RATE 0", "--mode", *mode)
        assert counts == expected
        assert sids(lines) == expected
        assert values["alerted.count"] == sum(any(meaning(p) for _, _, meaning in rules) for p in packets)


def test_alerts_to_standard_output(headrace):
    (headrace.folder / "o.click").write_text(
        f"FromDump({SAMPLE / 'ids-sample.pcap'}, STOP true) -> IDSMatcher(RULES {SAMPLE / 'sample.rules'}, ALERTS -) -> Discard;\n")
    out = headrace("run", "-q", "o.click").stdout
    assert out.rindex('"event_type":"alert"') < out.index("\nno drops\n")
    assert len(re.findall(r'^\{"timestamp":.*"event_type":"alert".*\}$', out, re.M)) == 20


def test_bad_files(headrace):
    (headrace.folder / "bad.rules").write_text('alert tcp any any -> any any (content:"x; sid:1;)\nalert tcp any any -> any any (sid:2;)\n')
    text = "Idle -> IDSMatcher(RULES {}, ALERTS eve.json) -> Discard;"
    done = headrace("run", "--duration", "0.1", "-", stdin=text.format("bad.rules"))
    assert "warning: bad.rules:1: a quotation mark is missing\n" in done.stderr
    assert "2 rules: 1 run, 1 are wrong" in done.stdout
    error = headrace("check", "-e", text.format("bad.rules, STRICT true"), status=1).stderr
    assert "  bad.rules:1: a quotation mark is missing\n" in error
    (headrace.folder / "eve.json").unlink()
    headrace("check", "-e", text.format("bad.rules"))
    assert not (headrace.folder / "eve.json").exists()
    assert "  none.rules: No such file or directory\n" in headrace("check", "-e", text.format("none.rules"), status=1).stderr
