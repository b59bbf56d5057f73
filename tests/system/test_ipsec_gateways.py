"""Two gateways of conf/ipsec-pair in namespaces, with hosts of Linux behind them, and somebody on the wire between them who
sends old packets again and changed ones."""

import hashlib
import os
import pathlib
import re
import signal
import struct
import threading
import time

import netlab
import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
BINARY = pathlib.Path(os.environ.get("HEADRACE", ROOT / "build" / "headrace"))

LEFT, RIGHT = "10.1.0.2", "10.2.0.2"  # one association of GCM each way
RIGHT_CTR = "10.2.1.2"  # and one of AES-CTR with HMAC-SHA1


class Network:
    """left -- gateway -- wire -- gateway -- right. The wire is a bridge."""

    def __init__(self, lab):
        self.lab = lab
        self.left, self.gateways, self.wire, self.right = (
            lab.host("left"), [lab.host("gw1"), lab.host("gw2")], lab.host("wire"), lab.host("right"))
        self.wire.ip("link", "add", "name", "bridge0", "type", "bridge")
        self.wire.ip("link", "set", "bridge0", "up")
        for i, (host, gateway) in enumerate(zip((self.left, self.right), self.gateways), 1):
            lab.cable(host, "eth0", gateway, "lan")
            lab.cable(gateway, "wan", self.wire, f"port{i}")
            self.wire.ip("link", "set", f"port{i}", "master", "bridge0")
        self.left.address("eth0", f"{LEFT}/16")
        self.right.address("eth0", f"{RIGHT}/16")
        self.right.address("eth0", f"{RIGHT_CTR}/16")
        self.left.ip("route", "add", "default", "via", "10.1.0.1")
        self.right.ip("route", "add", "default", "via", "10.2.0.1")

    def start(self, number, *arguments, state=None):
        """A gateway, answering."""
        name = ("left", "right")[number - 1]
        process = self.gateways[number - 1].start(
            BINARY, "run", ROOT / "conf" / "ipsec-gateway.click", f"CONFIG={ROOT}/conf/ipsec-pair/{name}.cfg", "LAN=lan", "WAN=wan",
            f"LAN_ADDR=10.{number}.0.1/16", f"WAN_ADDR=192.0.2.{number}/24", f"GATEWAY=192.0.2.{3 - number}",
            f"LAN_ETH=02:00:00:00:0{number}:01", f"WAN_ETH=02:00:00:00:0{number}:02", *([f"STATE={state}"] if state else []),
            "--read", "db.counts", *(["--read", "offload_counts"] if "device" in arguments else []),
            *([] if "--compile" in arguments else ["--compile", "off"]), *arguments)
        host = (self.left, self.right)[number - 1]
        for _ in range(100):
            if process.poll() is not None:
                pytest.fail("".join(process.communicate()))
            if host.run("ping", "-c1", "-W1", f"10.{number}.0.1", check=False).returncode == 0:
                return process
        pytest.fail(f"gateway {number} does not answer")

    def stop(self, process, how=signal.SIGINT):
        # What was started is `ip netns exec`, which has become the gateway.
        process.send_signal(how)
        out, err = process.communicate(timeout=60)
        assert how == signal.SIGKILL or process.returncode == 0, out + err
        return out + err


class Sniffer:
    """Collects the ESP packets that cross the wire from the left gateway, up to a moment of silence behind the end. Where more come
    than it can take, it misses the last ones."""

    def __init__(self, network):
        self.port = network.wire.port("port1")
        self.frames, self.ends = [], False
        self.thread = threading.Thread(target=self.listen)

    def listen(self):
        while (frame := self.port.receive(0.05)) or not self.ends:
            if frame and frame[12:14] == b"\x08\x00" and frame[23] == 50:
                self.frames.append(frame)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.ends = True
        self.thread.join()
        self.port._socket.close()


def esp_of(frame):
    """SPI, number, IV of eight bytes."""
    spi, number = struct.unpack_from("!II", frame, 34)
    return spi, number, frame[42:50]


def counts(printed, direction):
    result = {}
    for spi, line in re.findall(rf"^(?:db\.counts: )?{direction} (\d+)[^:\n]*: (.*)$", printed, re.M):
        result[int(spi)] = {name: int(n) for n, name in re.findall(r"(\d+) ([^,]+)", line)}
    return result


@pytest.fixture
def network():
    netlab.need("iperf3", "ping", "nc")
    if not BINARY.exists():
        pytest.skip(f"{BINARY} is not built")
    with netlab.Lab() as lab:
        yield Network(lab)


def iperf(network, address, *arguments, seconds=2):
    """A server for each run: one that has just served a client may reset the next one's connection."""
    server = network.right.start("iperf3", "-s", "-1", "-B", address, "-p", "5201")
    network.right.listens(5201, server)
    done = network.left.run("iperf3", "-c", address, "-t", seconds, *arguments, timeout=seconds + 30)
    assert re.search(r"receiver", done.stdout), done.stdout
    server.wait(10)
    return done.stdout


def send_file(network, tmp_path):
    """A file of a megabyte crosses, unchanged."""
    data = os.urandom(1 << 20)
    (tmp_path / "there").write_bytes(data)
    receiver = network.right.start("sh", "-c", f"nc -d -l -p 7000 > {tmp_path}/came")
    network.right.listens(7000, receiver)
    network.left.run("sh", "-c", f"nc -N -w 20 {RIGHT_CTR} 7000 < {tmp_path}/there", timeout=40)
    receiver.wait(20)
    assert hashlib.sha256((tmp_path / "came").read_bytes()).digest() == hashlib.sha256(data).digest()


@pytest.mark.parametrize("way", [
    ["--mode", "cpu", "-w", "1"], ["--mode", "cpu", "-w", "1", "--compile", "wait"],
    ["--mode", "device", "--backend", "reference", "-w", "1"]], ids=["cpu", "compiled", "device"])
def test_real_traffic_and_bad_packets(network, tmp_path, way):
    gateways = [network.start(1, *way), network.start(2, *way)]
    for address in RIGHT, RIGHT_CTR:
        network.left.ping(address, 5, "-s1200")
    # Too long for the tunnel: fragmented before it is encrypted, or its sender learns what goes through.
    network.left.ping(RIGHT, 3, "-s3000")
    done = network.left.run("ping", "-c2", "-i0.2", "-W5", "-s1450", "-M", "do", RIGHT, check=False)
    assert "mtu" in (done.stdout + done.stderr).lower()
    with Sniffer(network) as sniffer:
        iperf(network, RIGHT)
        iperf(network, RIGHT_CTR)
        send_file(network, tmp_path)
    with Sniffer(network) as end:  # which misses none
        network.left.ping(RIGHT, 1)
        network.left.ping(RIGHT_CTR, 1)
    # Somebody on the wire sends to the right gateway what it has seen, old and new, and changed.
    seen = sniffer.frames + end.frames
    assert len(seen) > 200
    with network.wire.port("port2") as wire:
        for frame in seen[-50:] + seen[:50]:
            wire.send(frame)
        # Numbers that the window has not seen, so that the ICV has to tell.
        last = {}
        for frame in seen:
            last[esp_of(frame)[0]] = frame
        for frame in last.values():
            for i in range(20):
                changed = bytearray(frame)
                struct.pack_into("!I", changed, 38, esp_of(frame)[1] + 1000 + i)
                wire.send(changed)
                changed[-1 - i] ^= 1
                wire.send(changed)
        time.sleep(0.3)
        for _ in range(3):  # and traffic goes on
            iperf(network, RIGHT, seconds=1)
    network.left.ping(RIGHT_CTR, 5)
    ivs = [(spi, iv) for spi, _, iv in map(esp_of, seen)]
    assert len(set(ivs)) == len(ivs)
    printed = [network.stop(gateway) for gateway in gateways]
    sent, came = counts(printed[0], "out"), counts(printed[1], "in")
    for spi in 1001, 1002:
        assert came[spi]["packets"] > 100
        assert came[spi]["bad ICV"] == 40, came
    assert sum(n.get("replayed", 0) + n.get("too old", 0) for n in came.values()) == 100, came
    assert not sent.keys() - {1001, 1002}


def test_four_workers_feed_one_association(network):
    """The window of the peer has 64 packets: nothing is left behind by it."""
    gateways = [network.start(1, "--mode", "cpu", "-w", "4"), network.start(2, "--mode", "cpu", "-w", "4")]
    with Sniffer(network) as sniffer:
        iperf(network, RIGHT, "-P", "8")
    numbers = [number for spi, number, _ in map(esp_of, sniffer.frames) if spi == 1001]
    assert len(numbers) > 1000
    printed = [network.stop(gateway) for gateway in gateways]
    for n in [*counts(printed[1], "in").values(), *counts(printed[0], "in").values()]:
        assert n.keys() == {"packets", "bytes"}, printed
    workers = re.findall(r"^(\d)\s+([\d,]+)\s+[\d.]+%", printed[0], re.M)
    assert sum(int(n.replace(",", "")) > 100 for _, n in workers) >= 3, printed[0]


def test_a_restart_repeats_no_iv(network, tmp_path):
    """Killed in the middle, again and again; the peer's window is told by a restart of its own."""
    seen = set()
    for _ in range(3):
        gateways = [network.start(1, "--mode", "cpu", "-w", "1", state=tmp_path / "state"), network.start(2, "--mode", "cpu", "-w", "1")]
        with Sniffer(network) as sniffer:
            network.left.ping(RIGHT, 20, interval=0.01)
            network.stop(gateways[0], signal.SIGKILL)
        network.stop(gateways[1])
        ivs = [(spi, iv) for spi, _, iv in map(esp_of, sniffer.frames)]
        assert len(ivs) >= 20 and len(set(ivs)) == len(ivs)
        assert not seen & set(ivs)
        seen |= set(ivs)


def test_a_device_fails_in_the_middle(network):
    """What it had is done again on the CPU, under the same numbers: nothing is lost, no IV has two plaintexts."""
    gateways = [network.start(1, "--mode", "device", "--backend", "reference", "--reference", "fail=300", "-w", "1"),
                network.start(2, "--mode", "cpu", "-w", "1")]
    with Sniffer(network) as sniffer:
        for _ in range(2):
            iperf(network, RIGHT, seconds=2)
        network.left.ping(RIGHT, 20, interval=0.01)
    printed = [network.stop(gateway) for gateway in gateways]
    assert int(re.search(r"failed_jobs: (\d+)", printed[0])[1]) > 0, printed[0]
    came, sent = counts(printed[1], "in")[1001], counts(printed[0], "out")[1001]
    assert came.keys() == {"packets", "bytes"}, came
    ivs = [(spi, iv) for spi, _, iv in map(esp_of, sniffer.frames)]
    assert len(set(ivs)) == len(ivs)
    assert came["packets"] == sent["packets"], (came, sent)
