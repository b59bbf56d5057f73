"""Random and mutated frames through a live router: it never ends, loses no buffer, and its memory stays bounded.

HEADRACE_BAD_FRAMES is the number of frames; default 200,000, in full runs 10,000,000.
"""

import os
import pathlib
import random
import re
import signal
import struct
import time

import netlab
import pytest
import standard_router

FRAMES = int(os.environ.get("HEADRACE_BAD_FRAMES", 200_000))
SEED = int(os.environ.get("HEADRACE_BAD_FRAMES_SEED", 1))
BATCH, STRIDE = 512, 2048
ADDRESSES = ["10.0.0.1/24", "10.0.1.1/24"]
ARP_LIMIT, WAITING_LIMIT, HIMEM = 3000, 500, 100_000

# The router of the other tests with small tables, so that a flood fills them, and a report of its buffers once a second.
REPORT = """
Script(TYPE ACTIVE, label again, wait 0.5s, print "buffers $(buffers_in_use)", goto again);
"""


def ip(source, destination, protocol=17, payload=b"", ttl=64, fragment=0, number=1, options=b""):
    header = struct.pack("!BBHHHBBH4s4s", 0x45 + len(options) // 4, 0, 20 + len(options) + len(payload), number, fragment, ttl,
                         protocol, 0, source, destination) + options
    return header[:10] + struct.pack("!H", netlab.checksum(header)) + header[12:] + payload


def octets(text):
    return bytes(map(int, text.split(".")))


LEFT, ROUTER, RIGHT, FAR = octets("10.0.0.2"), octets("10.0.0.1"), octets("10.0.1.2"), octets("20.0.0.1")


def echo(payload):
    message = struct.pack("!BBHHH", 8, 0, 0, 1, 1) + payload
    return message[:2] + struct.pack("!H", netlab.checksum(message)) + message[4:]


def arp(operation, sender, sender_ip, target_ip, target=bytes(6)):
    return b"\x08\x06" + struct.pack("!HHBBH", 1, 0x0800, 6, 4, operation) + sender + sender_ip + target + target_ip


def seeds(mac):
    """Frames that get far into the router; the others are made from them."""
    head = mac + bytes.fromhex("020000000002") + b"\x08\x00"
    udp = struct.pack("!HHHH", 1000, 2000, 108, 0) + bytes(100)
    tcp = struct.pack("!HHIIBBHHH", 1000, 80, 1, 0, 0x60, 2, 1000, 0, 0) + bytes.fromhex("020405b4")
    inner = ip(ROUTER, FAR, payload=udp)
    packets = [
        ip(LEFT, FAR, payload=udp), ip(LEFT, RIGHT, 6, tcp), ip(LEFT, FAR, payload=udp, ttl=1),
        ip(LEFT, octets("30.0.0.1"), payload=udp), ip(LEFT, octets("40.0.0.1"), payload=udp),
        ip(LEFT, octets("10.0.1.99"), payload=udp), ip(LEFT, ROUTER, 1, echo(bytes(56))), ip(LEFT, ROUTER, payload=udp),
        ip(LEFT, ROUTER, 6, tcp), ip(LEFT, ROUTER, 253, bytes(64)), ip(LEFT, FAR, payload=bytes(1480)),
        ip(LEFT, FAR, payload=bytes(1480), fragment=0x4000), ip(LEFT, ROUTER, 1, echo(bytes(72)), fragment=0x2000),
        ip(LEFT, ROUTER, 1, bytes(80), fragment=0x200a), ip(LEFT, ROUTER, 1, bytes(60), fragment=0x0014),
        ip(LEFT, ROUTER, 1, struct.pack("!BBHI", 3, 4, 0, 576) + inner),
        ip(LEFT, FAR, payload=udp, options=bytes([7, 11, 4]) + bytes(8) + b"\0"),
        ip(LEFT, FAR, payload=udp, options=bytes([68, 12, 5, 1]) + bytes(8)),
        ip(LEFT, FAR, payload=udp, options=bytes([131, 7, 4]) + RIGHT + b"\0"),
        ip(LEFT, octets("255.255.255.255"), payload=udp), ip(LEFT, octets("224.0.0.5"), 89, bytes(44)),
    ]
    frames = [head + packet for packet in packets]
    frames += [mac + bytes.fromhex("020000000002") + arp(1, bytes.fromhex("020000000002"), LEFT, ROUTER),
               mac + bytes.fromhex("020000000002") + arp(2, bytes.fromhex("020000000002"), LEFT, ROUTER, mac),
               head[:12] + b"\x86\xdd" + bytes.fromhex("60000000000c1140") + bytes(44)]
    return frames


class Mutator:
    """Frames in a batch that is sent again and again, each time with other mutations. What is drawn is drawn for a whole
    batch at a time: Python must keep up with the router."""

    def __init__(self, mac):
        self.random = random.Random(SEED)
        self.seeds = seeds(mac)
        self.batch = netlab.MessageBatch(BATCH, STRIDE)
        self.fresh = 0

    def prepare(self):
        """Some frames anew, the others as they were left with more bytes changed."""
        buffer, draw = self.batch.buffer, self.random
        for _ in range(BATCH // 8):
            self.renew(self.fresh)
            self.fresh = (self.fresh + 1) % BATCH
        noise = draw.randbytes(8 * BATCH)
        for i in range(BATCH):
            where, value, how = struct.unpack_from("<HBB", noise, 8 * i)
            at = i * STRIDE
            if how < 160:  # somewhere in the headers, mostly behind the Ethernet addresses
                buffer[at + (12 + where % 60 if how < 150 else where % 72)] = value
            if how % 4:
                self.repair(at)

    def renew(self, i):
        draw, at = self.random, i * STRIDE
        choice = draw.random()
        if choice < 0.05:
            frame = draw.randbytes(draw.randrange(14, 1514))
        else:
            frame = draw.choice(self.seeds)
            if choice < 0.15:
                frame = frame[:draw.randrange(14, len(frame) + 1)]
            elif choice < 0.2:
                frame = (frame + draw.randbytes(200))[:1514]
        self.batch.buffer[at:at + len(frame)] = frame
        self.batch.set_length(i, len(frame))

    def repair(self, at):
        """A right header checksum, as few random ones are."""
        buffer = self.batch.buffer
        if buffer[at + 12] == 8 and buffer[at + 13] == 0 and buffer[at + 14] == 0x45:
            buffer[at + 24:at + 26] = b"\0\0"
            buffer[at + 24:at + 26] = struct.pack("!H", netlab.checksum(buffer[at + 14:at + 34]))


class Live:
    """A router between two networks; the far ends are in one host, whose kernel answers ARP and drops the rest."""

    def __init__(self, lab, binary, folder, extra=""):
        self.host, self.router = lab.host("ends"), lab.host("router")
        interfaces = []
        for i, name in enumerate(["left", "right"]):
            lab.cable(self.host, name, self.router, name)
            self.host.address(name, ADDRESSES[i].replace(".1/", ".2/"))
            interfaces.append(standard_router.Interface(name, ADDRESSES[i], self.router.mac(name)))
        self.mac = bytes.fromhex(self.router.mac("left").replace(":", ""))
        text = standard_router.configuration(
            interfaces, [("20.0.0.0/8", "10.0.1.2", 1), ("30.0.0.0/8", "10.0.0.2", 0)],
            arp=f"CAPACITY {WAITING_LIMIT}, ENTRY_CAPACITY {ARP_LIMIT}, WAIT 1s", reassembly=f"HIMEM {HIMEM}, TIMEOUT 1", icmp="")
        (folder / "router.click").write_text(text + REPORT + extra)
        self.said = (folder / "said.txt").open("w+")
        self.process = self.router.start(binary, "run", "-w", 2, "-q", "-r", "buffers_in_use", "-r", "arp0.count",
                                         "-r", "reassembler.dump", folder / "router.click", stdout=self.said, stderr=self.said)
        self.wait_for("buffers ")
        self.pid = self.process.pid

    def wait_for(self, text):
        deadline = time.monotonic() + 20
        while text not in self.text():
            assert self.process.poll() is None and time.monotonic() < deadline, self.text()
            time.sleep(0.05)

    def text(self):
        return pathlib.Path(self.said.name).read_text(errors="replace")

    def buffers(self):
        """In use, by the last report."""
        return int(re.findall(r"^buffers (\d+)$", self.text(), re.M)[-1])

    def buffers_at_rest(self):
        """By a report that is made from now on, when whatever was under way has come to an end."""
        time.sleep(0.2)
        reports = self.text().count("buffers ")
        while self.text().count("buffers ") < reports + 2:
            time.sleep(0.05)
        return self.buffers()

    def settle(self, buffers):
        """Waits until no more than `buffers` are in use: the router has given up on replies and fragments."""
        deadline = time.monotonic() + 30
        while self.buffers_at_rest() > buffers and time.monotonic() < deadline:
            assert self.process.poll() is None, self.text()[-3000:]

    def stop(self):
        self.process.send_signal(signal.SIGINT)
        assert self.process.wait(timeout=30) == 0, self.text()[-3000:]
        return self.text()


@pytest.fixture
def binary():
    # Broken frames show most in a router with sanitizers.
    default = pathlib.Path(__file__).resolve().parents[2] / "build" / "headrace"
    path = pathlib.Path(os.environ.get("HEADRACE_HARDENED") or os.environ.get("HEADRACE") or default)
    if not path.exists():
        pytest.skip(f"{path} is not built")
    return path.resolve()


@pytest.fixture
def live(binary, tmp_path):
    netlab.need()
    with netlab.Lab() as lab:
        yield Live(lab, binary, tmp_path)


def ping_router(live):
    """The router answers. What it was told about the Ethernet address of the host is put right first."""
    mac, left = bytes.fromhex(live.host.mac("left").replace(":", "")), ADDRESSES[0].split("/")[0]
    with live.host.port("left") as port:
        port.send(live.mac + mac + arp(2, mac, LEFT, ROUTER, live.mac))
    time.sleep(0.1)
    live.host.run("ping", "-c1", "-W2", "-I", "left", left)


def received(text):
    return sum(int(n.replace(",", "")) for n in re.findall(r"^in +\S+ +([\d,]+)", text, re.M))


def test_nothing_breaks_and_no_buffer_is_lost(live):
    ping_router(live)
    before = live.buffers_at_rest()
    mutator = Mutator(live.mac)
    with live.host.port("left") as port:
        sent = 0
        start = time.monotonic()
        for i in range(BATCH):
            mutator.renew(i)
        while sent < FRAMES:
            mutator.prepare()
            sent += mutator.batch.send(port)
            assert live.process.poll() is None, live.text()[-3000:]
        seconds = time.monotonic() - start
    live.settle(before)
    ping_router(live)
    time.sleep(0.2)
    text = live.stop()
    after = int(re.search(r"^buffers_in_use: (\d+)$", text, re.M).group(1))
    assert int(re.search(r"^good reassemblies: +(\d+)$", text, re.M).group(1)) > 0
    print(f"{sent} frames sent in {seconds:.1f} s, {received(text)} received")
    assert after == before
    assert received(text) > sent / 4
    for reason in "bad IP checksum", "bad IP length", "bad IP version", "duplicate fragment", "rate limit":
        assert re.search(rf" {reason}$", text, re.M) or FRAMES < 100_000, reason


def flood(live, make, count):
    """Sends `count` frames; `make(i)` is the i-th. Returns the most memory in KiB, and the most buffers in use."""
    batch = netlab.MessageBatch(BATCH, 128)
    peak = buffers = 0
    with live.host.port("left") as port:
        for first in range(0, count, BATCH):
            for i in range(BATCH):
                frame = make(first + i)
                batch.buffer[i * 128:i * 128 + len(frame)] = frame
                batch.set_length(i, len(frame))
            batch.send(port)
            if first // BATCH % 16 == 0:
                peak = max(peak, netlab.memory_kib(live.pid))
                buffers = max(buffers, live.buffers())
    return peak, buffers


def test_floods_stay_in_bounded_memory(live):
    """Replies of hosts that do not exist, packets for hosts that do not exist, and fragments of packets that never become
    whole: each flood once to fill the tables, then as long again, which must not need more."""
    head = live.mac + bytes.fromhex("020000000002")

    def replies(i):
        return head + arp(2, struct.pack("!HI", 0x0200, i), struct.pack("!I", 0x0a000000 + i % 0xf00000), ROUTER, live.mac)

    def strangers(i):
        return head + b"\x08\x00" + ip(LEFT, struct.pack("!I", 0x0a000003 + i * 7 % 250), payload=bytes(16), number=i & 0xffff)

    def fragments(i):
        return head + b"\x08\x00" + ip(LEFT, ROUTER, payload=bytes(16), fragment=0x2000 | i % 3 * 2, number=i * 3 & 0xffff)

    ping_router(live)
    before = live.buffers_at_rest()
    count = max(20_000, FRAMES // 10)
    for name, make in ("replies", replies), ("strangers", strangers), ("fragments", fragments):
        filled, _ = flood(live, make, count)
        peak, buffers = flood(live, make, count)
        print(f"{name}: {filled} KiB once the tables are full, then at most {peak} KiB; {buffers} buffers in use")
        assert peak - filled < 8192, name
        # What waits for addresses and for fragments, and what is on its way in two queues and two workers.
        assert buffers - before < WAITING_LIMIT * 2 + HIMEM // 40 + 2 * 2000 + 2000, name
    live.settle(before)
    ping_router(live)
    time.sleep(0.2)
    text = live.stop()
    assert int(re.search(r"^buffers_in_use: (\d+)$", text, re.M).group(1)) == before
    assert int(re.search(r"^arp0.count: (\d+)$", text, re.M).group(1)) <= ARP_LIMIT
    assert int(re.search(r"^failed reassemblies: (\d+)$", text, re.M).group(1)) > count // 50  # a router with sanitizers takes few of them
    for reason in "no ARP reply in time", "rate limit":
        assert re.search(rf" {reason}$", text, re.M), reason
