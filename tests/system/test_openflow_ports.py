"""Ports of the OpenFlow switch before real interfaces: what controllers see of them, and what port-mods and links do to
packets between Linux hosts."""

import contextlib
import fcntl
import os
import pathlib
import re
import socket
import struct
import subprocess
import time

import netlab
import pytest
from linux_router import Headrace

VERSIONS = ["OpenFlow10", "OpenFlow13"]
PORTS = 3
CONFIG = "ControlSocket(UNIX, control);\nsw :: OpenFlowSwitch(1, LISTEN punix:mgmt, LOCAL true);\n" + "".join(
    f"FromDevice(p{i}, METHOD LINUX, SNIFFER false, PROMISC true, ALLOW_NONEXISTENT true) -> [{i - 1}] sw;\n"
    f"sw[{i - 1}] -> Queue -> ToDevice(p{i}, METHOD LINUX, ALLOW_NONEXISTENT true);\n" for i in range(1, PORTS + 1)
) + f"k :: KernelTap(10.0.0.254/24, DEVNAME tap0, ETHER 02:00:00:00:00:fe) -> [{PORTS}] sw[{PORTS}] -> k;\n"
SIOCGIFFLAGS, SIOCSIFFLAGS, IFF_UP, IFF_LOWER_UP = 0x8913, 0x8914, 1, 0x10000
RTMGRP_LINK, RTM_NEWLINK = 1, 16


class Network:
    """Host i at port i, with address 10.0.0.i, and the switch between them."""

    def __init__(self, lab, folder):
        self.folder = folder
        self.router = lab.host("router")
        self.hosts = [lab.host(f"host{i}") for i in range(1, PORTS + 1)]
        self.lab = lab
        for i in range(1, PORTS + 1):
            self.plug(i)
        (folder / "switch.click").write_text(CONFIG)
        self.headrace = Headrace(self.router, "-w", "1", "switch.click", cwd=folder)

    def plug(self, i):
        host = self.hosts[i - 1]
        self.lab.cable(host, "eth0", self.router, f"p{i}")
        host.ip("link", "set", "eth0", "address", f"02:00:00:00:00:0{i}")
        self.router.ip("link", "set", f"p{i}", "address", f"02:00:00:00:01:0{i}")
        host.address("eth0", f"10.0.0.{i}/24")

    def ofctl(self, version, command, *arguments):
        done = subprocess.run(["ovs-ofctl", "-O", version, command, f"unix:{self.folder}/mgmt", *map(str, arguments)], text=True,
                              capture_output=True, timeout=20)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def describe(self, version, port):
        """What is said of a port, on one line."""
        text = self.ofctl(version, "show" if version == "OpenFlow10" else "dump-ports-desc")
        return re.search(rf"^ {port}\(.*(\n +.*)*", text, re.M)[0].replace("\n", " ")

    def counts(self, port):
        """Packets received, received and dropped, sent, not sent."""
        text = self.ofctl("OpenFlow13", "dump-ports", port)
        found = re.search(r"rx pkts=(\d+), bytes=\d+, drop=(\d+),.*\n.*tx pkts=(\d+), bytes=\d+, drop=(\d+)", text)
        return tuple(map(int, found.groups()))

    @contextlib.contextmanager
    def monitor(self, version):
        """Yields a function that says what has come so far."""
        with open(self.folder / "monitor", "w+") as log:
            process = subprocess.Popen(["ovs-ofctl", "-O", version, "monitor", f"unix:{self.folder}/mgmt", "65534"], cwd=self.folder,
                                       stdout=log, stderr=subprocess.STDOUT, env={**os.environ, "OVS_RUNDIR": str(self.folder)})
            time.sleep(0.3)
            try:
                yield lambda: (self.folder / "monitor").read_text()
            finally:
                process.terminate()
                process.wait()


def until(ready, seconds=10):
    end = time.monotonic() + seconds
    while not ready():
        assert time.monotonic() < end, "it does not come to that"
        time.sleep(0.01)


def set_up(host, interface, up):
    """Puts an interface up or down, at once."""
    with host.inside(), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        name = interface.encode().ljust(16, b"\0")
        flags = struct.unpack("16sH", fcntl.ioctl(control, SIOCGIFFLAGS, name + bytes(24))[:18])[1]
        fcntl.ioctl(control, SIOCSIFFLAGS, name + struct.pack("H", flags | IFF_UP if up else flags & ~IFF_UP) + bytes(22))


def frame(to, source, number=0):
    return bytes([2, 0, 0, 0, 0, to, 2, 0, 0, 0, 0, source]) + b"\x90\x00" + struct.pack("!I", number) + bytes(44)


@pytest.fixture
def network(tmp_path):
    netlab.need("ovs-ofctl")
    with netlab.Lab() as lab:
        network = Network(lab, tmp_path)
        with network.headrace:
            yield network


@pytest.mark.parametrize("version", VERSIONS)
def test_a_port_is_its_interface(network, version):
    assert network.describe(version, 2).startswith(" 2(p2): addr:02:00:00:00:01:02")
    assert "10GB-FD COPPER" in network.describe(version, 2) and "speed: 10000 Mbps now" in network.describe(version, 2)
    assert network.describe(version, "LOCAL").startswith(" LOCAL(tap0): addr:02:00:00:00:00:fe")
    assert ("state:      LIVE" if version == "OpenFlow13" else "state:      0") in network.describe(version, 2)
    with network.monitor(version) as messages:
        statuses = lambda: re.findall(r"OFPT_PORT_STATUS .*: (MOD|ADD|DEL): (\w+)\(.*\): addr:(\S+)\n +config: +(.*)\n +state: +(.*)", messages())
        set_up(network.hosts[1], "eth0", False)
        until(lambda: statuses())
        assert statuses()[-1] == ("MOD", "2", "02:00:00:00:01:02", "0", "LINK_DOWN")
        set_up(network.hosts[1], "eth0", True)
        until(lambda: "LINK_DOWN" not in statuses()[-1][4])
        network.router.ip("link", "set", "p2", "address", "02:00:00:00:01:22")
        until(lambda: statuses()[-1][2] == "02:00:00:00:01:22")
        # The host's administrator.
        set_up(network.router, "p3", False)
        until(lambda: statuses()[-1][1] == "3")
        assert statuses()[-1][3:] == ("PORT_DOWN", "LINK_DOWN")
        set_up(network.router, "p3", True)
        until(lambda: statuses()[-1][3:] == ("0", "LIVE" if version == "OpenFlow13" else "0"))
        # Unplugged, and another one of the name.
        network.router.ip("link", "del", "p1")
        until(lambda: statuses()[-1][1] == "1")
        assert statuses()[-1][4] == "LINK_DOWN"
        network.plug(1)
        until(lambda: network.describe(version, 1).find("LINK_DOWN") < 0)
    network.ofctl(version, "add-flow", "actions=NORMAL")
    until(lambda: network.hosts[0].run("ping", "-c", "1", "-W", "1", "10.0.0.2", check=False).returncode == 0)


def test_hosts_reach_each_other_and_the_switch(network):
    network.ofctl("OpenFlow13", "add-flow", "actions=NORMAL")
    for address in ("10.0.0.2", "10.0.0.3", "10.0.0.254"):
        network.hosts[0].run("ping", "-c", "2", "-i", "0.1", "-W", "5", address)
    received, not_received, sent, not_sent = network.counts(1)
    assert received >= 9 and sent >= 9 and not_received == not_sent == 0
    assert network.counts("LOCAL")[0] >= 3


def test_port_mods_stop_packets(network):
    ofctl = lambda *words: network.ofctl("OpenFlow13", *words)
    ofctl("add-flow", "priority=2,in_port=1,dl_type=0x9000,actions=FLOOD")
    ofctl("add-flow", "priority=2,in_port=2,dl_type=0x9000,actions=output:3")
    ofctl("add-flow", "priority=0,actions=CONTROLLER")
    with contextlib.ExitStack() as stack:
        ends = [stack.enter_context(host.port("eth0")) for host in network.hosts]
        number = 0

        def reaches(sender, *expected):
            """A frame of one host comes to these others and to nobody else."""
            nonlocal number
            number += 1
            ends[sender - 1].send(frame(0x77, sender, number))
            for host in sorted((1, 2, 3), key=lambda host: host not in expected):
                # Nobody else gets it a while after those that should, or after nobody could.
                deadline, seen = time.monotonic() + (5 if host in expected else 0.05 if expected else 0.15), b""
                while seen is not None and seen[12:18] != b"\x90\x00" + struct.pack("!I", number):
                    seen = ends[host - 1].receive(max(deadline - time.monotonic(), 0.001))
                assert (seen is not None) == (host in expected), f"host {host}, frame {number}"

        reaches(1, 2, 3)
        ofctl("mod-port", "2", "no-forward")
        reaches(1, 3)
        assert network.counts(2)[3] == 1
        ofctl("mod-port", "2", "forward")
        ofctl("mod-port", "1", "no-receive")
        before = network.counts(1)[1]
        reaches(1)
        until(lambda: network.counts(1)[1] == before + 1)
        ofctl("mod-port", "1", "receive")
        network.ofctl("OpenFlow10", "mod-port", "3", "no-flood")
        reaches(1, 2)
        network.ofctl("OpenFlow10", "mod-port", "3", "flood")
        ofctl("mod-port", "2", "down")
        reaches(1, 3)
        reaches(2)
        ofctl("mod-port", "2", "up")
        reaches(1, 2, 3)
        with network.monitor("OpenFlow13") as messages:
            ends[2].send(frame(0x77, 3))
            until(lambda: "in_port=3 (via no_match)" in messages())
            ofctl("mod-port", "3", "no-packet-in")
            said = messages().count("OFPT_PACKET_IN")
            ends[2].send(frame(0x77, 3))
            # Other packets of the port are still told, and other ports' misses.
            ofctl("add-flow", "priority=1,in_port=3,dl_type=0x9001,actions=CONTROLLER")
            ends[2].send(bytes(12) + b"\x90\x01" + bytes(46))
            until(lambda: "in_port=3 (via action)" in messages())
            ends[1].send(bytes(12) + b"\x90\x01" + bytes(46))
            until(lambda: "in_port=2 (via no_match)" in messages())
            assert messages().count("OFPT_PACKET_IN") == said + 2


def waited(*pids):
    """Seconds that the threads of processes have been ready to run, and had no CPU."""
    seconds = 0
    for pid in pids:
        for file in pathlib.Path(f"/proc/{pid}/task").glob("*/schedstat"):
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # a thread that has ended
                seconds += int(file.read_text().split()[1]) / 1e9
    return seconds


class LinkNews:
    """What the kernel tells of an interface, as it tells the switch."""

    def __init__(self, host, interface):
        self.index = int(host.ip("-o", "link", "show", interface).split(":")[0])
        with host.inside():
            self.socket = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE)
        self.socket.bind((0, RTMGRP_LINK))
        self.socket.setblocking(False)

    def went_down(self):
        """Whether its link has gone down, by what has come since the last call."""
        down = False
        with contextlib.suppress(BlockingIOError):
            while True:
                data = self.socket.recv(65536)
                while len(data) >= 32:
                    length, kind = struct.unpack_from("=IH", data)
                    index, flags = struct.unpack_from("=iI", data, 20)
                    down |= kind == RTM_NEWLINK and index == self.index and not flags & IFF_LOWER_UP
                    data = data[(length + 3) & ~3:]
        return down

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()


def test_fast_failover_takes_less_than_50_ms(network):
    """From the moment at which the kernel says that a link is down until the first packet leaves by another one. What other
    programs do to the switch, and to this one, is left out: the time in which they were ready and had no CPU."""
    network.ofctl("OpenFlow13", "add-group", "group_id=1,type=ff,bucket=watch_port:2,output:2,bucket=watch_port:3,output:3")
    network.ofctl("OpenFlow13", "add-flow", "in_port=1,dl_type=0x9000,actions=group:1")
    took = []
    with (network.hosts[0].port("eth0") as sender, network.hosts[2].port("eth0") as other,
          LinkNews(network.router, "p2") as news):
        for _ in range(7):
            other.drain()
            news.went_down()
            begun, before = None, 0
            end = time.monotonic() + 10
            set_up(network.hosts[1], "eth0", False)
            while other.receive(0.001) is None:
                if begun is None and news.went_down():
                    begun, before = time.monotonic(), waited(network.headrace.pid, os.getpid())
                sender.send(frame(0x77, 1))
                assert time.monotonic() < end, "no packet has left by the other port"
            # The switch may hear it first.
            took.append(0 if begun is None else time.monotonic() - begun - (waited(network.headrace.pid, os.getpid()) - before))
            set_up(network.hosts[1], "eth0", True)
            until(lambda: "LINK_DOWN" not in network.describe("OpenFlow13", 2))
    assert sorted(took)[len(took) // 2] < 0.05, took
