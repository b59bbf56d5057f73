"""FromDevice and ToDevice, between network namespaces with real Linux hosts."""

import contextlib
import os
import pathlib
import random
import re
import signal
import socket
import struct
import subprocess
import threading
import time

import netlab
import pytest
from linux_router import (CONF, ROOT, WAIT_S, WIRE, Headrace, drops, hosts, lab, number, port_packets, value,  # noqa: F401
                          wire)  # (fixtures)

METHODS = ["AF_XDP", "AF_PACKET", "PCAP"]


def frames_of(rng, count):
    """Frames of every size, of a type that no host understands; some with a VLAN tag."""
    for n in range(count):
        tag = struct.pack("!HH", 0x8100, rng.randrange(1, 4095)) if n % 3 == 0 else b""
        head = bytes.fromhex("020000000099020000000098") + tag + b"\x88\xb5" + struct.pack("!I", n)
        yield head + rng.randbytes(rng.choice([60, 64, 128, 1000, 1514]) - len(head) + len(tag))


def receive_all(port, count):
    """Frames of that type, until `count` are there or nothing comes any more."""
    got = []
    while len(got) < count and (frame := port.receive(2)) is not None:
        if b"\x88\xb5" in frame[12:18]:
            got.append(frame)
    return got


def until_it_forwards(sender, receiver):
    """The router says that it is ready a moment before its workers receive."""
    probe = bytes.fromhex("02000000009902000000009888b6") + bytes(46)
    deadline = time.monotonic() + WAIT_S
    while True:
        sender.send(probe)
        frame = receiver.receive(0.05)
        while frame is not None:
            if frame[12:14] == b"\x88\xb6":
                return
            frame = receiver.receive(0.05)
        assert time.monotonic() < deadline, "nothing is forwarded"


class Taps:
    """A packet socket loses the VLAN tag to the auxiliary data: this receiver puts it back."""

    def __init__(self, host, interface):
        with host.inside():
            self._socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
        self._socket.setsockopt(netlab.SOL_PACKET, netlab.PACKET_AUXDATA, 1)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8 << 20)
        self._socket.bind((interface, netlab.ETH_P_ALL))

    def receive(self, timeout):
        self._socket.settimeout(timeout)
        while True:
            try:
                frame, auxiliary, _, address = self._socket.recvmsg(65536, 256)
            except TimeoutError:
                return None
            if address[2] == netlab.PACKET_OUTGOING:
                continue
            for level, kind, data in auxiliary:
                status, _, _, _, _, tci, tpid = struct.unpack("=IIIHHHH", data[:20])
                if (level, kind) == (netlab.SOL_PACKET, netlab.PACKET_AUXDATA) and status & 0x10:
                    frame = frame[:12] + struct.pack("!HH", tpid or 0x8100, tci) + frame[12:]
            return frame

    def send(self, frame):
        self._socket.send(frame)

    def close(self):
        self._socket.close()


@pytest.mark.parametrize("method", METHODS)
def test_frames_cross_unchanged_and_in_order(hosts, tmp_path, method):
    left, router, right = hosts
    rng = random.Random(7)
    frames = list(frames_of(rng, 300))
    ports = [Taps(left, "eth0"), Taps(right, "eth0")]
    with wire(router, tmp_path, f"METHOD={method}", "-r", "a.method", "-r", "ta.method", "-r", "a.count", "-r", "a.byte_count",
              "-r", "a.kernel_drops") as headrace:
        for sender, receiver in (ports, ports[::-1]):
            until_it_forwards(sender, receiver)
            for frame in frames:
                sender.send(frame)
            assert receive_all(receiver, len(frames)) == frames
        text = headrace.stop()
    for port in ports:
        port.close()
    assert value(text, "a.method").startswith(method.lower()) and value(text, "ta.method").startswith(method.lower())
    assert int(value(text, "a.count")) >= len(frames) and value(text, "a.kernel_drops") == "0"
    assert int(value(text, "a.byte_count")) >= sum(map(len, frames))
    assert "\nno drops\n" in text


def test_the_best_method_is_chosen_and_said(hosts, tmp_path):
    _, router, _ = hosts
    cases = [("SNIFFER false", "af_xdp ("), ("", "af_packet, the kernel"), ("SNIFFER false, BPF_FILTER arp", "af_packet"),
             ("SNIFFER false, OUTBOUND true", "af_packet"), ("BPF_FILTER 'vlan 5'", "pcap")]
    for arguments, method in cases:
        with wire(router, tmp_path, text=f"a :: FromDevice(left, {arguments}) -> Discard;") as headrace:
            assert f"a :: FromDevice: left by {method}" in headrace.text


def test_it_says_why_af_xdp_is_not_used(hosts, tmp_path):
    _, router, _ = hosts
    first, second = tmp_path / "first", tmp_path / "second"
    first.mkdir(), second.mkdir()
    text = "FromDevice(left, SNIFFER false) -> Queue -> ToDevice(left);"
    with wire(router, first, text=text) as one:
        assert one.text.count(": left by af_xdp (") == 2
        with wire(router, second, text=text) as two:
            refused = ": left by af_packet, not by af_xdp: another program has queue 0\n"
            assert two.text.count(refused) == 2, two.text


def test_the_kernel_is_kept_out_of_it(hosts, tmp_path):
    """With SNIFFER true the router's kernel answers for its own address, with false it does not, whatever the method."""
    left, router, _ = hosts
    left.address("eth0", "10.1.0.1/24")
    router.address("left", "10.1.0.2/24")
    for arguments, answers in (("SNIFFER true", True), ("SNIFFER false, METHOD AF_PACKET", False), ("SNIFFER false", False)):
        left.ip("neigh", "flush", "all")
        with wire(router, tmp_path, text=f"a :: FromDevice(left, {arguments}) -> Discard;"):
            time.sleep(0.5)
            done = left.run("ping", "-c", "1", "-W", "1", "10.1.0.2", check=False)
            assert (done.returncode == 0) == answers, (arguments, done.stdout)
    # And everything is as before when it is gone.
    left.ip("neigh", "flush", "all")
    left.run("ping", "-c", "1", "-W", "5", "10.1.0.2")


def test_filter_snaplen_and_outbound(hosts, tmp_path):
    left, router, _ = hosts
    text = """
    f :: FromDevice(left, BPF_FILTER "ether proto 0x88b5 and greater 500", SNAPLEN 100) -> fd :: ToDump(f.pcap) -> Discard;
    o :: FromDevice(left, BPF_FILTER "ether proto 0x88b5", OUTBOUND true) -> Discard;
    Idle -> ToDevice(left);
    """.replace("fd :: ToDump(f.pcap) -> Discard", "ToDump(f.pcap, SNAPLEN 0)")
    frame = bytes.fromhex("02000000009902000000009888b5") + bytes(range(256)) * 4
    with wire(router, tmp_path, "-r", "f.count", "-r", "o.count", text=text) as headrace:
        with left.port("eth0") as port, router.port("left") as own:
            time.sleep(0.2)
            port.send(frame)
            port.send(frame[:100])
            own.send(frame)
            time.sleep(0.5)
        text = headrace.stop()
    assert value(text, "f.count") == "1" and value(text, "o.count") == "3"
    data = (tmp_path / "f.pcap").read_bytes()
    assert struct.unpack_from("<II", data, 24 + 8) == (100, len(frame)) and data[40:] == frame[:100]


# --- Offloads of the neighbors


def transfer(left, right, size):
    """`size` bytes by TCP from left to right; what arrived."""
    with right.inside():
        server = socket.create_server(("10.2.0.2", 7000))
    with left.inside():
        client = socket.create_connection(("10.2.0.2", 7000), timeout=10)
    data = random.Random(1).randbytes(size)
    received = bytearray()

    def serve():
        connection, _ = server.accept()
        connection.settimeout(15)
        with connection, contextlib.suppress(OSError):
            while part := connection.recv(65536):
                received.extend(part)

    thread = threading.Thread(target=serve)
    thread.start()
    with client, contextlib.suppress(OSError):
        client.settimeout(15)
        client.sendall(data)
    thread.join()
    server.close()
    return bytes(received) == data


@pytest.mark.parametrize("method", METHODS)
def test_unfinished_checksums_are_finished(hosts, tmp_path, method):
    """Linux hosts leave transport checksums to the interface, which is a veth and computes none."""
    left, router, right = hosts
    left.address("eth0", "10.2.0.1/24")
    right.address("eth0", "10.2.0.2/24")
    left.run("ethtool", "-K", "eth0", "tx", "on", "tso", "off", "gso", "off")
    right.run("ethtool", "-K", "eth0", "tx", "on", "tso", "off", "gso", "off")
    with wire(router, tmp_path, f"METHOD={method}"):
        with right.inside():
            server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            server.bind(("10.2.0.2", 7000))
        with left.inside():
            client = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        with server, client:
            server.settimeout(5)
            for data in (b"", b"x", b"odd", bytes(1000), random.Random(2).randbytes(1472)):
                client.sendto(data, ("10.2.0.2", 7000))
                assert server.recv(2000) == data
        assert transfer(left, right, 300_000)
    counters = right.run("cat", "/proc/net/snmp").stdout
    names, values = [line.split() for line in counters.splitlines() if line.startswith("Udp:")]
    assert dict(zip(names, values))["InCsumErrors"] == "0"


def test_merged_frames_are_counted(hosts, tmp_path):
    left, router, right = hosts
    left.address("eth0", "10.2.0.1/24")
    right.address("eth0", "10.2.0.2/24")
    left.run("ethtool", "-K", "eth0", "tx", "on", "tso", "on", "gso", "on")
    with wire(router, tmp_path, "METHOD=AF_PACKET", "-r", "a.drops") as headrace, Sizes(right) as sizes:
        with right.inside():
            server = socket.create_server(("10.2.0.2", 7000))
        with left.inside():
            client = socket.create_connection(("10.2.0.2", 7000), timeout=10)
        with server, client, contextlib.suppress(TimeoutError):
            client.settimeout(0.5)
            client.sendall(bytes(500_000))
        headrace.wait_for("longer than the MTU of left")
        text = headrace.stop()
    lost = drops(text)["a", "longer than the MTU (GRO, GSO)"]
    assert lost > 0 and int(value(text, "a.drops")) == lost
    ports = port_packets(text)
    assert ports["a"] == ports["tb"] + lost
    assert sizes.largest <= 1514


class Sizes:
    """Notes the largest frame that a host receives."""

    def __init__(self, host):
        self._port = host.port("eth0")
        self.largest = 0

    def __enter__(self):
        return self

    def __exit__(self, *_):
        while (frame := self._port.receive(0.05)) is not None:  # nothing more comes: the router has ended
            self.largest = max(self.largest, len(frame))
        self._port.__exit__()


def test_large_frames_of_a_large_mtu_pass(lab, tmp_path):
    left, router, right = (lab.host(name) for name in ("left", "router", "right"))
    lab.cable(left, "eth0", router, "left", mtu=9000)
    lab.cable(right, "eth0", router, "right", mtu=9000)
    frame = bytes.fromhex("02000000009902000000009888b5") + random.Random(3).randbytes(8990)
    for method in ("", "METHOD=PCAP"):
        text = WIRE if method else WIRE.replace(", METHOD $METHOD", "")
        text = text.replace("PROMISC true", "PROMISC true, SNAPLEN 9100") if method else text
        with wire(router, tmp_path, *method.split(), text=text):
            sender, receiver = Taps(left, "eth0"), Taps(right, "eth0")
            until_it_forwards(sender, receiver)
            sender.send(frame)
            assert receive_all(receiver, 1) == [frame]
            sender.close()
            receiver.close()


# --- Interfaces that go and come


@pytest.mark.parametrize("method", METHODS)
def test_an_interface_goes_away_and_comes_back(lab, hosts, tmp_path, method):
    left, router, right = hosts
    frames = list(frames_of(random.Random(9), 20))
    with wire(router, tmp_path, f"METHOD={method}") as headrace:
        for _ in range(2):
            router.ip("link", "del", "left")
            headrace.wait_for(" left is gone; waiting for it", 2)
            right_port = right.port("eth0")
            right_port.send(frames[0])  # cannot be sent, and does no harm
            lab.cable(left, "eth0", router, "left")
            headrace.wait_for(f" left is there, by {method.lower()}", 2)
            sender, receiver = Taps(left, "eth0"), Taps(right, "eth0")
            until_it_forwards(sender, receiver)
            until_it_forwards(receiver, sender)  # each element finds the interface by itself
            for frame in frames:
                sender.send(frame)
            assert receive_all(receiver, len(frames)) == frames
            for frame in frames:
                receiver.send(frame)
            assert receive_all(sender, len(frames)) == frames
            for port in (sender, receiver):
                port.close()
            right_port.__exit__()
            for gone in (" left is gone; waiting for it", f" left is there, by {method.lower()}"):
                assert headrace.text.count(gone) == 2  # once for each element
            headrace.text = ""


def test_an_interface_goes_down_and_up(hosts, tmp_path):
    left, router, right = hosts
    with wire(router, tmp_path, "METHOD=AF_PACKET") as headrace:
        router.ip("link", "set", "left", "down")
        headrace.wait_for("a :: FromDevice: left is down")
        router.ip("link", "set", "left", "up")
        headrace.wait_for("a :: FromDevice: left is up")
        frames = list(frames_of(random.Random(9), 20))
        sender, receiver = Taps(left, "eth0"), Taps(right, "eth0")
        until_it_forwards(sender, receiver)
        for frame in frames:
            sender.send(frame)
        assert receive_all(receiver, len(frames)) == frames
        sender.close()
        receiver.close()


def test_an_interface_that_is_not_there_yet(lab, tmp_path):
    left, router = lab.host("left"), lab.host("router")
    text = "a :: FromDevice(left, SNIFFER false, ALLOW_NONEXISTENT true) -> Queue -> t :: ToDevice(left, ALLOW_NONEXISTENT true);"
    with wire(router, tmp_path, text=text) as headrace:
        assert "left: no such interface" in headrace.text
        lab.cable(left, "eth0", router, "left")
        headrace.wait_for(" left is there, by ", 2)
        frame = next(frames_of(random.Random(1), 1))
        with contextlib.closing(Taps(left, "eth0")) as port:
            until_it_forwards(port, port)
            port.send(frame)
            assert receive_all(port, 1) == [frame]


# --- Several workers, and configurations that take over


def udp_frame(flow, sequence):
    head = struct.pack("!BBHHHBBH4s4s", 0x45, 0, 46, 0, 0, 64, 17, 0, bytes([10, 0, 0, 9]), bytes([20, flow, 0, 1]))
    head = head[:10] + struct.pack("!H", netlab.checksum(head)) + head[12:]
    return (bytes.fromhex("0200000000990200000000980800") + head + struct.pack("!HHHH", 1000 + flow, 2000, 26, 0)
            + struct.pack("!HI12x", flow, sequence))


def sequences(port, wait=1):
    """The numbers that arrived, by flow."""
    seen = {}
    while (frame := port.receive(wait)) is not None:
        if frame[12:14] == b"\x08\x00" and frame[36:38] == struct.pack("!H", 2000):
            flow, sequence = struct.unpack_from("!HI", frame, 42)
            seen.setdefault(flow, []).append(sequence)
    return seen


@pytest.mark.parametrize("workers", [1, 3])
@pytest.mark.parametrize("method", ["AF_XDP", "AF_PACKET"])
def test_flows_keep_their_order_on_several_workers(hosts, tmp_path, method, workers):
    left, router, right = hosts
    flows, rounds = 32, 40
    with left.port("eth0") as sender, right.port("eth0") as receiver:
        with wire(router, tmp_path, f"METHOD={method}", "-w", workers) as headrace:
            until_it_forwards(sender, receiver)
            for sequence in range(rounds):
                for flow in range(flows):
                    sender.send(udp_frame(flow, sequence))
                time.sleep(0.002)
            seen = sequences(receiver)
            text = headrace.stop()
    assert seen == {flow: list(range(rounds)) for flow in range(flows)}
    of_worker = [number(n) for n in re.findall(r"^\d+ +([\d,]+) +[\d.]+% ", text, re.M)]
    assert len(of_worker) == workers and all(n > flows * rounds / 10 for n in of_worker)


@pytest.mark.parametrize("method", METHODS)
def test_nothing_is_lost_or_doubled_when_a_configuration_takes_over(hosts, tmp_path, method):
    left, router, right = hosts
    flows, swaps = 8, 10
    # Other arguments, and one more element: the ports go on with what they have.
    other = WIRE.replace("-> qa ::", "-> Counter -> qa ::").replace("PROMISC true", "PROMISC true, BURST 8")
    seen, sent, stop = {}, 0, threading.Event()

    def send(port):
        nonlocal sent
        while not stop.is_set():
            for flow in range(flows):
                port.send(udp_frame(flow, sent))
            sent += 1
            time.sleep(0.001)

    with left.port("eth0") as sender, right.port("eth0") as receiver:
        with wire(router, tmp_path, f"METHOD={method}", "-w", "2") as headrace:
            until_it_forwards(sender, receiver)
            threads = [threading.Thread(target=send, args=[sender]),
                       threading.Thread(target=lambda: seen.update(sequences(receiver)))]
            for thread in threads:
                thread.start()
            for n in range(1, swaps + 1):
                time.sleep(0.1)
                (tmp_path / "wire.click").write_text(other if n % 2 else WIRE)
                headrace.signal(signal.SIGHUP)
                headrace.wait_for("wire.click: in effect after ", n)
            time.sleep(0.1)
            stop.set()
            for thread in threads:
                thread.join()
            text = headrace.stop()
    wrong = {flow: sorted(set(range(sent)) ^ set(numbers)) for flow, numbers in seen.items() if numbers != list(range(sent))}
    assert len(seen) == flows and not wrong, f"{sent} sent, {str(wrong)[:500]}\n{text}"


def test_rights_that_are_missing_are_named(tmp_path):
    if os.geteuid() != 0:
        pytest.skip("needs root, to give it up")
    path = pathlib.Path(os.environ.get("HEADRACE", ROOT / "build" / "headrace")).resolve()
    for text, message in (("FromDevice(lo) -> Discard;", "lo: packet socket: no permission; run as root, or give the program the "
                           "capabilities CAP_NET_RAW and CAP_NET_ADMIN"),
                          ("Idle -> ToDevice(lo);", "lo: packet socket: no permission; run as root"),
                          ("KernelTap(10.0.0.1/24) -> Discard;", "no permission to make a tap device; run as root, or give the "
                           "program CAP_NET_ADMIN"),
                          ("FromHost(fake0) -> Discard;", "no permission to make a tap device")):
        done = subprocess.run([path, "click", "-e", text], capture_output=True, text=True, timeout=30, user=65534, group=65534,
                              extra_groups=[], cwd="/")
        if "denied" in done.stderr:
            pytest.skip(f"{path} is not for other users")
        assert done.returncode == 1 and message in done.stderr, done.stderr


# --- Configurations that come with the program


def test_bridge(hosts, tmp_path):
    left, router, right = hosts
    left.address("eth0", "10.5.0.1/24")
    right.address("eth0", "10.5.0.2/24")
    with Headrace(router, CONF / "bridge.click", "DEV0=left", "DEV1=right", "-r", "switch.table", "-r", "switch.count",
                  cwd=tmp_path) as headrace:
        left.run("ping", "-c", "3", "-i", "0.2", "-W", "5", "10.5.0.2")
        text = headrace.stop()
    assert value(text, "switch.count") == "2"
    for host, port in ((left, 0), (right, 1)):
        assert f"{host.mac('eth0').upper().replace(':', '-')} {port}" in text


def test_ping_responder(hosts, tmp_path):
    left, router, _ = hosts
    left.address("eth0", "10.5.0.1/24")
    with Headrace(router, CONF / "ping-responder.click", "DEV=left", "ADDR=10.5.0.9", cwd=tmp_path):
        left.run("ping", "-c", "3", "-i", "0.2", "-W", "5", "-s", "1000", "10.5.0.9")
        assert left.run("ping", "-c", "1", "-W", "1", "10.5.0.10", check=False).returncode == 1
