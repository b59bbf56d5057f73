"""Configurations give the same bytes, counters and drops from element to element, compiled for the CPU, and on the reference device:
on real captures, on random frames, and after each write handler of a shader."""

import collections
import gzip
import io
import ipaddress
import lzma
import os
import pathlib
import random
import re
import signal
import struct
import tarfile
import time

import pytest
from test_compile import needs_compiler
from test_control import Client

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
DATA = ROOT / "conf" / "data"
CAPTURES = ROOT / ".." / "shared" / "data" / "pcap"
# Not the gateways of IPsec, whose bytes are others each time: no initialization vector repeats.
CONFIGURATIONS = sorted(path for path in [*(ROOT / "conf").glob("*.click"), *(ROOT / "tests" / "config").glob("*.click")]
                        if path.stem not in ("ipsec-gateway", "ipsec-secgw"))
# No two of their shaders follow one another: there is nothing to compile.
WITHOUT_CHAINS = {"bridge", "dpdk-forward", "pcap-replay"}

WAYS = {
    "off": ["--mode", "cpu", "--compile", "off"],
    "compiled": ["--mode", "cpu", "--compile", "wait"],
    # On a machine with a GPU, HEADRACE_DEVICE=cuda holds that one to the same answers.
    "device": ["--mode", "device", "--backend", os.environ.get("HEADRACE_DEVICE", "reference"), "--compile", "off"],
}

# Of each capture so many frames from its beginning, and so many spread over the rest; with CI_FULL many more.
FIRST, SPREAD = (1000, 1000) if os.environ.get("CI_FULL") else (8, 6)
RANDOM = 1200
# So many of all frames after a write handler.
AFTER_WRITE = 500

NETWORKS = ["10.0.0.0/24", "10.0.1.0/24", "203.0.113.0/24"]
# Of conf/nat.click.
OUTSIDE = ipaddress.ip_address("203.0.113.2").packed
MACS = {"eth0": bytes.fromhex("020000000001"), "eth1": bytes.fromhex("020000000002")}


def ethernet_frames(data):
    """The frames of a capture file as it stands. Packets without Ethernet header get one."""
    if data[:2] == b"\x1f\x8b":
        data = gzip.decompress(data)
    if data[:4] == b"\x0a\x0d\x0d\x0a":
        yield from pcapng_frames(data)
        return
    order = {b"\xa1\xb2": ">", b"\xd4\xc3": "<", b"\x4d\x3c": "<"}.get(data[:2])
    if order is None or len(data) < 24:
        return
    link, at = struct.unpack_from(order + "I", data, 20)[0], 24
    while at + 16 <= len(data):
        length, = struct.unpack_from(order + "I", data, at + 8)
        yield with_ethernet(link, data[at + 16:at + 16 + length])
        at += 16 + length


def pcapng_frames(data):
    order, link, at = "<", 1, 0
    while at + 12 <= len(data):
        kind, length = struct.unpack_from(order + "II", data, at)
        if kind == 0x0a0d0d0a:
            order = "<" if data[at + 8:at + 12] == b"\x4d\x3c\x2b\x1a" else ">"
            length, = struct.unpack_from(order + "I", data, at + 4)
        elif kind == 1:
            link, = struct.unpack_from(order + "H", data, at + 8)
        elif kind == 6:
            captured, = struct.unpack_from(order + "I", data, at + 20)
            yield with_ethernet(link, data[at + 28:at + 28 + captured])
        at += max(length, 12)


def with_ethernet(link, packet):
    """Bare IP (101, 228, 229) and the loopback of BSD (0) behind an Ethernet header; all else as it is."""
    if link == 0:
        packet = packet[4:]
    if link in (0, 101, 228, 229) and packet:
        packet = bytes(12) + (b"\x86\xdd" if packet[0] >> 4 == 6 else b"\x08\x00") + packet
    return packet


def some(frames):
    rest = frames[FIRST:]
    return frames[:FIRST] + rest[::max(1, len(rest) // SPREAD)][:SPREAD]


def captured():
    """Some frames of each real capture."""
    if not CAPTURES.is_dir():
        pytest.skip(f"{CAPTURES} is not there")
    result = []
    for path in sorted(CAPTURES.glob("*.xz")):
        data = lzma.open(path).read()
        if not path.name.endswith(".tar.xz"):
            result += some(list(ethernet_frames(data)))
            continue
        with tarfile.open(fileobj=io.BytesIO(data)) as archive:
            for member in sorted((m for m in archive.getmembers() if m.isfile()), key=lambda m: m.name):
                result += some(list(ethernet_frames(archive.extractfile(member).read())))
    return result


def table_part(family):
    """A part of the full table, which takes seconds to build."""
    return lzma.open(DATA / f"bgp-full-{family}.txt.xz", "rt").read().splitlines()[::50]


def rules_part():
    """Some rules of the sample, its rule of everything, and rules about addresses and ports that frames have."""
    sample = lzma.open(DATA / "acl1_10k.rules.xz", "rt").read().splitlines()
    return [*sample[:-1:50], sample[-1], "priority=3000000000,udp,tp_dst=0-1023 actions=output:1",
            "priority=3000000000,ip,nw_src=10.0.0.0/25,nw_proto=6 actions=output:1", "priority=3000000000,icmp,icmp_type=8 actions=drop",
            "priority=2999999999,ip,nw_dst=10.0.1.0/255.255.255.3 actions=output:1"]


def checksum(data):
    total = sum(struct.unpack(f"!{len(data) // 2}H", data))
    total = (total & 0xffff) + (total >> 16)
    return ~((total & 0xffff) + (total >> 16)) & 0xffff


def random_ipv4(r):
    """A packet that a router forwards or answers, most of the time."""
    options = bytes(r.choice((0, 1, 7, 68, 131, 137, 148, r.randrange(256), 4, 8)) for _ in range(4 * r.choice((0, 0, 0, 1, 2, 10))))
    protocol = r.choice((1, 6, 17, 17, r.randrange(256)))
    payload = r.randbytes(r.choice((0, 8, 26, 60, r.randrange(1480), 1600)))
    if protocol == 1 and len(payload) >= 8:
        payload = bytes([r.choice((0, 8, 3, 11)), 0]) + payload[2:]
    source = ipaddress.ip_address(f"10.0.{r.randrange(2)}.{r.randrange(1, 255)}") if r.random() < .8 else r.getrandbits(32)
    destination = r.choice((f"10.0.0.{r.randrange(256)}", f"10.0.1.{r.randrange(256)}", "10.0.0.1", "20.0.0.1", "30.1.2.3",
                            "255.255.255.255", "224.0.0.5", "203.0.113.2", r.getrandbits(32), r.getrandbits(32), r.getrandbits(32)))
    header = struct.pack("!BBHHHBBH4s4s", 0x45 + len(options) // 4, r.choice((0, r.randrange(256))), 20 + len(options) + len(payload),
                         r.getrandbits(16), r.choice((0, 0, 0, 0x4000, 0x2000, r.getrandbits(14))), r.choice((64, 64, 64, 2, 1, 0)),
                         protocol, 0, ipaddress.ip_address(int(ipaddress.ip_address(source))).packed,
                         ipaddress.ip_address(destination).packed) + options
    header = header[:10] + struct.pack("!H", checksum(header)) + header[12:]
    return r.choice((b"\x02\0\0\0\0\x01", b"\xff" * 6)) + b"\x02\0\0\0\x01\x01" + b"\x08\x00" + header + payload


def random_ipv6(r, prefixes):
    payload = r.randbytes(r.choice((0, 8, 40, 1400)))
    prefix = ipaddress.ip_network(r.choice(prefixes))
    destination = r.choice((int(prefix[0]) + r.randrange(prefix.num_addresses), r.getrandbits(128)))
    return bytes(12) + b"\x86\xdd" + struct.pack("!IHBB", 6 << 28, len(payload), r.choice((6, 17, 0, 58)), r.choice((64, 64, 1, 0))) + \
        b"\x20\x01" + r.randbytes(14) + ipaddress.IPv6Address(destination).packed + payload


def random_arp(r):
    return b"\xff" * 6 + b"\x02\0\0\0\0\x09" + bytes.fromhex("08060001080006040001") + b"\x02\0\0\0\0\x09" + \
        ipaddress.ip_address("10.0.0.9").packed + bytes(6) + ipaddress.ip_address(r.choice(("10.0.0.1", "10.0.1.1", "203.0.113.2"))).packed


def random_frames(real):
    """Bytes without sense, real frames with some bytes changed or cut, and packets made by rules."""
    r = random.Random(12)
    prefixes = table_part("ipv6")
    result = []
    for _ in range(RANDOM):
        kind = r.randrange(10)
        if kind == 0:
            frame = r.randbytes(r.randrange(1, 1600))
        elif kind == 1:
            frame = r.choice(real)
            frame = frame[:r.randrange(1, max(2, len(frame)))]
        elif kind < 4:
            frame = bytearray(r.choice(real))
            for _ in range(r.randrange(1, 4)):
                frame[r.randrange(min(len(frame), 60))] = r.randrange(256)
        elif kind == 4:
            frame = random_ipv6(r, prefixes)
        elif kind == 5:
            frame = random_arp(r)
        else:
            frame = random_ipv4(r)
        result.append(bytes(frame))
    return result


def patched(frame, at, new):
    """With bytes of an IPv4 header changed, and the checksums of it and of TCP and UDP as right or wrong as before."""
    def adjust(place, old):
        total = sum(struct.unpack(f"!{len(new) // 2}H", new)) + (~struct.unpack_from("!H", frame, place)[0] & 0xffff) + \
            sum(~word & 0xffff for word in struct.unpack(f"!{len(old) // 2}H", old))
        while total >> 16:
            total = (total & 0xffff) + (total >> 16)
        struct.pack_into("!H", frame, place, ~total & 0xffff)

    frame = bytearray(frame)
    old = bytes(frame[at:at + len(new)])
    frame[at:at + len(new)] = new
    adjust(24, old)
    transport = 14 + 4 * (frame[14] & 15)
    place = {6: transport + 16, 17: transport + 6}.get(frame[23])
    if place and place + 2 <= len(frame) and frame[20] & 0x1f == 0 and frame[21] == 0 and frame[place:place + 2] != b"\0\0":
        adjust(place, old)
    return bytes(frame)


def for_inside(frame):
    """To the gateway, from the one host of its network. Where two hosts want the same port, or one wants a port below 1024, the
    gateway picks one at random."""
    if len(frame) < 34 or frame[12:14] != b"\x08\x00":
        return frame
    at = 14 + 4 * (frame[14] & 15)
    ports = frame[at:at + 2], frame[at + 2:at + 4]
    if frame[23] in (6, 17) and ports[0] < b"\4\0":
        frame = frame[:at] + max(ports) + min(ports) + frame[at + 4:]
        if max(ports) < b"\4\0":
            frame = frame[:12] + b"\x08\x06" + frame[14:]
    if frame[30:34] == OUTSIDE:
        frame = patched(frame, 30, b"\xcb\0\x71\3")  # requests for one's own address are never answered, and repeated in time
    return patched(frame, 26, b"\x0a\0\0\2")


def for_outside(frame):
    """The answer to what `for_inside` made, if the gateway kept the port."""
    if len(frame) < 34 or frame[12:14] != b"\x08\x00":
        return frame
    frame = frame[:26] + frame[30:34] + frame[26:30] + frame[34:]
    if len(frame) >= 38 and frame[23] in (6, 17) and frame[14] == 0x45:
        frame = frame[:34] + frame[36:38] + frame[34:36] + frame[38:]
    return patched(frame, 30, OUTSIDE)


def to(mac, frames):
    """Most frames to the interface, so that it takes them."""
    return [mac + frame[6:] if i % 8 else frame for i, frame in enumerate(frames)]


def write_capture(path, frames):
    path.write_bytes(struct.pack("<IHHiIII", 0xa1b2c3d4, 2, 4, 0, 0, 65535, 1) +
                     b"".join(struct.pack("<IIII", 0, 0, len(frame), len(frame)) + frame for frame in frames))


def read_capture(path, begin=0):
    data, at, frames = path.read_bytes(), max(begin, 24), []
    while at < len(data):
        length = int.from_bytes(data[at + 8:at + 12], "little")
        frames.append(data[at + 16:at + 16 + length])
        at += 16 + length
    return frames, at


def comparable(frame):
    """Errors that a router makes are numbered as they are made; packets that leave by different ways have no order."""
    if len(frame) > 34 and frame[14] >> 4 == 4 and frame[23] == 1:
        return frame[:18] + b"\0\0" + frame[20:24] + b"\0\0" + frame[26:]
    return frame


@pytest.fixture(scope="module")
def frames():
    real = [frame for frame in captured() if 14 <= len(frame) <= 9000]
    assert len(real) > 2000
    return real + [frame for frame in random_frames(real) if 14 <= len(frame) <= 9000]


class Scene:
    """A configuration with captures in place of its ports. Each source has its frames once for the first look, and some of them for
    each look after a write handler."""

    def __init__(self, conf, folder, frames):
        text = re.sub(r"(?m)^//.*\n", "", conf.read_text())
        text = re.sub(r"(\.\./\.\./conf/)?\bdata/(?=[\w-])", f"{DATA}/", text)
        for family in "ipv4", "ipv6":
            name = f"bgp-full-{family}.txt.xz"
            if name in text:
                (folder / f"{family}.txt").write_text("\n".join(table_part(family)) + "\n")
                text = text.replace(str(DATA / name), f"{folder}/{family}.txt")
        # All counts of its rules are compared.
        if "acl1_10k.rules.xz" in text:
            (folder / "some.rules").write_text("\n".join(rules_part()) + "\n")
            text = text.replace(str(DATA / "acl1_10k.rules.xz"), f"{folder}/some.rules")
        text = re.sub(r"\bTrafficSource\([^)]*\)", "Frames(eth0)", text)
        text = re.sub(r"\bFromDevice\((?:pcap:)?(\$\w+)[^)]*\)", r"Frames(\1)", text)
        text = re.sub(r"\bQueue(?:\(\d+\))? -> ToDevice\((\$\w+)\)", r"ToDump(\1.out.pcap, SNAPLEN 0)", text)
        text = re.sub(r"\bKernelTap\(.*\) -> (\w+);", r"ToDump($dev.host.out.pcap, SNAPLEN 0); Idle -> \1;", text)
        sinks = iter(range(100))
        text = re.sub(r"\bTrafficSink(\(CHECK[^)]*\))?(?![^\n]*stands)",
                      lambda m: f"ToDump(sink{'$port' if m[1] else next(sinks)}.out.pcap, SNAPLEN 0)", text)
        if "ToDump" not in text:
            text = re.sub(r"\bDiscard\b", lambda m: f"ToDump(sink{next(sinks)}.out.pcap, SNAPLEN 0)", text)
        text = text.replace("$ALERTS -", "$ALERTS alerts.txt").replace("ALERTS -", "ALERTS alerts.txt")
        for old, new in {"$RATE 1)": "$RATE 0)", "in.pcap": "eth0", f"pcap:{DATA}/ids-sample.pcap": "eth0", "out0.pcap": "out0.out.pcap",
                         "out1.pcap": "out1.out.pcap", "192.168.1.1/24": "10.0.0.1/24"}.items():
            text = text.replace(old, new)
        self.text = text
        self.folder = folder
        self.conf = folder / "conf.click"
        names = [name for name in MACS if name in text] or ["eth0"]
        for name in names:
            those = to(MACS[name], frames)
            if conf.stem == "nat":
                # Its outside is eth0. The two have each other's addresses there.
                inside = name == "eth1"
                those = to(MACS["eth0" if inside else "eth1"], [(for_inside if inside else for_outside)(
                    for_inside(frame) if not inside else frame) for frame in frames])
            write_capture(folder / f"{name}.all.pcap", those)
            write_capture(folder / f"{name}.some.pcap", those[::len(those) // AFTER_WRITE])
        self.sent = {0: len(frames), 1: len(frames[::len(frames) // AFTER_WRITE])}
        # Inside first: its packets make the flows that those from outside belong to.
        self.sources = sorted(names, reverse=conf.stem == "nat")

    def write(self, looks):
        later = "".join(f"look{i} :: FromDump($name.some.pcap, ACTIVE false) -> output;\n" for i in range(1, looks))
        self.conf.write_text(f"elementclass Frames {{ $name |\nlook0 :: TrafficSource($name.all.pcap, LIMIT {self.sent[0]}, BURST 128,"
                             f" ACTIVE false) -> output;\n{later}}}\nIdle -> barrier :: Paint(0) -> Discard;\n{self.text}")


# What is not a matter of packets, or of when somebody looks.
NOT_COMPARED = re.compile(r"(bit_|byte_)?rate|home_thread|handlers|ports|name|class|filename|filesize|\w*filepos|.*table|.*mappings|"
                          r"lookup|tcp_lookup|"
                          r"patterns?\d*|list|rules|refused|top|rescans|written|suppressed|lost_alerts|queries|stats|dump|"
                          r"size|capacity|program|latency|pattern_info|not_written|sampling_prob|states")


class Router:
    """A running one of a scene."""

    def __init__(self, headrace, scene, way, env):
        self.scene, self.ends = scene, collections.Counter()
        for old in [*scene.folder.glob("*.out.pcap"), *scene.folder.glob("alerts.txt")]:
            old.unlink()
        path = scene.folder / f"{way}.sock"
        self.process = headrace.start("run", "-q", "-w", "1", *WAYS[way], "-u", path, scene.conf, env=os.environ | env)
        try:
            self.begin(path)
        except BaseException:
            self.__exit__()
            raise

    def begin(self, path):
        scene = self.scene
        self.client = Client(str(path))
        names = self.client.read("list").split("\n")[1:]
        self.classes = {name: self.client.read(f"{name}.class") for name in names if name}
        handlers = {name: [line.split("\t") for line in self.client.read(f"{name}.handlers").splitlines()] for name in self.classes}
        self.reads = [f"{name}.{h}" for name, those in handlers.items() for h, how in those
                      if how.startswith("r") and not NOT_COMPARED.fullmatch(h) and not re.search(r"(^|/)look\d|^click_driver", name)]
        self.writes = [(name, h) for name, those in handlers.items() for h, how in those if "w" in how]
        for name, of in self.classes.items():
            if of == "ICMPError":
                self.write(f"{name}.rate", "0")  # else it is a matter of time what is answered
            if of == "ARPQuerier":
                for network in NETWORKS:
                    for host in list(ipaddress.ip_network(network))[:-1]:
                        self.write(f"{name}.insert", f"{host} 02:00:00:00:01:{host.packed[3]:02x}")
        self.sources = [next(n.removesuffix("/look0") for n, of in self.classes.items() if n.endswith("/look0") and source in (
            self.client.read(f"{n}.config"))) for source in (f"{s}.all" for s in scene.sources)]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
            self.process.communicate()

    def write(self, handler, value):
        code, lines, _ = self.client.write_text(handler, value)
        assert code in (200, 220), (handler, value, lines)  # 220: with a warning

    def counters(self):
        for handler in self.reads:
            self.client.send(f"READ {handler}\r\n".encode())
        self.client.checking = False
        answers = [self.client.answer() for _ in self.reads]
        # How old entries of an OpenFlow switch are is a matter of time.
        return {handler: re.sub(r"\bduration=[\d.]+s, ", "", data) for handler, (code, _, data) in zip(self.reads, answers) if code == 200}

    def outputs(self):
        """By file, the frames since the last look, sorted."""
        for name, of in self.classes.items():
            if of == "ToDump":
                self.write(f"{name}.flush", "")
        result = {}
        for path in self.scene.folder.glob("*.out.pcap"):
            those, self.ends[path.name] = read_capture(path, self.ends[path.name])
            result[path.name] = sorted(map(comparable, those))
        return result

    def look(self, number, expected=None):
        """What has become of the frames of a look, as soon as it is as expected, else when nothing changes any more."""
        for source in self.sources:
            name = f"{source}/look{number}"
            self.write(f"{name}.active", "true")
            deadline = time.monotonic() + 20
            while int(self.client.read(f"{name}.count")) < self.scene.sent[min(number, 1)]:
                assert time.monotonic() < deadline, name
                time.sleep(0.001)
            # This waits until the worker has done with what it had taken.
            self.write("barrier.color", "0")
            # Those from outside find flows only if those from inside are through.
            now = self.settled(None if source != self.sources[-1] or not expected else expected[0])
        return now, self.outputs()

    def settled(self, expected):
        deadline = time.monotonic() + (10 if expected else 0.5)
        before, now = None, self.counters()
        while time.monotonic() < deadline and (now != expected if expected else now != before):
            time.sleep(0.01)
            before, now = now, self.counters()
        return now

    def stop(self):
        self.process.send_signal(signal.SIGINT)
        out, err = self.process.communicate(timeout=60)
        assert self.process.returncode == 0, out + err
        return out


CONFIGURED = {"CheckIPHeader": "OFFSET 4", "DecIPTTL": "ACTIVE false", "EtherEncap": "0x0800, 6:6:6:6:6:6, 8:8:8:8:8:8",
              "FixIPSrc": "10.0.0.77", "HostEtherFilter": "2:0:0:0:0:7", "IPFragmenter": "576", "IPGWOptions": "10.0.0.66", "Paint": "9",
              "PaintTee": "9", "Strip": "18", "Unstrip": "10"}


def configurations(of, arguments):
    """Other arguments than these, with as many outputs; at least the same ones, written again."""
    if of not in ("Classifier", "IPClassifier", "IPFilter"):
        return [CONFIGURED.get(of, arguments)]
    parts = [part.strip() for part in arguments.split(",")]
    return [", ".join(parts[1::-1] + parts[2:]), ", ".join(parts[1:] + parts[:1])] if len(parts) > 1 else [f"allow udp, {arguments}"]


# By handler, the values to write. $last is the element's last output; what a call does must not
# depend on the order of packets.
VALUES = {
    "color": ["2", "200"],
    "active": ["false"],
    "src": ["2:2:2:2:2:2"],
    "dst": ["4:4:4:4:4:4"],
    "ethertype": ["0x86dd"],
    "ether": ["02:00:00:00:00:07"],
    "add": {"4": ["60.0.0.0/7 10.0.0.9 $last"], "6": ["2a00::/15 $last"]},
    "set": {"4": ["60.0.0.0/7 10.0.0.9 0"], "6": ["2a00::/15 0"]},
    "ctrl": {"4": ["add 64.0.0.0/3 10.0.0.9 0\nset 64.0.0.0/3 10.0.0.9 $last"], "6": ["add 2400::/15 0\nset 2400::/15 $last"]},
    "remove": {"4": ["60.0.0.0/7"], "6": ["2a00::/15"]},
    "flush": [""],
    "reset": [""],
    "reset_counts": [""],
    "count_call": ["100 $source.reset_counts"],
    "byte_count_call": ["100000 $source.reset_counts"],
}
# The rule of everything is the last one of the sample's, of which there are 197.
RULE_VALUES = {
    "add": ["priority=3000000001,udp,tp_dst=1000-60000 actions=output:$last"],
    "modify": ["priority=2147483452,ip actions=drop"],
    "remove": ["priority=2147483452,ip"],
    "ctrl": ["add priority=3000000002,tcp,nw_dst=64.0.0.0/2 actions=drop\n"
             "modify priority=3000000002,tcp,nw_dst=64.0.0.0/2 actions=output:0"],
}
# The same as another one, by another name.
ALIASES = {"etht"}


def values_for(router, name, handler, shader):
    if not shader or handler in ALIASES:
        return []
    if re.fullmatch(r"pattern\d+", handler):
        return ["udp" if "udp" not in router.client.read(f"{name}.{handler}") else "tcp"]
    if handler == "config":
        return configurations(router.classes[name], router.client.read(f"{name}.config"))
    known = RULE_VALUES if router.classes[name] == "FlowClassifier" else VALUES
    assert handler in known, f"no value to write to {router.classes[name]}.{handler}"
    values = known[handler]
    if isinstance(values, dict):
        values = values["6" if "IP6" in router.classes[name] else "4"]
    last = re.search(r"^(\d+) outputs?$", router.client.read(f"{name}.ports"), re.M)
    return [value.replace("$source", f"{router.sources[0]}/look0").replace("$last", str(int(last[1]) - 1 if last else 0)) for value in values]


@pytest.fixture(scope="module")
def shaders():
    """Classes of elements that can be in a chain."""
    found = {}

    def ask(headrace):
        if not found:
            found.update({line.split()[0]: True for line in headrace("elements").stdout.splitlines() if re.search(r" shader  ", line)})
        return found

    return ask


@needs_compiler
@pytest.mark.parametrize("conf", CONFIGURATIONS, ids=lambda path: path.stem)
def test_the_same_bytes(headrace, frames, shaders, tmp_path, conf):
    if conf.stem in WITHOUT_CHAINS:
        if "DPDKDevice" not in conf.read_text() and "$FILE" not in conf.read_text():
            headrace("check", "-q", conf, "--program", "none.cc")
            assert "kChains[] = {}" in (headrace.folder / "none.cc").read_text()
        pytest.skip("nothing in it is compiled")
    scene = Scene(conf, headrace.folder, frames)
    env = {"HOME": str(tmp_path), "XDG_CACHE_HOME": ""}

    scene.write(1)
    changes = []
    with Router(headrace, scene, "off", env) as router:
        for name, handler in router.writes:
            for value in values_for(router, name, handler, router.classes[name] in shaders(headrace)):
                changes.append((f"{name}.{handler}", value))
    # An empty table comes last.
    changes.sort(key=lambda change: change[0].endswith(".flush"))
    scene.write(1 + len(changes))

    expected = []
    for way in WAYS:
        with Router(headrace, scene, way, env) as router:
            for i in range(1 + len(changes)):
                look(router, i, changes, way, expected)
            printed = router.stop()
        assert way != "compiled" or "chains: compiled: " in printed, printed
    assert sum(len(those) for those in expected[0][1].values()) > 25


def look(router, i, changes, way, expected):
    """Makes change `i`, looks, and takes it back. The first way tells what is expected of the others."""
    before = None
    if i:
        handler, value = changes[i - 1]
        before = router.client.read(handler) if handler in router.reads else None
        router.write(handler, value)
    if way == "off":
        expected.append(router.look(i))
    else:
        what = f"{way}, {changes[i - 1] if i else 'as it starts'}"
        counters, outputs = router.look(i, expected[i])
        differ = {h: (counters.get(h), value) for h, value in expected[i][0].items() if counters.get(h) != value}
        assert not differ, what
        assert outputs.keys() == expected[i][1].keys(), what
        for path, those in expected[i][1].items():
            assert outputs[path] == those, (what, path)
    if before:
        router.write(changes[i - 1][0], before)
