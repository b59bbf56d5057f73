"""The standard router between two Linux hosts, and Linux's own forwarding in its place: the same probes, and every
answer compared field by field. What may differ is in ACCEPTED, each with its reason."""

import collections
import fnmatch
import ipaddress
import json
import os
import pathlib
import re
import signal
import struct
import time

import netlab
import pytest
import standard_router

scapy_inet = pytest.importorskip("scapy.layers.inet", reason="not installed: python3-scapy (tools/deps test)")
from router_model import ip_packet, with_checksum  # noqa: E402  (needs Scapy)

LEFT, RIGHT = "10.0.0.2", "10.0.1.2"
ROUTER = ["10.0.0.1", "10.0.1.1"]
GATEWAY = "10.0.0.3"  # on the left, also an address of the left host
FAR = "20.0.0.1"  # behind the right host, which drops what is not for it
DETOUR = "30.0.0.1"  # behind GATEWAY: the left host should have sent it there
NOWHERE = "40.0.0.1"
NOBODY = "10.0.1.99"
RIGHT_MTU = 1400
TOOLS = ["ping", "traceroute", "tracepath", "iperf3"]

# (probe, field): reason. Both are patterns; "answers" stands for which answers there are at all. Each must be of use, so
# that none outlives its reason.
ACCEPTED = {
    ("ping*", "reply.ttl"): "the TTL of a reply is open: 64 in Linux, 255 less one for the way out in Click and here",
    ("net-unreachable-tos", "error.tos"): "an error has the default TOS (RFC 1349, 5.1) and the precedence of "
                                          "internetwork control (RFC 1812, 4.3.2.5); Linux keeps the TOS of the packet",
    ("port-unreachable-far-side", "error.addresses"): "an error comes from an address of the interface by which it leaves "
                                                      "(RFC 1812, 4.3.2.4); Linux takes the one the packet was sent to",
    ("too-big*", "error.quoted"): "the TTL of a quoted header may be that after forwarding (RFC 1812, 4.3.2.3): DecIPTTL is "
                                  "in front of IPFragmenter",
    ("redirect", "error.quoted"): "the same the other way round: Linux decrements first",
    ("option-length-0", "error.rest"): "the pointer shows the byte that is wrong (RFC 792), the length; in Linux the option",
    ("record-route-too-long", "error.rest"): "the same",
    ("source-route", "answers"): "IPGWOptions follows no source routes, as in Click: what is sent to the router is for it. "
                                 "Linux drops them as long as accept_source_route is off",
    ("source-route-elsewhere", "answers"): "such a packet is not yet where its route says anything (RFC 1812, 5.2.4.1); "
                                           "Linux drops it, too",
    ("from-10.0.?.255", "answers"): "no broadcast address is a source (RFC 1812, 4.2.2.11); Linux knows only its own",
}


# --- The network

class Network:
    def __init__(self, lab):
        self.left, self.router, self.right = lab.host("left"), lab.host("router"), lab.host("right")
        lab.cable(self.left, "eth0", self.router, "left")
        lab.cable(self.right, "eth0", self.router, "right", mtu=RIGHT_MTU)
        for host, address, gateway in (self.left, LEFT, ROUTER[0]), (self.right, RIGHT, ROUTER[1]):
            host.address("eth0", f"{address}/24")
            host.ip("route", "add", "default", "via", gateway)
            host.sysctl("net.ipv4.icmp_ratelimit", 0)
        self.left.address("eth0", f"{GATEWAY}/24")
        self.macs = [self.router.mac("left"), self.router.mac("right")]
        self.process = None

    def forward_with_linux(self):
        router = self.router
        for name, address in zip(["left", "right"], ROUTER):
            router.address(name, f"{address}/24")
        router.ip("route", "add", "20.0.0.0/8", "via", RIGHT)
        router.ip("route", "add", "30.0.0.0/8", "via", GATEWAY)
        router.sysctl("net.ipv4.icmp_ratelimit", 0)
        router.sysctl("net.ipv4.ipfrag_time", 2)
        router.sysctl("net.ipv4.ip_forward", 1)

    def forward_with_headrace(self, binary, folder, **keywords):
        router = self.router
        router.sysctl("net.ipv4.ip_forward", 0)
        for name in "left", "right":
            router.ip("addr", "flush", "dev", name)
        interfaces = [standard_router.Interface("left", f"{ROUTER[0]}/24", self.macs[0]),
                      standard_router.Interface("right", f"{ROUTER[1]}/24", self.macs[1], RIGHT_MTU)]
        routes = [("20.0.0.0/8", RIGHT, 1), ("30.0.0.0/8", GATEWAY, 0)]
        path = folder / "router.click"
        path.write_text(standard_router.configuration(interfaces, routes, **keywords))
        self.process = router.start(binary, "run", "-w", 1, path, stderr=None)
        for line in self.process.stdout:
            if "ready in" in line:
                return
        raise AssertionError("the router did not start")

    def stop_headrace(self):
        """What it says in the end."""
        self.process.send_signal(signal.SIGINT)
        text, _ = self.process.communicate(timeout=20)
        assert self.process.returncode == 0, text
        return text

    def forget(self):
        for host in self.left, self.right:
            host.ip("route", "flush", "cache")
            host.ip("neigh", "flush", "all")


# --- Frames and what they say

Answer = collections.namedtuple("Answer", "side fields")


def ip_of(frame):
    """The IP packet of an Ethernet frame without the link's padding, or None."""
    if len(frame) < 34 or frame[12:14] != b"\x08\x00":
        return None
    return frame[14:14 + struct.unpack_from("!H", frame, 16)[0]]


def describe(frame):
    """The fields of a frame that are compared, by name, and the identification by which its probe is known."""
    packet = ip_of(frame)
    header = (packet[0] & 15) * 4
    source, destination = (str(ipaddress.ip_address(packet[at:at + 4])) for at in (12, 16))
    kind, number = "forwarded", struct.unpack_from("!H", packet, 4)[0]
    body = packet[header:]
    fields = {"ethernet": f"{frame[6:12].hex(':')} > {frame[:6].hex(':')}", "addresses": f"{source} > {destination}",
              "tos": packet[1], "length": len(packet), "ttl": packet[8], "protocol": packet[9],
              "fragment": f"{struct.unpack_from('!H', packet, 6)[0]:#06x}", "options": packet[20:header].hex(),
              "checksum": "right" if netlab.checksum(packet[:header]) == 0 else "WRONG"}
    if source in ROUTER and packet[9] == 1:
        icmp_type, code, _, rest = struct.unpack_from("!BBHI", body)
        fields["icmp checksum"] = "right" if netlab.checksum(body) == 0 else "WRONG"
        if icmp_type in (3, 5, 11, 12):
            kind, quoted = "error", body[8:]
            number = struct.unpack_from("!H", quoted, 4)[0]
            fields |= {"type": icmp_type, "code": code, "rest": f"{rest:#010x}", "quoted": quoted.hex()}
        else:
            kind, number = "reply", rest >> 16
            fields |= {"type": icmp_type, "code": code, "sequence": rest & 0xffff, "data": body[8:].hex()}
    else:
        fields |= {"identification": number, "data": body.hex()}
    return number, kind, {f"{kind}.{name}": value for name, value in fields.items()}


class Probes:
    """Numbered frames that the left host sends to the router."""

    def __init__(self, router_mac, left_mac):
        self.frames = []  # (name, frame)
        self._router, self._left = bytes.fromhex(router_mac.replace(":", "")), bytes.fromhex(left_mac.replace(":", ""))
        self._add_all()

    def names(self):
        return {self.number(i): name for i, (name, _) in enumerate(self.frames)}

    @staticmethod
    def number(i):
        return 0x4000 + i

    def add(self, name, packet=None, to=None, edit=None, options=b"", payload=b"probe-payload-42", **fields):
        number = self.number(len(self.frames))
        if packet is None:
            fields = {"src": LEFT, "dst": FAR, "ttl": 64, "id": number} | fields
            packet = ip_packet(payload, options, **fields)
        if edit:
            packet = edit(packet)
        frame = (to or self._router) + self._left + b"\x08\x00" + packet
        self.frames.append((name, frame.ljust(60, b"\xaa")))

    def echo(self, name, payload=b"x" * 32, **fields):
        number = self.number(len(self.frames))
        message = struct.pack("!BBHHH", 8, 0, 0, number, 7) + payload
        message = message[:2] + struct.pack("!H", netlab.checksum(message)) + message[4:]
        self.add(name, payload=message, proto=1, **({"dst": ROUTER[0]} | fields))

    def udp(self, name, payload=b"u" * 20, **fields):
        header = struct.pack("!HHHH", 1234, 9, 8 + len(payload), 0)
        self.add(name, payload=header + payload, proto=17, **fields)

    def _add_all(self):
        add, udp, echo = self.add, self.udp, self.echo
        # First: to a host to which it has sent other errors Linux sends these only one a second.
        udp("net-unreachable", dst=NOWHERE)
        udp("net-unreachable-tos", dst=NOWHERE, flags="DF", tos=0x48)
        udp("net-unreachable-class-e", dst="240.0.0.1")
        # Forwarding, and when it ends.
        add("forward")
        add("forward-tos", tos=0x2e)
        add("forward-ttl-2", ttl=2)
        add("forward-df", flags="DF")
        udp("forward-empty", payload=b"")
        add("forward-largest", payload=b"l" * (RIGHT_MTU - 20), flags="DF")
        udp("ttl-1", ttl=1)
        udp("ttl-0", ttl=0)
        udp("ttl-1-long", ttl=1, payload=bytes(range(256)) * 5)
        udp("host-unreachable", dst=NOBODY)
        udp("port-unreachable", dst=ROUTER[0])
        udp("port-unreachable-far-side", dst=ROUTER[1])
        add("protocol-unreachable", dst=ROUTER[0], proto=253)
        add("redirect", dst=DETOUR)
        # Fragments.
        add("too-big", flags="DF", payload=b"b" * 1480)
        add("too-big-by-one", flags="DF", payload=b"b" * (RIGHT_MTU - 19))
        add("fragmented", payload=bytes(range(250)) * 5 + b"f" * 230)
        add("fragmented-first", flags="MF", payload=b"f" * 1480)
        add("fragmented-middle", flags="MF", frag=100, payload=b"f" * 1480)
        add("fragmented-last", frag=100, payload=b"f" * 1477)
        add("first-fragment-ttl-1", flags="MF", ttl=1, payload=b"f" * 64)
        add("later-fragment-ttl-1", frag=8, ttl=1)
        add("incomplete-first", dst=ROUTER[0], flags="MF", proto=17, payload=b"i" * 64)
        add("incomplete-later", dst=ROUTER[0], flags="MF", proto=17, frag=8, payload=b"i" * 64)
        # Pings of the router itself.
        echo("ping")
        echo("ping-far-side", dst=ROUTER[1])
        echo("ping-tos", tos=0x10)
        echo("ping-ttl-1", ttl=1)
        echo("ping-empty", payload=b"")
        echo("ping-far-ttl-1", dst=FAR, ttl=1)
        # Errors about errors, and about what is no error.
        add("error-about-error", proto=1, ttl=1, payload=bytes([3, 1, 0, 0]) + bytes(4) + ip_packet(b"x" * 8, src=FAR, dst=LEFT))
        # Options.
        add("record-route", options=bytes([7, 11, 4]) + bytes(8) + b"\0")
        add("record-route-full", options=bytes([7, 7, 8]) + bytes([1, 2, 3, 4]) + b"\0")
        add("record-route-bad-pointer", options=bytes([7, 7, 3]) + bytes(4) + b"\0")
        add("record-route-no-room", options=bytes([7, 7, 6]) + bytes(4) + b"\0")
        add("record-route-too-long", options=bytes([7, 12, 4]) + bytes(5))
        add("timestamp-others", options=bytes([68, 12, 5, 3]) + ipaddress.ip_address(FAR).packed + bytes(4))
        add("timestamp-full", options=bytes([68, 8, 9, 0]) + bytes(4))
        add("timestamp-overflow", options=bytes([68, 8, 9, 0xf0]) + bytes(4))
        add("router-alert", options=bytes([148, 4, 0, 0]))
        add("unknown-option", options=bytes([0x5e, 4, 1, 2]))
        add("option-length-0", options=bytes([0x5e, 0, 1, 2]))
        add("nops", options=bytes([1, 1, 1, 0]))
        add("options-ttl-1", ttl=1, options=bytes([148, 4, 0, 0]))
        add("source-route", dst=ROUTER[0], options=bytes([131, 7, 4]) + ipaddress.ip_address(FAR).packed + b"\0")
        add("source-route-elsewhere", options=bytes([131, 7, 4]) + ipaddress.ip_address(RIGHT).packed + b"\0")
        # Broken headers.
        add("bad-checksum", edit=lambda p: p[:10] + bytes([p[10] ^ 1]) + p[11:])
        add("bad-version", edit=lambda p: with_checksum(b"\x55" + p[1:]))
        add("header-too-short", edit=lambda p: with_checksum(b"\x44" + p[1:]))
        add("header-beyond-end", edit=lambda p: b"\x4f" + p[1:])
        add("length-below-header", edit=lambda p: with_checksum(p[:2] + b"\0\x13" + p[4:]))
        add("length-beyond-end", edit=lambda p: with_checksum(p[:2] + b"\x05\0" + p[4:]))
        # Martians and broadcasts.
        for source in "127.0.0.1", "224.0.0.1", "255.255.255.255", "0.0.0.0", "0.1.2.3", "240.0.0.1", ROUTER[0], "10.0.0.255", "10.0.1.255":
            add(f"from-{source}", src=source, ttl=1 if source == "0.1.2.3" else 64)
        for destination in "127.0.0.1", "0.0.0.0", "0.1.2.3", "255.255.255.255", "10.0.0.255", "10.0.1.255", "224.0.0.5":
            add(f"to-{destination}", dst=destination)
        add("link-broadcast", to=b"\xff" * 6)
        udp("link-broadcast-ttl-1", to=b"\xff" * 6, ttl=1)
        udp("link-multicast-nowhere", to=bytes.fromhex("01005e000005"), dst=NOWHERE)
        add("for-another-station", to=bytes.fromhex("020000000099"))


def collect(network, seconds=4.5):
    """Sends all probes; {probe: its answers in order}."""
    probes = Probes(network.macs[0], network.left.mac("eth0"))
    names = probes.names()
    answers = {name: [] for name in names.values()}
    with network.left.port("eth0") as left, network.right.port("eth0") as right:
        left.drain()
        right.drain()
        for name, frame in probes.frames:
            left.send(frame)
            time.sleep(0.002)
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            for side, port in ("left", left), ("right", right):
                frame = port.receive(0.02)
                if frame is None or ip_of(frame) is None:
                    continue
                number, _, fields = describe(frame)
                if number in names:
                    answers[names[number]].append(Answer(side, fields))
    return answers


# --- Programs that people use

def ping(host, *words):
    """The replies of ping without times, and what it says about errors."""
    text = host.run("ping", "-n", "-i0.2", "-W2", *words, check=False).stdout
    lines = [re.sub(r" time=.*| ttl=\d+", "", line) for line in text.splitlines()
             if line.startswith(("From", "ping:")) or " bytes from " in line]
    return sorted(set(lines)) + re.findall(r"\d+ packets transmitted, \d+ received", text)


def hops(host, *words):
    """What traceroute and tracepath find, without times."""
    text = host.run(*words, check=False).stdout
    return [re.sub(r"\s+[\d.]+ ?ms|\s+", " ", line).strip() for line in text.splitlines()[1 if words[0] == "traceroute" else 0:]]


def transfer(network, *words):
    """Bytes that iperf3 sent and received in a second, and lost datagrams."""
    server = network.right.start("iperf3", "-s", "-1", "--forceflush")
    for line in server.stdout:
        if "listening" in line:
            break
    done = network.left.run("iperf3", "-J", "-t", 1, "-c", RIGHT, *words, check=False)
    server.kill()
    end = json.loads(done.stdout)
    assert "error" not in end, end["error"]
    return end["end"]


def use_programs(network):
    found = {
        # These first: Linux sends neither soon after another error for the same host.
        "ping by a detour": ping(network.left, "-c1", "-W1", DETOUR),
        "ping nowhere": ping(network.right, "-c1", NOWHERE),
        "ping": ping(network.left, "-c3", RIGHT),
        "ping back": ping(network.right, "-c3", LEFT),
        "ping router": ping(network.left, "-c2", ROUTER[0]),
        "ping router in fragments": ping(network.left, "-c2", "-s4000", ROUTER[0]),
        "ping in fragments": ping(network.left, "-c2", "-s4000", RIGHT),
        "ping back in fragments": ping(network.right, "-c2", "-s4000", LEFT),
        "ping with record route": ping(network.left, "-c1", "-R", RIGHT),
        "ping too big": ping(network.left, "-c2", "-Mdo", "-s1400", RIGHT),
        "traceroute udp": hops(network.left, "traceroute", "-n", "-q2", "-w2", RIGHT),
        "traceroute icmp": hops(network.left, "traceroute", "-n", "-I", "-q2", "-w2", RIGHT),
        "traceroute back": hops(network.right, "traceroute", "-n", "-q2", "-w2", LEFT),
    }
    network.forget()
    found["tracepath"] = hops(network.left, "tracepath", "-n", "-m3", RIGHT)
    network.forget()
    tcp, udp = transfer(network), transfer(network, "-u", "-b20M")
    speeds = f"TCP {tcp['sum_received']['bits_per_second'] / 1e6:.0f} Mbit/s, UDP {udp['sum']['bytes'] * 8 / 1e6:.0f} Mbit"
    return found, {"tcp": tcp, "udp": udp, "speeds": speeds}


# --- ARP

ARP_REQUEST, ARP_REPLY = 1, 2


def arp_frame(operation, sender, sender_ip, target, target_ip, to=None):
    """`sender`, `target`: bytes of Ethernet addresses."""
    def ip(text):
        return ipaddress.ip_address(text).packed

    return ((to or target) + sender + b"\x08\x06" + struct.pack("!HHBBH", 1, 0x0800, 6, 4, operation)
            + sender + ip(sender_ip) + target + ip(target_ip))


def next_frame(port, kind, timeout=1.0):
    """The next frame of this Ethernet type, or None."""
    deadline = time.monotonic() + timeout
    while (left := deadline - time.monotonic()) > 0:
        frame = port.receive(left)
        if frame and frame[12:14] == kind:
            return frame
    return None


ARP, IP = b"\x08\x06", b"\x08\x00"
BROADCAST, NONE = b"\xff" * 6, bytes(6)
ASKING = bytes.fromhex("020000001234")


def ask_router(network):
    """Frames with which the router answers ARP requests, by what was asked."""
    router = bytes.fromhex(network.macs[0].replace(":", ""))
    questions = {
        "its address": arp_frame(ARP_REQUEST, ASKING, "10.0.0.77", NONE, ROUTER[0], to=BROADCAST),
        "its address, unicast": arp_frame(ARP_REQUEST, ASKING, "10.0.0.77", NONE, ROUTER[0], to=router),
        "another address": arp_frame(ARP_REQUEST, ASKING, "10.0.0.77", NONE, "10.0.0.78", to=BROADCAST),
        "a far address": arp_frame(ARP_REQUEST, ASKING, "10.0.0.77", NONE, RIGHT, to=BROADCAST),
        "gratuitous": arp_frame(ARP_REQUEST, ASKING, "10.0.0.77", NONE, "10.0.0.77", to=BROADCAST),
        "of ArcNet": arp_frame(ARP_REQUEST, ASKING, "10.0.0.77", NONE, ROUTER[0], to=BROADCAST).replace(
            struct.pack("!HHBBH", 1, 0x0800, 6, 4, 1), struct.pack("!HHBBH", 7, 0x0800, 6, 4, 1)),
        "cut off": arp_frame(ARP_REQUEST, ASKING, "10.0.0.77", NONE, ROUTER[0], to=BROADCAST)[:40],
    }
    answers = {}
    with network.left.port("eth0") as port:
        for name, question in questions.items():
            port.drain()
            port.send(question)
            answer = next_frame(port, ARP, 0.3)
            answers[name] = answer.hex() if answer else None
    return answers


def let_router_ask(network, host):
    """The ARP request with which the router asks for a host on the right."""
    with network.right.port("eth0") as port:
        network.left.run("ping", "-c1", "-W1", host, check=False)
        frame = next_frame(port, ARP)
        return frame.hex() if frame else None


# --- Tests

@pytest.fixture(scope="module")
def binary():
    path = pathlib.Path(os.environ.get("HEADRACE", pathlib.Path(__file__).resolve().parents[2] / "build" / "headrace"))
    if not path.exists():
        pytest.skip(f"{path} is not built")
    return path.resolve()


@pytest.fixture(scope="module")
def both(binary, tmp_path_factory):
    """Everything, once with Linux as the router and once with Headrace: {name: {what: found}}."""
    netlab.need(*TOOLS)
    found = {}
    with netlab.Lab() as lab:
        network = Network(lab)
        for name in "Linux", "Headrace":
            if name == "Linux":
                network.forward_with_linux()
            else:
                network.forward_with_headrace(binary, tmp_path_factory.mktemp("router"), reassembly="TIMEOUT 2")
            answers = collect(network)
            network.forget()
            arp = ask_router(network) | {"asks": let_router_ask(network, "10.0.1.98")}
            programs, transfers = use_programs(network)
            network.forget()
            found[name] = {"answers": answers, "arp": arp, "programs": programs, "transfers": transfers}
        found["Headrace"]["closing"] = network.stop_headrace()
    return found


def differences(linux, ours):
    """(probe, field, Linux, ours) of everything that is not the same."""
    for probe, expected in linux.items():
        got = ours[probe]

        def kinds(answers):
            return [(a.side, next(iter(a.fields)).split(".")[0]) for a in answers]

        if kinds(expected) != kinds(got):
            yield probe, "answers", kinds(expected), kinds(got)
            continue
        for a, b in zip(expected, got):
            for field in sorted(a.fields.keys() | b.fields.keys()):
                if a.fields.get(field) != b.fields.get(field):
                    yield probe, field, a.fields.get(field), b.fields.get(field)


def test_answers_are_those_of_linux(both):
    used, unexpected = set(), []
    for probe, field, expected, got in differences(both["Linux"]["answers"], both["Headrace"]["answers"]):
        reasons = [key for key in ACCEPTED if fnmatch.fnmatchcase(probe, key[0]) and fnmatch.fnmatchcase(field, key[1])]
        used.update(reasons)
        if not reasons:
            unexpected.append(f"{probe}: {field} is {got}, of Linux {expected}")
    assert not unexpected, "\n".join(unexpected)
    assert used == ACCEPTED.keys(), f"no longer needed: {ACCEPTED.keys() - used}"


def answer(both, probe, which=0):
    answers = both["Headrace"]["answers"][probe]
    assert len(answers) > which, f"{probe}: {answers}"
    return answers[which].fields


def test_answers_are_those_of_the_standards(both):
    """What must hold whatever Linux does."""
    def error(probe):
        fields = answer(both, probe)
        return fields["error.type"], fields["error.code"], fields["error.rest"]

    assert error("ttl-1") == error("ttl-0") == (11, 0, "0x00000000")
    assert error("net-unreachable") == error("net-unreachable-class-e") == (3, 0, "0x00000000")
    assert error("host-unreachable") == (3, 1, "0x00000000")
    assert error("protocol-unreachable") == (3, 2, "0x00000000")
    assert error("port-unreachable") == (3, 3, "0x00000000")
    assert error("too-big") == error("too-big-by-one") == (3, 4, f"{RIGHT_MTU:#010x}")
    assert error("redirect") == (5, 1, f"{int(ipaddress.ip_address(GATEWAY)):#010x}")
    assert error("incomplete-first") == (11, 1, "0x00000000")
    assert error("record-route-bad-pointer") == (12, 0, "0x16000000")
    assert answer(both, "ttl-1-long")["error.length"] == 576
    assert answer(both, "redirect", 1)["forwarded.ttl"] == 63
    assert answer(both, "record-route")["forwarded.options"] == "070b08" + ipaddress.ip_address(ROUTER[1]).packed.hex() + "0" * 10
    silent = ["later-fragment-ttl-1", "incomplete-later", "error-about-error", "link-broadcast", "link-broadcast-ttl-1",
              "link-multicast-nowhere", "for-another-station", "bad-checksum", "bad-version", "header-too-short",
              "header-beyond-end", "length-below-header", "length-beyond-end", "from-127.0.0.1", "from-224.0.0.1",
              "from-255.255.255.255", "from-0.0.0.0", "from-0.1.2.3", "to-127.0.0.1", "to-0.0.0.0", "to-255.255.255.255",
              "to-10.0.0.255", "to-10.0.1.255", "to-224.0.0.5"]
    assert {probe: both["Headrace"]["answers"][probe] for probe in silent} == {probe: [] for probe in silent}
    for probe in both["Headrace"]["answers"].values():
        for found in probe:
            assert "WRONG" not in found.fields.values()


def test_arp_is_that_of_linux(both):
    assert both["Headrace"]["arp"] == both["Linux"]["arp"]
    assert both["Headrace"]["arp"]["its address"] and both["Headrace"]["arp"]["asks"]


def test_programs_find_what_they_find_with_linux(both):
    ours, linux = both["Headrace"]["programs"], both["Linux"]["programs"]
    assert ours == linux
    assert ours["ping"][-1] == "3 packets transmitted, 3 received"
    assert ours["ping in fragments"][-1] == "2 packets transmitted, 2 received"
    assert any(f"mtu = {RIGHT_MTU}" in line or f"mtu={RIGHT_MTU}" in line for line in ours["ping too big"]), ours["ping too big"]
    assert any("Destination Net Unreachable" in line for line in ours["ping nowhere"])
    assert [ROUTER[0] in ours["traceroute udp"][0], RIGHT in ours["traceroute udp"][1]] == [True, True]
    assert any(f"pmtu {RIGHT_MTU}" in line for line in ours["tracepath"])


def test_iperf3_gets_through(both):
    for name in "Linux", "Headrace":
        transfers = both[name]["transfers"]
        print(f"{name}: {transfers['speeds']}")
        assert transfers["tcp"]["sum_received"]["bytes"] > 1e6
        assert transfers["udp"]["sum"]["lost_percent"] < 50


def test_every_drop_has_a_reason(both):
    closing = both["Headrace"]["closing"]
    assert re.search(r"^CheckIPHeader\S* +1  bad IP checksum$", closing, re.M), closing
    assert re.search(r"^ICMPError\S* +\d+  not the first fragment$", closing, re.M), closing


def test_arp_entries_age(binary, tmp_path):
    """An address is asked for again while it is used, forgotten in the end, and changed by whoever claims it."""
    netlab.need()
    first, second, third = (bytes.fromhex(f"0200000000a{i}") for i in range(3))
    host = "10.0.1.50"
    with netlab.Lab() as lab:
        network = Network(lab)
        network.forward_with_headrace(binary, tmp_path, arp="TIMEOUT 2, POLL_TIMEOUT 1")
        with network.left.port("eth0") as left, network.right.port("eth0") as right:
            router = [bytes.fromhex(mac.replace(":", "")) for mac in network.macs]

            def send(number):
                left.send(router[0] + ASKING + IP + ip_packet(b"x" * 20, src=LEFT, dst=host, id=number))

            def answer(mac):
                right.send(arp_frame(ARP_REPLY, mac, host, router[1], ROUTER[1]))
                return time.monotonic()

            send(1)
            request = next_frame(right, ARP)
            assert request == arp_frame(ARP_REQUEST, router[1], ROUTER[1], NONE, host, to=BROADCAST)
            send(2)
            known_at = answer(first)
            for number in 1, 2:
                frame = next_frame(right, IP)
                assert (frame[:6], struct.unpack_from("!H", frame, 18)[0]) == (first, number)
            # Older than POLL_TIMEOUT: it is asked for where it was, and used meanwhile.
            time.sleep(max(0, known_at + 1.2 - time.monotonic()))
            send(3)
            assert next_frame(right, ARP) == arp_frame(ARP_REQUEST, router[1], ROUTER[1], NONE, host, to=first)
            assert next_frame(right, IP)[:6] == first
            # Nobody answered: everybody is asked, and packets wait.
            time.sleep(max(0, known_at + 2.2 - time.monotonic()))
            send(4)
            assert next_frame(right, ARP) == request
            assert next_frame(right, IP, 0.3) is None
            answer(second)
            assert next_frame(right, IP)[:6] == second
            # A reply that nobody asked for is believed, but not that the router is elsewhere or that a group is a host.
            answer(third)
            right.send(arp_frame(ARP_REPLY, third, ROUTER[1], router[1], ROUTER[1]))
            right.send(arp_frame(ARP_REPLY, b"\x01" + third[1:], host, router[1], ROUTER[1]))
            time.sleep(0.1)
            send(5)
            assert next_frame(right, IP)[:6] == third
        assert re.search(r"^arp1 +2  ARP reply with a false address$", network.stop_headrace(), re.M)
