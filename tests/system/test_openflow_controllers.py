"""OpenFlowSwitch under controllers of others, between network namespaces with real Linux hosts: the learning switch of
os-ken's tutorial in both versions, and Faucet, which routes between VLANs."""

import os
import pathlib
import re
import shutil
import subprocess
import threading
import time

import netlab
import pytest

ROOT = pathlib.Path(os.environ.get("HEADRACE_SOURCE", pathlib.Path(__file__).resolve().parent.parent.parent))
BINARY = pathlib.Path(os.environ.get("HEADRACE", ROOT / "build" / "headrace"))
APP = ROOT / "tests" / "system" / "openflow" / "learning_switch.py"
# Faucet and what Debian's python3-os-ken does not bring for it; its own os-ken is a newer one.
FAUCET = ["faucet==1.10.12", "os-ken==3.1.0", "beka==0.4.2", "chewie==0.0.25", "networkx==3.6.1", "prometheus_client==0.24.1",
          "pytricia==1.3.0", "ruamel.yaml==0.18.16", "transitions==0.9.3"]
WAIT_S = 20


class Process:
    """A program in a namespace. `text` is what it has printed so far."""

    def __init__(self, host, *command, **options):
        self.text = ""
        self._process = host.start("stdbuf", "-oL", *command, stderr=subprocess.STDOUT, **options)
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self):
        for line in self._process.stdout:
            self.text += line

    def wait_for(self, what, times=1):
        wait_until(lambda: self.text.count(what) >= times, lambda: f"no {what!r} in\n{self.text}")

    def kill(self):
        self._process.kill()
        self._process.wait()
        self._reader.join()


def wait_until(done, what, seconds=WAIT_S):
    deadline = time.monotonic() + seconds
    while not done():
        assert time.monotonic() < deadline, what()
        time.sleep(0.05)


class Network:
    """A switch with hosts h1 to hN at its ports, 10.0.0.1 to 10.0.0.N, on the same side of no router."""

    def __init__(self, lab, hosts, folder, *arguments):
        self.folder = folder
        self.switch = lab.host("switch")
        self.hosts = []
        text = ""
        for i in range(1, hosts + 1):
            host = lab.host(f"h{i}")
            lab.cable(host, "eth0", self.switch, f"port{i}")
            host.address("eth0", f"10.0.0.{i}/24")
            self.hosts.append(host)
            text += (f"FromDevice(port{i}, METHOD AF_PACKET, SNIFFER false, PROMISC true) -> [{i - 1}]sw[{i - 1}]"
                     f" -> Queue(10000) -> ToDevice(port{i}, METHOD AF_PACKET);\n")
        (folder / "switch.click").write_text(f"sw :: OpenFlowSwitch({', '.join(('1', 'LISTEN punix:sw.mgmt', *arguments))});\n" + text)
        self.headrace = Process(self.switch, BINARY.resolve(), "run", "-q", "switch.click", cwd=folder)
        self.headrace.wait_for(" ready in ")

    def ofctl(self, version, command, *arguments):
        return self.switch.run("ovs-ofctl", "-O", f"OpenFlow{version.replace('.', '')}", command,
                               f"unix:{self.folder}/sw.mgmt", *arguments).stdout

    def pings(self, a, b, count=3):
        """How many of the pings from host a to host b are answered. One is waited for 0.3 s. Of several, those whose answers come
        too late for `ping`, or for which there is no neighbor yet, are sent again, as long as the machine may need."""
        answered, deadline = 0, time.monotonic() + WAIT_S
        while True:
            patience = ("-W", 0.3) if count == 1 else ("-w", 5)
            done = self.hosts[a - 1].run("ping", "-n", "-c", count - answered, "-i", "0.05", *patience, f"10.0.0.{b}", check=False)
            answered += int(re.search(r"(\d+) received", done.stdout)[1])
            if count == 1 or answered >= count or time.monotonic() > deadline:
                return min(answered, count)  # of those sent again some may be answered, too


@pytest.fixture
def lab():
    netlab.need("ovs-ofctl", "ping")
    if not BINARY.exists():
        pytest.skip(f"{BINARY} is not built")
    with netlab.Lab() as made:
        yield made


def learning_switch(network, version, port):
    if not shutil.which("osken-manager"):
        pytest.skip("not installed: osken-manager (python3-os-ken, tools/deps test)")
    return Process(network.switch, "osken-manager", "--ofp-listen-host", "127.0.0.1", "--ofp-tcp-listen-port", port, APP,
                   env=os.environ | {"VERSION": version})


@pytest.mark.parametrize("version", ["1.0", "1.3"])
def test_learning_switch_of_os_ken(lab, tmp_path, version):
    network = Network(lab, 3, tmp_path, "CONTROLLER tcp:127.0.0.1:6653", f'VERSIONS "{version}"', "MAX_BACKOFF 1s",
                      "LOST_AFTER 1s")
    assert network.pings(1, 2, 1) == 0  # nobody says what to do
    controller = learning_switch(network, version, 6653)
    controller.wait_for("ready")
    assert network.pings(1, 2) == 3
    macs = [host.mac("eth0") for host in network.hosts]

    def carried(a, b):
        """What the entry from one host to another has counted; None: there is none."""
        found = re.search(rf"n_packets=(\d+),.*in_port=\"?(?:port)?{a}\"?,.*dl_dst={macs[b - 1]} actions=output:",
                          network.ofctl(version, "dump-flows"))
        return found and int(found[1])

    wait_until(lambda: None not in (carried(1, 2), carried(2, 1)), lambda: network.ofctl(version, "dump-flows"))
    # Packets that came before are on their way to it: it has had them when it has had this one.
    assert network.pings(3, 4, 1) == 0
    controller.wait_for(f"packet-in 3 {macs[2]}")
    # Entries of the controller carry the rest, and count it.
    asked, before = controller.text.count(f"packet-in 1 {macs[0]} {macs[1]}"), carried(1, 2)
    assert 1 <= asked
    assert network.pings(1, 2, 20) == 20
    assert controller.text.count(f"packet-in 1 {macs[0]} {macs[1]}") == asked
    assert carried(1, 2) >= before + 20
    # The switch goes on without it, but learns nothing new.
    controller.kill()
    network.headrace.wait_for("disconnected")
    assert network.pings(1, 2) == 3
    assert network.pings(1, 3, 1) == 0
    again = learning_switch(network, version, 6653)
    again.wait_for("ready")
    assert network.pings(1, 3) == 3


def test_another_controller_or_none_takes_over(lab, tmp_path):
    network = Network(lab, 3, tmp_path, "CONTROLLER tcp:127.0.0.1:6653", "CONTROLLER tcp:127.0.0.1:6654", "FAIL standalone",
                      "MAX_BACKOFF 1s", "LOST_AFTER 1s")
    first, second = learning_switch(network, "1.3", 6653), learning_switch(network, "1.3", 6654)
    first.wait_for("ready")
    second.wait_for("ready")
    assert network.pings(1, 2) == 3
    first.kill()
    network.headrace.wait_for("disconnected")
    assert network.pings(1, 3) == 3
    second.kill()
    network.headrace.wait_for("disconnected", 2)
    network.ofctl("1.3", "del-flows")
    # No entry is left: now it is a bridge of its own.
    wait_until(lambda: network.pings(2, 3, 1) == 1, lambda: network.headrace.text)
    assert network.pings(2, 3) == 3


def faucet(tmp_path_factory):
    """The programs of Faucet, in an environment of their own; FAUCET_VENV names one that is there."""
    if (there := os.environ.get("FAUCET_VENV")) is not None:
        return pathlib.Path(there) / "bin"
    folder = tmp_path_factory.getbasetemp() / "faucet"
    try:
        subprocess.run(["/usr/bin/python3", "-m", "venv", "--system-site-packages", folder], check=True, capture_output=True, timeout=60)
        subprocess.run([folder / "bin" / "pip", "install", "-q", "--no-deps", "--no-build-isolation", *FAUCET], check=True,
                       capture_output=True, timeout=200)
    except (subprocess.SubprocessError, OSError) as error:
        pytest.skip(f"{FAUCET[0]} cannot be installed: {getattr(error, 'stderr', b'') or error}")
    return folder / "bin"


FAUCET_CONFIG = """
vlans:
  left:
    vid: 100
    faucet_vips: ["10.0.1.254/24"]
    faucet_mac: "0e:00:00:00:10:01"
  right:
    vid: 200
    faucet_vips: ["10.0.2.254/24"]
    faucet_mac: "0e:00:00:00:20:01"
routers:
  between:
    vlans: [left, right]
acls:
  guard:
    - rule: {dl_type: 0x800, nw_proto: 6, tcp_dst: 5999, actions: {allow: false}}
    - rule: {actions: {allow: true}}
dps:
  sw:
    dp_id: 1
    hardware: "Open vSwitch"
    interfaces:
      1: {native_vlan: left, acl_in: guard}
      2: {native_vlan: left}
      3: {native_vlan: right}
"""


def test_faucet_routes_between_vlans(lab, tmp_path, tmp_path_factory):
    netlab.need("iperf3", "nc")
    programs = faucet(tmp_path_factory)
    network = Network(lab, 3, tmp_path, "CONTROLLER tcp:127.0.0.1:6653", "MAX_BACKOFF 1s")
    addresses = ["10.0.1.1", "10.0.1.2", "10.0.2.1"]
    for host, address in zip(network.hosts, addresses):
        host.ip("addr", "flush", "dev", "eth0")
        host.address("eth0", f"{address}/24")
        host.ip("route", "add", "default", "via", address.rsplit(".", 1)[0] + ".254")
    (tmp_path / "faucet.yaml").write_text(FAUCET_CONFIG)
    settings = {"PATH": f"{programs}:{os.environ['PATH']}", "FAUCET_CONFIG": str(tmp_path / "faucet.yaml"),
                "FAUCET_LOG": str(tmp_path / "faucet.log"), "FAUCET_EXCEPTION_LOG": str(tmp_path / "exceptions.log")}
    controller = Process(network.switch, programs / "faucet", "--ryu-ofp-listen-host", "127.0.0.1", cwd=tmp_path,
                         env=os.environ | settings)

    def log():
        texts = [controller.text, network.headrace.text]
        texts += [path.read_text() for path in tmp_path.glob("*.log")]
        return "\n".join(texts)

    def ping(a, address, count=3):
        return network.hosts[a - 1].run("ping", "-n", "-c", count, "-i", "0.1", "-W", "1", address, check=False).returncode == 0

    wait_until(lambda: "Configuring DP" in log() or "Cold start configuring DP" in log(), log)
    wait_until(lambda: ping(1, addresses[1], 1), log)  # within a VLAN
    wait_until(lambda: ping(1, addresses[2], 1), log)  # between them
    assert ping(3, addresses[0])

    def iperf(port):
        server = Process(network.hosts[2], "iperf3", "-s", "-1", "-p", port)
        server.wait_for("listening")
        done = network.hosts[0].run("iperf3", "-c", addresses[2], "-p", port, "-t", "1", "--connect-timeout", "1500", check=False)
        server.kill()
        return done

    done = iperf(5201)
    assert done.returncode == 0, done.stdout + done.stderr + log()
    blocked = iperf(5999)  # the ACL
    assert blocked.returncode != 0, blocked.stdout
    assert "OFError" not in log()  # as Faucet logs what a switch refuses
