"""conf/nat.click between two network namespaces: a client of Linux inside, a server outside."""

import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import time

import netlab
import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
BINARY = pathlib.Path(os.environ.get("HEADRACE", ROOT / "build" / "headrace"))
PEER = pathlib.Path(__file__).resolve().parent / "nat_peer.py"

CLIENT, GATEWAY, SERVER = (f"hrnat-{who}-{os.getpid()}" for who in ("in", "gw", "out"))
LAN_ADDRESS, CLIENT_ADDRESS = "10.0.0.1", "10.0.0.2"
WAN_ADDRESS, SERVER_ADDRESS = "203.0.113.2", "203.0.113.1"
LAN_ETHER = "02:00:00:00:00:01"  # the default in conf/nat.click
MTU = 1400


def sh(command):
    done = subprocess.run(command, shell=True, text=True, capture_output=True)
    assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
    return done.stdout


def inside(namespace, *command):
    return ["ip", "netns", "exec", namespace, *map(str, command)]


def start(namespace, *command, **options):
    return subprocess.Popen(inside(namespace, *command), text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **options)


def run(namespace, *command, timeout=60):
    done = subprocess.run(inside(namespace, *command), text=True, capture_output=True, timeout=timeout)
    return done.returncode, done.stdout + done.stderr


def peer(command, *arguments, timeout=60):
    status, output = run(CLIENT, sys.executable, PEER, command, *arguments, timeout=timeout)
    assert status == 0, output
    return output.split()


def stop(process):
    process.send_signal(signal.SIGTERM)
    output, _ = process.communicate(timeout=30)
    return output


@pytest.fixture(scope="module")
def network():
    """Client, gateway and server; the gateway's interfaces have no addresses."""
    if os.geteuid() != 0:
        pytest.skip("network namespaces need root")
    for program in ("ip", "ethtool", "ping"):
        if not shutil.which(program):
            pytest.skip(f"{program} is not installed")
    if not BINARY.exists():
        pytest.skip(f"{BINARY} is not built")
    if subprocess.run(["ip", "netns", "add", CLIENT], capture_output=True).returncode != 0:
        pytest.skip("this system lets nobody make network namespaces")
    server = None
    try:
        for namespace in (GATEWAY, SERVER):
            sh(f"ip netns add {namespace}")
        for namespace in (CLIENT, GATEWAY, SERVER):
            sh(f"ip netns exec {namespace} sysctl -qw net.ipv6.conf.all.disable_ipv6=1 net.ipv6.conf.default.disable_ipv6=1")
        sh(f"ip -n {GATEWAY} link add lan type veth peer name eth netns {CLIENT}")
        sh(f"ip -n {GATEWAY} link add wan type veth peer name eth netns {SERVER}")
        for namespace, device in ((CLIENT, "eth"), (GATEWAY, "lan"), (GATEWAY, "wan"), (SERVER, "eth")):
            sh(f"ip netns exec {namespace} ethtool -K {device} tx off tso off gso off gro off")
            sh(f"ip -n {namespace} link set {device} up")
        sh(f"ip -n {CLIENT} addr add {CLIENT_ADDRESS}/8 dev eth")
        sh(f"ip -n {CLIENT} route add default via {LAN_ADDRESS}")
        sh(f"ip -n {SERVER} addr add {SERVER_ADDRESS}/24 dev eth")
        # Errors would be rationed by the server otherwise.
        sh(f"ip netns exec {SERVER} sysctl -qw net.ipv4.icmp_ratelimit=0")
        server = start(SERVER, sys.executable, PEER, "serve", SERVER_ADDRESS)
        assert server.stdout.readline() == "ready\n"
        yield
    finally:
        if server:
            stop(server)
        for namespace in (CLIENT, GATEWAY, SERVER):
            subprocess.run(["ip", "netns", "del", namespace], capture_output=True)


def start_gateway(capacity, *reads):
    arguments = ["run", "-q", ROOT / "conf" / "nat.click", "LAN=lan", "WAN=wan", f"LAN_ADDR={LAN_ADDRESS}/8",
                 f"WAN_ADDR={WAN_ADDRESS}/24", f"GATEWAY={SERVER_ADDRESS}", f"MTU={MTU}", f"CAPACITY={capacity}"]
    # AddressSanitizer would keep up to 256 MiB of freed memory resident.
    sanitizer = f"{os.environ.get('ASAN_OPTIONS', '')}:quarantine_size_mb=1:thread_local_quarantine_size_kb=64"
    process = start(GATEWAY, BINARY, *arguments, *(word for read in reads for word in ("-r", read)),
                    env=os.environ | {"ASAN_OPTIONS": sanitizer.strip(":")})
    for _ in range(100):
        if process.poll() is not None:
            pytest.fail(process.stdout.read())
        if run(CLIENT, "ping", "-c", "1", "-W", "1", LAN_ADDRESS)[0] == 0:
            return process
    pytest.fail("the gateway does not answer pings")


def test_flood_stays_in_the_tables_bound(network):
    """200,000 hosts open connections; the table keeps its size, memory does not grow, and a busy connection lives on.

    It comes first, for it has a gateway of its own. Memory is looked at behind a first flood: that one fills the table and
    every queue on the way, whose buffers are resident from then on, of a slow build more than of a fast one."""
    capacity, hosts = 3000, 200_000
    process = start_gateway(capacity, "rw.size", "rw.mapping_failures", "lan/FromDevice@1.count")
    talk = start(CLIENT, sys.executable, PEER, "keep", SERVER_ADDRESS, stdin=subprocess.PIPE)
    flooding = None
    try:
        assert talk.stdout.readline() == "ready\n"
        assert peer("many", SERVER_ADDRESS, 50)[0] == "50"
        peer("flood", "eth", LAN_ETHER, SERVER_ADDRESS, hosts // 2)
        before = netlab.memory_kib(process.pid)
        flooding = start(CLIENT, sys.executable, PEER, "flood", "eth", LAN_ETHER, SERVER_ADDRESS, hosts)
        exchanges = 0
        while flooding.poll() is None or exchanges < 5:
            talk.stdin.write(f"line {exchanges}\n")
            talk.stdin.flush()
            assert talk.stdout.readline() == "same\n"
            exchanges += 1
            time.sleep(0.1)
        assert flooding.returncode == 0, flooding.stdout.read()
        grown = netlab.memory_kib(process.pid) - before
    finally:
        for helper in (talk, flooding):
            if helper and helper.poll() is None:
                helper.kill()
        output = stop(process)
    assert process.returncode == 0, output
    values = {name: int(value) for name, value in re.findall(r"^([\w/@.]+): (\d+)$", output, re.M)}
    assert values["lan/FromDevice@1.count"] > hosts / 4, f"most of the flood did not arrive\n{output}"
    assert values["rw.size"] == capacity, output
    assert values["rw.mapping_failures"] > capacity, output
    # 21 bytes for each host: whatever is kept of a connection is larger.
    assert grown < 4096, f"{grown} KiB more"


@pytest.fixture(scope="module")
def gateway(network):
    process = start_gateway(65536)
    yield process
    output = stop(process)
    assert process.returncode == 0, output


def test_ping_goes_through(gateway):
    status, output = run(CLIENT, "ping", "-c", "3", "-i", "0.2", "-W", "5", SERVER_ADDRESS)
    assert status == 0 and " 0% packet loss" in output, output
    assert " ttl=63 " in output, output


def test_the_server_can_ping_the_gateway_but_not_the_client(gateway):
    assert run(SERVER, "ping", "-c", "1", "-W", "5", WAN_ADDRESS)[0] == 0
    sh(f"ip -n {SERVER} route replace 10.0.0.0/8 via {WAN_ADDRESS}")
    try:
        assert run(SERVER, "ping", "-c", "1", "-W", "1", CLIENT_ADDRESS)[0] != 0
    finally:
        sh(f"ip -n {SERVER} route del 10.0.0.0/8")


def test_tcp_bytes_are_the_same(gateway):
    assert peer("tcp", SERVER_ADDRESS, 3_000_000)[0] == WAN_ADDRESS


def test_many_connections_at_the_same_time(gateway):
    count, *seen = peer("many", SERVER_ADDRESS, 500)
    assert int(count) == 500, "the server saw the same address and port twice"
    assert seen == [WAN_ADDRESS]


@pytest.mark.parametrize("size", [1, 1000, 4000], ids=["short", "one packet", "fragments"])
def test_udp_comes_back(gateway, size):
    assert peer("udp", SERVER_ADDRESS, size)[0] == WAN_ADDRESS


def test_port_unreachable_reaches_the_socket(gateway):
    assert peer("refused", SERVER_ADDRESS) == ["refused"]


def test_errors_of_the_gateway(gateway):
    _, output = run(CLIENT, "ping", "-c", "1", "-W", "2", "-t", "1", SERVER_ADDRESS)
    assert re.search(rf"^From {LAN_ADDRESS}[ :].*Time to live exceeded", output, re.M), output
    _, output = run(CLIENT, "ping", "-c", "1", "-W", "2", "-M", "do", "-s", MTU, SERVER_ADDRESS)
    assert re.search(rf"[Ff]rag needed and DF set \(mtu = {MTU}\)|message too long, mtu[=:] ?{MTU}", output), output


def test_errors_from_outside_about_pings(gateway):
    """A router beyond the server is missing: the server says so about a rewritten ping."""
    sh(f"ip -n {SERVER} route add unreachable 198.51.100.0/24")
    sh(f"ip netns exec {SERVER} sysctl -qw net.ipv4.ip_forward=1")
    _, output = run(CLIENT, "ping", "-c", "1", "-W", "2", "198.51.100.7")
    assert re.search(rf"^From {SERVER_ADDRESS}[ :].*Destination Host Unreachable", output, re.M), output
