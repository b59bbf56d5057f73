"""The configurations that come with Headrace, Click's own, and what is said about broken ones."""

import os
import pathlib
import re
import shutil
import signal
import struct
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
CONF = ROOT / "conf"
FORWARDING = ROOT / "tests" / "config" / "forwarding.click"
FORWARDING6 = ROOT / "tests" / "config" / "forwarding6.click"

# Ethernet, IPv4 and UDP from 10.0.0.9 to 20.0.0.1.
FRAME = bytes.fromhex("020000000001" "020000000101" "0800" "4500001c0000000040115cc80a00000914000001" "03e807d000080000")


def write_capture(path, frames):
    records = b"".join(struct.pack("<IIII", 0, 0, len(frame), len(frame)) + frame for frame in frames)
    path.write_bytes(struct.pack("<IHHiIII", 0xa1b2c3d4, 2, 4, 0, 0, 65535, 1) + records)


def read_capture(path):
    data, at, frames = path.read_bytes(), 24, []
    while at < len(data):
        length = struct.unpack_from("<I", data, at + 8)[0]
        frames.append(data[at + 16:at + 16 + length])
        at += 16 + length
    return frames


# conf/nat.click on capture files instead of interfaces.
NAT_VARIABLES = ["LAN=pcap:in.pcap", "LAN_OUT=pcap:lan.pcap", "LAN_ADDR=10.0.0.1/24", "LAN_ETH=02:00:00:00:00:01",
                 "WAN=pcap:wan-in.pcap", "WAN_OUT=pcap:wan.pcap", "WAN_ETH=02:00:00:00:00:02"]
# The gateway 203.0.113.1 answers 203.0.113.2.
ARP_REPLY = bytes.fromhex("020000000002" "020000000202" "0806" "0001080006040002" "020000000202cb007101" "020000000002cb007102")


def number(text):
    return int(text.replace(",", ""))


def closing_table(text):
    """Packets by port ("in a", "out b") and by worker, drops by (element, reason) of `headrace run`."""
    ports = {f"{way} {name}": number(n) for way, name, n in re.findall(r"^(in|out) +(\S+) +([\d,]+) +[\d,]+ ", text, re.M)}
    workers = [number(n) for n in re.findall(r"^\d+ +([\d,]+) +[\d.]+% ", text, re.M)]
    drops = {}
    if "\nno drops\n" not in text and "\nno packets came in\n" not in text:
        _, _, table = text.partition("\ndrops at ")
        for name, n, reason in re.findall(r"^(\S+) +([\d,]+)  (.+)$", table, re.M):
            drops[name, reason] = number(n)
        assert drops
    return ports, workers, drops


@pytest.mark.parametrize("conf", sorted(CONF.glob("*.click")), ids=lambda path: path.name)
def test_configuration_runs(headrace, conf):
    text = conf.read_text()
    if "DPDKDevice" in text and headrace("elements", "FromDPDKDevice", status=None).returncode != 0:
        pytest.skip("this headrace is built without DPDK")
    write_capture(headrace.folder / "in.pcap", [FRAME] * 3)
    interfaces = re.findall(r"\$(DEV\d?) eth\d", text)
    variables = []
    if "$IN" in text:
        variables = ["IN=in.pcap", "OUT0=out0.pcap", "OUT1=out1.pcap"]
    elif conf.name in ("nat.click", "ipsec-gateway.click", "ipsec-secgw.click"):
        write_capture(headrace.folder / "wan-in.pcap", [ARP_REPLY])
        variables = NAT_VARIABLES
    elif "$FILE" in text:
        variables = ["FILE=in.pcap", "DEV=pcap:out.pcap"]
    elif interfaces:
        # All is well up to the interfaces; tests/system runs it between real ones.
        variables = [f"{name}=no-such-{name}" for name in interfaces]
        assert headrace("check", "-q", conf, *variables).stderr == ""
        error = headrace("run", conf, *variables, status=1).stderr
        assert re.fullmatch(r"\S+:\d+: While initializing '\S+ :: FromDevice':\n  no-such-DEV\d?: no such interface\n"
                            r"Router could not be initialized!\n", error)
        return
    done = headrace("run", "--duration", "1", conf, *variables)
    assert done.stderr == ""
    # Alerts are lines of JSON, whenever they are written.
    text = re.sub(r"^\{.*\n", "", done.stdout, flags=re.M)
    assert re.search(r"\nran [\d.]+ s\n$", text)
    ports, _, _ = closing_table(text)
    assert sum(ports.values()) > 0


def test_nat_rewrites(headrace):
    frame = FRAME.replace(bytes.fromhex("03e8"), bytes.fromhex("0fa0"))  # from port 4000
    write_capture(headrace.folder / "in.pcap", [frame, frame])
    write_capture(headrace.folder / "wan-in.pcap", [ARP_REPLY])
    headrace("run", "--duration", "1", CONF / "nat.click", *NAT_VARIABLES)
    out = [f for f in read_capture(headrace.folder / "wan.pcap") if f[12:14] == b"\x08\x00"]
    assert [f[26:42].hex() for f in out] == ["cb007102" "14000001" "0fa007d000080000"] * 2  # the port was free
    assert all(f[22] == 63 and f[:12].hex() == "020000000202" "020000000002" for f in out)
    for f in out:
        total = sum(struct.unpack("!10H", f[14:34]))
        assert (total & 0xffff) + (total >> 16) == 0xffff


@pytest.mark.parametrize("conf", ["sdn-forwarder", "acl-router", "sdn-ids-router"])
def test_headers_are_drawn_inside_the_rules(headrace, conf):
    """With the sample, every packet has a rule; with rules that leave something out, the share that was asked for has none."""
    def run(*variables):
        text = headrace("run", "-q", "--duration", "1", "-w", 1, CONF / f"{conf}.click", *variables).stdout
        ports, _, drops = closing_table(re.sub(r"^\{.*\n", "", text, flags=re.M))
        received = ports.pop("in TrafficSource@1")
        kept = sum(number(n) for n in re.findall(r"^\S+ +([\d,]+)  discarded$", text, re.M))
        assert received == sum(ports.values()) + sum(drops.values()) + kept
        return received, ports, drops

    received, ports, drops = run()
    assert received > 10000 and not any("rule" in reason for _, reason in drops)
    assert all(n > received / 1000 for n in ports.values()) and len(ports) == 4
    (headrace.folder / "my.flows").write_text("tcp,nw_dst=10.0.0.0/8 actions=output:0\nudp,nw_src=20.0.0.0/8 actions=output:1\n"
                                              "priority=1,udp,nw_dst=20.0.0.0/8 actions=drop\n")
    received, _, drops = run("RULES=my.flows", "MISS=0.3")
    missed = sum(n for (_, reason), n in drops.items() if reason == "no rule matches")
    dropped = sum(n for (_, reason), n in drops.items() if reason == "dropped by a rule")
    assert abs(missed / received - 0.3) < 0.02 and abs(dropped / received - 0.7 / 3) < 0.02


@pytest.mark.parametrize("conf, prefixes", [("ipv4-router", 901899), ("ipv6-forward", 160147)], ids=["ipv4", "ipv6"])
def test_router_on_a_full_table(headrace, conf, prefixes):
    text = headrace("run", "--duration", "2", "--interval", "0.5", CONF / f"{conf}.click").stdout
    routes = number(re.search(r"^rt :: \w+: ([\d,]+) routes", text, re.M).group(1))
    assert routes == prefixes + 1  # and the default route
    lines = re.findall(r"^ +\d+ s  in +([\d.]+) [kM]?pps .* out +([\d.]+) [kM]?pps", text, re.M)
    assert len(lines) >= 2 and all(float(way_in) > 0 for way_in, _ in lines[1:])
    ports, workers, drops = closing_table(text)
    received = ports.pop("in TrafficSource@1")
    assert received > 10000 and sum(workers) == received
    assert set(ports) == {f"out sink{i}" for i in range(4)} and all(n > received / 20 for n in ports.values())
    assert received == sum(ports.values()) + sum(drops.values())


@pytest.mark.parametrize("conf", [FORWARDING, FORWARDING6], ids=["ipv4", "ipv6"])
@pytest.mark.parametrize("workers, traffic", [(1, "uniform"), (2, "imix"), (3, "zipf"), (3, "uniform")])
def test_every_packet_is_right_and_none_is_lost(headrace, conf, workers, traffic):
    limit = 100003
    sinks = set(re.findall(r"^(\S+/TrafficSink@\d+) ::", headrace("flatten", conf).stdout, re.M))
    assert len(sinks) == 4
    reads = [word for name in sinks for handler in ("count", "bad", "bad_details") for word in ("-r", f"{name}.{handler}")]
    text = headrace("run", "-q", "-w", workers, conf, f"LIMIT={limit}", f"TRAFFIC={traffic}", *reads).stdout
    ports, by_worker, drops = closing_table(text)
    assert ports["in TrafficSource@1"] == limit
    assert len(by_worker) == workers and sum(by_worker) == limit and all(by_worker)
    assert drops == {}
    assert sum(ports[f"out {name}"] for name in sinks) == limit
    for name in sinks:
        assert re.search(rf"^{re.escape(name)}\.bad: 0$", text, re.M), text
        assert number(re.search(rf"^{re.escape(name)}\.count: (\d+)$", text, re.M).group(1)) == ports[f"out {name}"] > 0


def test_the_check_finds_wrong_packets(headrace):
    """A TTL that is not expected is found, so the tests above do look."""
    text = headrace("run", "-q", FORWARDING, "LIMIT=1000", "TTL=62").stdout
    assert closing_table(text)[0]["in TrafficSource@1"] == 1000
    routed = ("TrafficSource(LIMIT 1000, STOP true) -> Strip(14) -> CheckIPHeader -> rt :: RadixIPLookup(0/1 0, 128/1 1);"
              "rt[0] -> EtherEncap(0x0800, 2:0:0:0:0:1, 2:0:0:0:0:2) -> s :: TrafficSink(CHECK true, TTL 64, TABLE rt, PORT 1);"
              "rt[1] -> Unstrip(14) -> t :: TrafficSink(CHECK true, TTL 63);")
    (headrace.folder / "wrong.click").write_text(routed)
    text = headrace("run", "-q", "wrong.click", "-r", "s.bad", "-r", "s.count", "-r", "t.bad_details", "-r", "t.count").stdout
    values = dict(re.findall(r"^([st]\.\w+): (\d+)", text, re.M))
    assert values["s.bad"] == values["s.count"] != "0"
    assert values["t.bad_details"] == values["t.count"] != "0" and "wrong TTL" in text


def test_the_check_finds_wrong_ipv6_packets(headrace):
    (headrace.folder / "prefixes.txt").write_text("2001:db8::/32\n2001:db9::/33\n")
    routed = ("TrafficSource(LIMIT 1000, STOP true, PREFIXES prefixes.txt, LENGTH 62) -> Strip(14) -> CheckIP6Header"
              " -> rt :: LookupIP6Route(2001:db8::/32 0, 2001:db9::/33 1);"
              "rt[0] -> EtherEncap(0x86dd, 2:0:0:0:0:1, 2:0:0:0:0:2) -> s :: TrafficSink(CHECK true, TTL 64, TABLE rt, PORT 1);"
              "rt[1] -> Unstrip(14) -> t :: TrafficSink(CHECK true, TTL 63);")
    (headrace.folder / "wrong.click").write_text(routed)
    text = headrace("run", "-q", "wrong.click", "-r", "s.bad", "-r", "s.count", "-r", "t.bad_details", "-r", "t.count").stdout
    values = dict(re.findall(r"^([st]\.\w+): (\d+)", text, re.M))
    assert values["s.bad"] == values["s.count"] != "0"
    assert values["t.bad_details"] == values["t.count"] != "0" and "wrong TTL" in text
    assert int(values["s.count"]) + int(values["t.count"]) == 1000


@pytest.mark.parametrize("limit", [0, 1, 257, 10000])
@pytest.mark.parametrize("workers", [1, 2, 3])
def test_limit_is_exact(headrace, workers, limit):
    (headrace.folder / "limit.click").write_text(f"TrafficSource(LIMIT {limit}, STOP true) -> s :: TrafficSink;\n")
    text = headrace("run", "-q", "-w", workers, "limit.click", "-r", "s.count").stdout
    assert closing_table(text)[0] == {"in TrafficSource@1": limit, "out s": limit}
    assert text.endswith(f"s.count: {limit}\n")


BROKEN = [
    ("misspelled element", "Idle\n  -> TrafficSnk;", "2: undeclared element 'TrafficSnk'"),
    ("unknown class", "Idle\n  -> TrafficSnk();", "2: undeclared element 'TrafficSnk'"),
    ("syntax", "Idle\n  -> -> Discard;", "2: syntax error near '->'"),
    ("missing route file", "Idle\n  -> r :: RadixIPLookup(FILE none.txt)\n  -> Discard;",
     "2: While configuring 'r :: RadixIPLookup':\n  none.txt: No such file or directory"),
    ("bad route file", "Idle\n  -> r :: RadixIPLookup(FILE routes.txt)\n  -> Discard;",
     "2: While configuring 'r :: RadixIPLookup':\n  routes.txt:2: "),
    ("missing capture", "FromDump(none.pcap) -> Discard;",
     "1: While initializing 'FromDump@1 :: FromDump':\n  none.pcap: No such file or directory"),
    ("no such output", "Idle -> s :: Strip(14) -> Discard;\ns[3] -> Discard;", "1: 's :: Strip' has no output 3"),
    ("no such input", "Idle -> Discard;\nIdle -> [1] s :: Strip(14) -> Discard;\nIdle -> s;", "2: 's :: Strip' has no input 1"),
    ("output of a route", "Idle\n -> r :: RadixIPLookup(1.0.0.0/8 0, 2.0.0.0/8 1)\n -> Discard;",
     "2: While configuring 'r :: RadixIPLookup':\n  argument 2 bad OUTPUT"),
    ("too small", "TrafficSource(LENGTH 5)\n -> Discard;", "1: While configuring 'TrafficSource@1 :: TrafficSource':\n  LENGTH: out of range, "),
    ("too small for IPv6", "TrafficSource(PREFIXES routes6.txt, LENGTH 61)\n -> Discard;",
     "1: While configuring 'TrafficSource@1 :: TrafficSource':\n  LENGTH: out of range, "),
    ("bad prefix", "TrafficSource(PREFIXES routes.txt)\n -> Discard;",
     "1: While configuring 'TrafficSource@1 :: TrafficSource':\n  routes.txt:1: bad address '10.0.0.0'"),
    ("too large", "TrafficSource()\n -> Discard;\nIdle -> Paint(256) -> Discard;", "3: While configuring 'Paint@4 :: Paint':\n  "),
    ("unknown keyword", "TrafficSource(LNGTH 64)\n -> Discard;",
     "1: While configuring 'TrafficSource@1 :: TrafficSource':\n  LNGTH: unknown argument"),
    ("no element of that name", "Idle -> TrafficSink(CHECK true, TABLE nope);", "1: While configuring 'TrafficSink@2 :: TrafficSink':\n  TABLE: "),
    ("an element without lookup", "Idle -> TrafficSink(CHECK true, TABLE i); i :: Idle;",
     "1: While initializing 'TrafficSink@2 :: TrafficSink':\n  TABLE: 'i :: Idle' has no 'lookup' handler"),
]


@pytest.mark.parametrize("text, message", [case[1:] for case in BROKEN], ids=[case[0] for case in BROKEN])
def test_errors_name_place_and_element(headrace, text, message):
    (headrace.folder / "broken.click").write_text(text + "\n")
    (headrace.folder / "routes.txt").write_text("10.0.0.0/8 0\n10.0.0.0/99 0\n")
    (headrace.folder / "routes6.txt").write_text("2001:db8::/32\n")
    for command in ("run", "click", "check"):
        if command == "check" and "While initializing" in message:
            continue  # it opens no files
        assert f"broken.click:{message}" in headrace(command, "broken.click", status=1).stderr


def test_push_into_pull_is_named(headrace):
    (headrace.folder / "broken.click").write_text("i :: InfiniteSource -> q :: Queue -> f :: IPFragmenter(1500) -> Discard;\n")
    error = headrace("run", "broken.click", status=1).stderr
    assert "'q :: Queue' pull output 0 connected to 'f :: IPFragmenter' push input 0" in error


def test_missing_file(headrace):
    assert headrace("run", "none.click", status=1).stderr == "none.click: No such file or directory\n"
    assert "no configuration given" in headrace("run", "X=1", status=2).stderr


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signal_ends_run_with_the_closing_table(headrace, number):
    (headrace.folder / "c.click").write_text("TrafficSource -> s :: TrafficSink;\n")
    process = headrace.start("run", "--interval", "0.1", "c.click", "-r", "s.count")
    lines = []
    for line in process.stdout:
        lines.append(line)
        if re.match(r" +\d+ s  in +(?! |0 pps)", line):
            process.send_signal(number)
            break
    rest, error = process.communicate(timeout=60)
    assert process.returncode == 0, error
    ports, _, _ = closing_table("".join(lines) + rest)
    assert ports["in TrafficSource@1"] == ports["out s"] > 0
    assert rest.endswith(f"s.count: {ports['out s']}\n")


def click_source():
    """A checkout of Click, given by CLICK_SOURCE."""
    path = os.environ.get("CLICK_SOURCE")
    if not path or not (pathlib.Path(path) / "conf" / "fake-iprouter.click").exists():
        pytest.skip("CLICK_SOURCE does not name a checkout of Click")
    return pathlib.Path(path)


def test_fake_iprouter_of_click(headrace):
    conf = click_source() / "conf" / "fake-iprouter.click"
    text = headrace("click", conf, "-h", "*.drop_reasons", "-h", "Discard.count", "-h", "out0.highwater_length", status=None)
    assert text.returncode == 0, text.stderr
    counts = [int(n) for n in re.findall(r"Discard@?\d*\.count:\n(\d+)", text.stdout)]
    assert 0 < sum(counts) <= 600000
    dropped = sum(int(n) for n in re.findall(r"^(\d+)\t", text.stdout, re.M))
    assert sum(counts) + dropped == 600000


@pytest.mark.skipif(not shutil.which("perl"), reason="perl is not installed")
def test_make_ip_conf_of_click(headrace):
    script = click_source() / "conf" / "make-ip-conf.pl"
    conf = subprocess.run(["perl", str(script)], text=True, capture_output=True, check=True).stdout
    assert "ARPQuerier" in conf and "PollDevice(eth0)" in conf
    write_capture(headrace.folder / "in.pcap", [])
    conf = re.sub(r"PollDevice\(eth\d\)", "PollDevice(pcap:in.pcap)", conf)
    conf = re.sub(r"ToDevice\((eth\d)\)", r"ToDevice(pcap:\1.pcap)", conf)
    (headrace.folder / "router.click").write_text(conf)
    done = headrace("run", "--duration", "1", "router.click")
    assert done.stderr == "toh :: ToHost: no device leads to the host; packets for it are dropped\n"
