"""DPDK ports with real peers: Linux interfaces in namespaces, and another process behind shared memory."""

import ctypes
import os
import pathlib
import re
import select
import shutil
import signal
import socket
import subprocess
import threading
import time

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
BINARY = pathlib.Path(os.environ.get("HEADRACE", ROOT / "build" / "headrace")).resolve()
SPACE = f"hrdpdk{os.getpid()}"
ETHERTYPE = 0x88b5  # for experiments
CLONE_NEWNET = 0x40000000


def has_dpdk():
    if not BINARY.exists():
        return False
    done = subprocess.run([BINARY, "elements", "FromDPDKDevice"], capture_output=True, check=False)
    return done.returncode == 0


pytestmark = pytest.mark.skipif(not has_dpdk(), reason="this headrace is built without DPDK")
needs_root = pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("ip"), reason="needs root and iproute2")


def ip(*arguments, check=True):
    return subprocess.run(["ip", *arguments], capture_output=True, text=True, check=check)


class InNamespace:
    """Runs the calling thread in a network namespace."""

    def __init__(self, name):
        self.name = name

    def __enter__(self):
        libc = ctypes.CDLL(None, use_errno=True)
        self.before = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
        fd = os.open(f"/var/run/netns/{self.name}", os.O_RDONLY)
        if libc.setns(fd, CLONE_NEWNET) != 0:
            raise OSError(ctypes.get_errno(), "setns")
        os.close(fd)
        self.libc = libc

    def __exit__(self, *_):
        self.libc.setns(self.before, CLONE_NEWNET)
        os.close(self.before)


def raw_socket(interface):
    with InNamespace(SPACE):
        s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETHERTYPE))
        s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 16 << 20)
        s.bind((interface, ETHERTYPE))
    return s


def add_pair(router, host):
    ip("-n", SPACE, "link", "add", router, "type", "veth", "peer", "name", host)
    for name in (router, host):
        ip("-n", SPACE, "link", "set", name, "up")


@pytest.fixture
def pairs():
    """A namespace with two veth pairs: ra-ha and rb-hb; the router has the ends ra and rb."""
    ip("netns", "add", SPACE)
    try:
        # Without it the kernel sends frames of its own, for IPv6.
        ip("netns", "exec", SPACE, "sysctl", "-qw", "net.ipv6.conf.default.disable_ipv6=1", check=False)
        add_pair("ra", "ha")
        add_pair("rb", "hb")
        yield
    finally:
        ip("netns", "del", SPACE, check=False)


class Running:
    """headrace with its output, in the namespace or outside."""

    def __init__(self, folder, conf, *arguments, namespace=True):
        (folder / "conf.click").write_text(conf)
        command = [str(BINARY), "run", "conf.click", "--workers", "2", "--interval", "0.2", *arguments]
        if namespace:
            command = ["ip", "netns", "exec", SPACE, *command]
        self.process = subprocess.Popen(command, cwd=folder, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                        bufsize=1)
        self.lines = []
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    def _read(self):
        for line in self.process.stdout:
            self.lines.append(line)

    @property
    def text(self):
        return "".join(self.lines)

    def wait_for(self, pattern, seconds=20):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if re.search(pattern, self.text):
                return
            assert self.process.poll() is None, self.text
            time.sleep(0.02)
        raise AssertionError(f"no '{pattern}' in\n{self.text}")

    def reload(self):
        self.process.send_signal(signal.SIGHUP)

    def stop(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
        self.process.wait(timeout=30)
        self.reader.join(timeout=10)
        return self.text

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()


def frames(n, salt):
    """Frames of all lengths that Ethernet allows, each different."""
    result = []
    for i in range(n):
        length = 60 + i * 61 % 1455
        body = bytes((i * 5 + k * salt) & 255 for k in range(length - 18))
        result.append(bytes.fromhex("020000000002020000000001") + ETHERTYPE.to_bytes(2, "big") + i.to_bytes(4, "big") + body)
    return result


def cross(sender, receiver, sent, seconds=20):
    """Sends frames, no more than a few ahead of those received; returns what arrived."""
    arrived = []
    end = time.monotonic() + seconds
    queue = list(sent)
    under_way = 0
    while len(arrived) < len(sent) and time.monotonic() < end:
        while queue and under_way < 32:
            sender.send(queue.pop(0))
            under_way += 1
        if select.select([receiver], [], [], 0.5)[0]:
            arrived.append(receiver.recv(4096))
            under_way -= 1
    return arrived


BETWEEN = """
FromDPDKDevice(net_af_packet0,iface=ra, PROMISC true) -> b :: ToDPDKDevice(net_af_packet1);
FromDPDKDevice(net_af_packet1,iface=rb, PROMISC true) -> a :: ToDPDKDevice(net_af_packet0);
"""


@needs_root
@pytest.mark.parametrize("driver", ["net_af_packet", "net_af_xdp", "net_pcap"])
def test_frames_cross_both_ways(pairs, tmp_path, driver):
    """What veth allows: the same bytes in the same order."""
    conf = BETWEEN.replace("net_af_packet", driver)
    with Running(tmp_path, conf) as router:
        while router.process.poll() is None and not re.search(r"in +0 pps", router.text):
            time.sleep(0.05)
        if driver == "net_af_xdp" and router.process.poll() is not None:
            pytest.skip(f"AF_XDP does not work here:\n{router.text}")
        router.wait_for(r"in +0 pps")
        ha, hb = raw_socket("ha"), raw_socket("hb")
        there, back = frames(400, 3), frames(400, 11)
        assert cross(ha, hb, there) == there
        assert cross(hb, ha, back) == back
        text = router.stop()
    assert router.process.returncode == 0, text
    if driver == "net_pcap":
        return  # which also sees the frames that it sends
    assert re.search(r"^out a +400 ", text, re.M) and re.search(r"^out b +400 ", text, re.M), text
    assert "no drops" in text


@needs_root
@pytest.mark.parametrize("port, too", [("net_af_packet0,iface=ra", True), ("net_pcap0,iface=ra", True), ("net_null0", False)])
def test_it_says_where_the_kernel_receives_as_well(pairs, tmp_path, port, too):
    with Running(tmp_path, f"FromDPDKDevice({port}) -> Discard;") as router:
        router.wait_for(r"FromDPDKDevice: net_\w+, driver .*\n")
        text = router.stop()
    assert (re.search(r", MTU \d+, the kernel receives the frames as well\n", text) is not None) == too, text


@needs_root
def test_an_interface_that_goes_down_or_away_comes_back(pairs, tmp_path):
    with Running(tmp_path, BETWEEN) as router:
        router.wait_for(r"in +0 pps")
        ha, hb = raw_socket("ha"), raw_socket("hb")
        some = frames(20, 7)
        assert cross(ha, hb, some) == some

        ip("-n", SPACE, "link", "set", "hb", "down")
        router.wait_for(r"net_af_packet1: link down\n")
        ip("-n", SPACE, "link", "set", "hb", "up")
        router.wait_for(r"net_af_packet1: link up\n")
        hb.close()
        hb = raw_socket("hb")
        assert cross(ha, hb, some) == some

        ip("-n", SPACE, "link", "del", "rb")
        router.wait_for(r"net_af_packet1: its interface is gone, waiting for it to come back\n")
        for frame in some:
            ha.send(frame)
        time.sleep(0.3)
        add_pair("rb", "hb")
        router.wait_for(r"net_af_packet1: the device is back\n")
        hb.close()
        hb = raw_socket("hb")
        # What was sent meanwhile waits for the port.
        assert cross(ha, hb, some + some)[-20:] == some
        assert cross(hb, ha, some) == some
        text = router.stop()
    assert router.process.returncode == 0, text
    # The new interface may be down for a moment, too.
    before, _, after = text.partition("net_af_packet1: its interface is gone")
    assert before.count("net_af_packet1: link down") == 1 and "its interface is gone" not in after, text
    assert after.count("net_af_packet1: the device is back") == 1, text


@needs_root
def test_a_port_lives_on_in_the_next_configuration(pairs, tmp_path):
    """Configurations that follow each other share the port; what it cannot change leaves the running one alone."""
    with Running(tmp_path, BETWEEN) as router:
        router.wait_for(r"in +0 pps")
        ha, hb = raw_socket("ha"), raw_socket("hb")
        some = frames(100, 13)
        arrived = []
        receiver = threading.Thread(target=lambda: arrived.extend(cross(ha, hb, some * 30, 60)))
        receiver.start()
        conf = tmp_path / "conf.click"
        for i in range(3):
            conf.write_text(BETWEEN.replace("b :: ToDPDKDevice", f"Counter -> n{i} :: Null -> b :: ToDPDKDevice"))
            router.reload()
            router.wait_for(r"(in effect after(.|\n)*)" + "{%d}" % (i + 1))
        conf.write_text(BETWEEN.replace("PROMISC true", "PROMISC true, MTU 1400"))
        router.reload()
        router.wait_for(r"net_af_packet0 runs with 1500 bytes as its MTU, this configuration asks for 1400: stop the router")
        conf.write_text(BETWEEN.replace("iface=ra", "iface=hb"))
        router.reload()
        router.wait_for(r"net_af_packet0 runs with other arguments: net_af_packet0,iface=ra\n")
        receiver.join(timeout=60)
        assert arrived == some * 30
        text = router.stop()
    assert router.process.returncode == 0, text


@needs_root
def test_a_tap_is_an_interface_of_linux(pairs, tmp_path):
    conf = """
    FromDPDKDevice(net_tap0,iface=hrtap) -> Print(got, MAXLENGTH 0) -> ToDPDKDevice(net_tap0);
    """
    with Running(tmp_path, conf) as router:
        router.wait_for(r"in +0 pps")
        ip("-n", SPACE, "link", "set", "hrtap", "up")
        tap = raw_socket("hrtap")
        some = frames(50, 9)
        for frame in some:
            tap.send(frame)
        # The kernel shows a packet socket what is sent, too.
        arrived = []
        end = time.monotonic() + 10
        while len(arrived) < 50 and time.monotonic() < end:
            if select.select([tap], [], [], 0.5)[0]:
                data, address = tap.recvfrom(4096)
                if address[2] != socket.PACKET_OUTGOING:
                    arrived.append(data)
        assert sorted(arrived) == sorted(some)
        router.stop()


def test_memory_shared_by_two_processes(tmp_path):
    """A million packets to another process over memif, checked there."""
    socket_path = tmp_path / "memif.sock"
    device = f"net_memif0,role=%s,socket={socket_path},socket-abstract=no"
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    server = f"""
    f :: FromDPDKDevice("{device % 'server'}", BURST 128, SPREAD false) -> s :: TrafficSink(CHECK true, TTL 64);
    """
    client = f"""
    t :: TrafficSource(imix, LIMIT 1000000, ACTIVE false) -> o :: ToDPDKDevice("{device % 'client'}");
    Script(label again, wait 0.1s, goto again $(not $(eq $(o.link) up)), wait 0.2s, write t.active true);
    """
    with Running(tmp_path / "a", server, "-r", "s.count", "-r", "s.bad", "-r", "s.byte_count", namespace=False) as b:
        b.wait_for(r"net_memif0: link down")
        with Running(tmp_path / "b", client, "-r", "o.count", "-r", "o.dropped", "-r", "o.bytes", namespace=False) as a:
            b.wait_for(r"net_memif0: link up")
            end = time.monotonic() + 60
            while time.monotonic() < end:
                rates = re.findall(r"out +([\d.]+) [kMG]?pps", a.text)
                if any(float(r) > 0 for r in rates) and rates[-2:] == ["0", "0"]:
                    break
                time.sleep(0.1)
            sent = a.stop()
        b.wait_for(r"link up(.|\n)*link down")
        received = b.stop()
    value = lambda text, name: int(re.search(rf"^{name}: (\d+)$", text, re.M)[1])
    assert value(sent, "o.count") + value(sent, "o.dropped") == 1000000, sent
    # A machine that is busy may keep the far side from its work for longer than a port is waited for.
    assert value(sent, "o.count") > 100000, sent
    assert value(received, "s.count") == value(sent, "o.count"), sent + received
    assert value(received, "s.bad") == 0, received
    assert value(received, "s.byte_count") == value(sent, "o.bytes")


def test_arguments_for_dpdk(tmp_path):
    """Ports may come from the command line, and what DPDK refuses is said."""
    conf = tmp_path / "conf.click"
    conf.write_text("f :: FromDPDKDevice(0) -> c :: Counter(COUNT_CALL 1000 stop) -> Discard; DriverManager(pause, stop);")
    done = subprocess.run([BINARY, "run", conf, "--workers", "1", "--duration", "20", "--dpdk", "--vdev=net_null0,size=70",
                           "-r", "f.port"], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0 and "f.port: net_null0" in done.stdout, done.stdout + done.stderr

    click = tmp_path / "click"
    click.symlink_to(BINARY)
    done = subprocess.run([click, "--dpdk", "--vdev=net_null0,size=70", "--", "-h", "f.port", conf], capture_output=True,
                          text=True, timeout=60, check=False)
    assert done.returncode == 0 and "net_null0" in done.stdout, done.stdout + done.stderr

    done = subprocess.run([BINARY, "run", "--dpdk", "--no-such-option", conf], capture_output=True, text=True, timeout=60,
                          check=False)
    assert done.returncode == 1
    assert "DPDK's environment does not start" in done.stderr, done.stderr


def test_dpdk_is_not_there_without_a_port(tmp_path):
    """A configuration without a DPDK element has no thread and no memory of DPDK's."""
    conf = tmp_path / "conf.click"
    conf.write_text("Idle -> Discard; Script(wait 10s, stop);")
    process = subprocess.Popen([BINARY, "run", conf, "--workers", "1"], stdout=subprocess.DEVNULL)
    try:
        time.sleep(0.5)
        names = {(t / "comm").read_text().strip() for t in pathlib.Path(f"/proc/{process.pid}/task").iterdir()}
        assert names == {"headrace", "worker 0"}, names
    finally:
        process.kill()
        process.wait()


@needs_root
def test_ordinary_users_may_use_what_needs_no_rights():
    if not shutil.which("setpriv"):
        pytest.skip("setpriv is not installed")
    command = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", "--inh-caps", "-all"]
    if subprocess.run([*command, "test", "-x", BINARY], check=False).returncode != 0:
        pytest.skip("the binary is in a folder that others cannot read")
    conf = """FromDPDKDevice(net_null0) -> c :: Counter(COUNT_CALL 1000 stop) -> ToDPDKDevice(net_ring0);
              DriverManager(pause, stop);"""
    done = subprocess.run([*command, BINARY, "run", "-", "--workers", "1", "--duration", "20"], capture_output=True,
                          input=conf, cwd="/", text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
