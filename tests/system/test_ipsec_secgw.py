"""Two IPsecGateways with the files of DPDK's ipsec-secgw example, hosts of Linux behind them, IPv4 and IPv6; and what
operators get wrong in such files."""

import lzma
import os
import pathlib
import re
import socket
import time

import netlab
import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
BINARY = pathlib.Path(os.environ.get("HEADRACE", ROOT / "build" / "headrace"))
FILES = ROOT.parent / "shared" / "data" / "esp" / "dpdk-ipsec-secgw-ep0-ep1.cfg.xz"

# By the files, ep0 has these hosts at its port 2, and ep1 those. The wire is port 0 of both.
LEFT, RIGHT = "192.168.115.2", "192.168.105.2"  # a tunnel of AES-CBC with SHA-1 each way, by IPv4
LEFT_TRANSPORT, RIGHT_TRANSPORT = "192.168.185.2", "192.168.175.2"  # transport mode
LEFT6, RIGHT6 = "fd00::aaaa:aaaa:0:2", "::aaaa:aaaa:0:2"  # a tunnel by IPv6
OUTER6 = ["1111:1111:1111:1111:1111:1111:1111:5555", "2222:2222:2222:2222:2222:2222:2222:5555"]


@pytest.fixture(scope="module")
def files():
    """ep0.cfg and ep1.cfg. Some of their IPv6 addresses are multicast, which no host has (RFC 4291, 2.7): they are made
    unicast here."""
    if not FILES.exists():
        pytest.skip(f"{FILES} is not there")
    text = lzma.decompress(FILES.read_bytes()).decode()
    at = text.rindex("#" * 75, 0, text.index("IPSEC-SECGW Endpoint1"))
    return [part.replace("ffff:", "fd00:") for part in (text[:at], text[at:])]


class Pair:
    """left -- (port 2) gateway (port 0) -- wire -- (port 0) gateway (port 2) -- right. The gateways' hosts have a tun
    device each."""

    def __init__(self, lab, files, folder):
        self.folder, self.files = folder, files
        self.ends = [lab.host("left"), lab.host("right")]
        self.gateways = [lab.host("gw0"), lab.host("gw1")]
        lab.cable(self.gateways[0], "wan", self.gateways[1], "wan")
        inside = [(LEFT, LEFT_TRANSPORT, LEFT6), (RIGHT, RIGHT_TRANSPORT, RIGHT6)]
        for i, (end, gateway) in enumerate(zip(self.ends, self.gateways)):
            lab.cable(end, "eth0", gateway, "lan")
            end.sysctl("net.ipv6.conf.eth0.disable_ipv6", 0)
            for address in inside[i][:2]:
                end.address("eth0", f"{address}/24")
            end.ip("addr", "add", f"{inside[i][2]}/96", "dev", "eth0", "nodad")
            end.ip("route", "add", "default", "via", self.router(i), "src", inside[i][0])
            end.ip("-6", "route", "add", "default", "via", inside[i][2][:-1] + "1")
            # So that answers and questions of transport mode have the addresses of its policies.
            end.ip("route", "add", f"{inside[1 - i][1]}/32", "via", self.router(i), "src", inside[i][1])

    def router(self, i):
        return ("192.168.115.1", "192.168.105.1")[i]

    def start(self, i, *arguments):
        end, gateway = self.ends[i], self.gateways[i]
        (self.folder / f"ep{i}.cfg").write_text(self.files[i])
        neighbors = [f"02:00:00:00:0{1 - i}:00", "02:00:00:00:ff:01", end.mac("eth0"), "02:00:00:00:ff:03"]
        (self.folder / f"neigh{i}.cfg").write_text("".join(f"neigh port {n} {mac}\n" for n, mac in enumerate(neighbors)))
        own6 = (LEFT6, RIGHT6)[i][:-1] + "1"
        (self.folder / f"gw{i}.click").write_text(f"""
            gw :: IPsecGateway(CONFIG ep{i}.cfg, CONFIG neigh{i}.cfg,
                PORT unprotected 02:00:00:00:0{i}:00 172.16.{i + 1}.5/24 {OUTER6[i]}/64,
                PORT unprotected 02:00:00:00:0{i}:01,
                PORT protected 02:00:00:00:0{i}:02 {self.router(i)}/24 {own6}/96,
                PORT protected 02:00:00:00:0{i}:03);
            FromDevice(wan, SNIFFER false, PROMISC true) -> [0] gw [0] -> Queue(4096) -> ToDevice(wan);
            FromDevice(lan, SNIFFER false, PROMISC true) -> [2] gw [2] -> Queue(4096) -> ToDevice(lan);
            Idle -> [1] gw [1] -> Discard;
            Idle -> [3] gw [3] -> Discard;
            gw [4] -> host :: KernelTun(172.16.{i + 1}.5/32, DEVNAME own) -> [4] gw;
            """)
        process = gateway.start(BINARY, "run", self.folder / f"gw{i}.click", *(arguments or ("--mode", "cpu", "-w", "1")),
                                *([] if "--compile" in arguments else ["--compile", "off"]), "--read", "gw/db.counts",
                                cwd=self.folder)
        for _ in range(100):
            if process.poll() is not None:
                pytest.fail("".join(process.communicate()))
            if "own" in gateway.run("ip", "link").stdout and end.run(
                    "ping", "-c1", "-W1", "-t1", (RIGHT, LEFT)[i], check=False).stdout.find("exceeded") > 0:
                break
        else:
            pytest.fail(f"gateway {i} does not answer")
        gateway.ip("route", "add", f"172.16.{2 - i}.0/24", "dev", "own")
        return process


@pytest.fixture
def pair(files, tmp_path):
    netlab.need("iperf3", "ping")
    if not BINARY.exists():
        pytest.skip(f"{BINARY} is not built")
    with netlab.Lab() as lab:
        yield Pair(lab, files, tmp_path)


def stop(process):
    process.send_signal(2)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0, out + err
    return out + err


def counts(printed):
    """(direction, SPI): what an association has done."""
    return {(direction, int(spi)): {name: int(n) for n, name in re.findall(r"(\d+) ([^,]+)", line)}
            for direction, spi, line in re.findall(r"^(?:gw/db\.counts: )?(in|out) (\d+)[^:\n]*(?::[0-9a-f:]*)*: (.*)$", printed, re.M)}


def ping(host, *arguments):
    return host.run("ping", *arguments, check=False, timeout=60).stdout


@pytest.mark.parametrize("way", [
    ["--mode", "cpu", "-w", "1"], ["--mode", "cpu", "-w", "1", "--compile", "wait"], ["--mode", "cpu", "-w", "4"],
    ["--mode", "device", "--backend", "reference", "-w", "1"]], ids=["cpu", "compiled", "four-workers", "device"])
def test_real_traffic(pair, way):
    gateways = [pair.start(0, *way), pair.start(1, *way)]
    left, right = pair.ends
    for source, address in (LEFT, RIGHT), (LEFT_TRANSPORT, RIGHT_TRANSPORT), (LEFT6, RIGHT6):
        left.ping(address, 5, "-s1000", "-I", source)
    right.ping(LEFT6, 5, "-I", RIGHT6)
    left.ping(RIGHT, 3, "-s3000")  # fragments

    # Who sends too much learns what goes through; whose time ends learns where, also beyond the tunnel.
    assert "mtu = 1395" in ping(left, "-c2", "-i0.2", "-W1", "-s1450", "-M", "do", RIGHT)
    assert "mtu=1395" in ping(left, "-6", "-c2", "-i0.2", "-W1", "-s1450", "-M", "do", RIGHT6)
    for ttl, router, router6 in (1, "192.168.115.1", LEFT6[:-1] + "1"), (2, "192.168.105.1", RIGHT6[:-1] + "1"):
        assert re.search(rf"From {router} .*Time to live exceeded", ping(left, "-c1", "-W2", f"-t{ttl}", RIGHT))
        shown = ping(left, "-6", "-c1", "-W2", f"-t{ttl}", RIGHT6)
        assert re.search(r"From (\S+) .*Time exceeded", shown), shown
        assert socket.inet_pton(socket.AF_INET6, re.search(r"From (\S+) ", shown)[1]) == socket.inet_pton(
            socket.AF_INET6, router6)

    for address in RIGHT, RIGHT6:
        server = right.start("iperf3", "-s", "-1", "-B", address, "-p", "5201")
        right.listens(5201, server)
        done = left.run("iperf3", "-c", address, "-t", "2", "-p", "5201", timeout=40)
        assert "receiver" in done.stdout
        server.wait(10)

    texts = [stop(gateway) for gateway in gateways]
    printed = [counts(text) for text in texts]
    for spi in 5, 10, 25:  # and back: 105, 110, 125
        for sender, receiver, number in (0, 1, spi), (1, 0, spi + 100):
            sent, came = printed[sender][("out", number)], printed[receiver][("in", number)]
            # Nothing is replayed, too old or otherwise wrong. Queues may overflow where TCP is faster than the link.
            assert came.keys() == sent.keys() == {"packets", "bytes"}, texts
            assert 5 <= came["packets"] <= sent["packets"], texts
            assert spi != 10 or came == sent, texts


def test_ike_reaches_the_host_and_leaves_it(pair):
    """The policies of the files let nothing between the gateways pass, but IKE is not theirs. Its messages with certificates
    are longer than a link's packets."""
    gateways = [pair.start(0), pair.start(1)]
    sockets = []
    for i, gateway in enumerate(pair.gateways):
        with gateway.inside():
            for port in 500, 4500, 7000:
                sockets.append(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
                sockets[-1].bind((f"172.16.{i + 1}.5", port))
                sockets[-1].settimeout(1)
    for number, port in enumerate((500, 4500, 7000)):
        here, there = sockets[number], sockets[number + 3]
        # On port 4500 IKE begins with four bytes of zeros, which no SPI is (RFC 3948, 2.2).
        for length in 100, 2000, 5000:
            question, answer = (bytes(4) + bytes([word]) * length for word in (1, 2))
            here.sendto(question, ("172.16.2.5", port))
            if port == 7000:
                with pytest.raises(TimeoutError):
                    there.recv(10000)
                break
            assert there.recvfrom(10000) == (question, ("172.16.1.5", port))
            there.sendto(answer, ("172.16.1.5", port))
            assert here.recv(10000) == answer
    for s in sockets:
        s.close()
    for gateway in gateways:
        stop(gateway)


def test_the_configuration_that_comes_with_the_program(tmp_path):
    """conf/ipsec-secgw.click with the files of conf/ipsec-pair, which name the hosts' Ethernet addresses."""
    netlab.need("ping")
    if not BINARY.exists():
        pytest.skip(f"{BINARY} is not built")
    with netlab.Lab() as lab:
        ends, gateways = [lab.host("left"), lab.host("right")], [lab.host("gw1"), lab.host("gw2")]
        lab.cable(gateways[0], "wan", gateways[1], "wan")
        running = []
        for n, (end, gateway, name) in enumerate(zip(ends, gateways, ("left", "right")), 1):
            lab.cable(end, "eth0", gateway, "lan")
            end.ip("link", "set", "eth0", "address", f"02:00:00:00:0{n}:10")
            for address in f"10.{n}.0.2", f"10.{n}.1.2":
                end.address("eth0", f"{address}/16")
            end.ip("route", "add", "default", "via", f"10.{n}.0.1")
            end.sysctl("net.ipv6.conf.eth0.disable_ipv6", 0)
            end.ip("addr", "add", f"2001:db8:{n}::2/48", "dev", "eth0", "nodad")
            end.ip("-6", "route", "add", "default", "via", f"2001:db8:{n}::1")
            running.append(gateway.start(
                BINARY, "run", ROOT / "conf" / "ipsec-secgw.click", f"CONFIG={ROOT}/conf/ipsec-pair/{name}.cfg", "WAN=wan", "LAN=lan",
                f"WAN_ADDR=192.0.2.{n}/24", f"LAN_ADDR=10.{n}.0.1/16 2001:db8:{n}::1/48", f"WAN_ETH=02:00:00:00:0{n}:02",
                f"LAN_ETH=02:00:00:00:0{n}:01", "--mode", "cpu", "-w", "1", "--compile", "off", "--read", "gw/db.counts"))
        for end, n in zip(ends, (1, 2)):
            assert any("1 received" in ping(end, "-c1", "-W1", f"10.{n}.0.1") for _ in range(30)), n
        for address in "10.2.0.2", "10.2.1.2", "10.2.0.1":
            assert "3 received" in ping(ends[0], "-c3", "-i0.05", address), address
        for address in "10.1.0.1", "10.2.0.1":  # also in fragments
            assert "2 received" in ping(ends[0], "-c2", "-i0.05", "-s4000", address), address
        for address in "2001:db8:1::1", "2001:db8:2::1", "2001:db8:2::2":
            assert "3 received" in ping(ends[0], "-6", "-c3", "-i0.05", address), address
        printed = [counts(stop(gateway)) for gateway in running]
    # The far gateway's own address is in the first network.
    assert printed[0]["out", 1001]["packets"] == printed[1]["in", 1001]["packets"] >= 6
    assert printed[0]["out", 1002]["packets"] == printed[0]["in", 2002]["packets"] == 3


GATEWAY = """gw :: IPsecGateway(CONFIG gw.cfg, PORT unprotected 02:00:00:00:00:01 192.0.2.1/24,
    PORT protected 02:00:00:00:00:02 10.1.0.1/16{more});
Idle -> [0] gw [0] -> Discard; Idle -> [1] gw [1] -> Discard;
"""
CONFIG = """sp ipv4 out esp bypass pri 1 dst 0.0.0.0/0
rt ipv4 dst 0.0.0.0/0 port 0
rt ipv4 dst 10.1.0.0/16 port 1
neigh port 0 02:00:00:00:01:00
neigh port 1 02:00:00:00:01:01
"""


def check(folder, config=CONFIG, gateway=GATEWAY, more=""):
    if not BINARY.exists():
        pytest.skip(f"{BINARY} is not built")
    (folder / "gw.cfg").write_text(config)
    (folder / "gw.click").write_text(gateway.format(more=more))
    return netlab.call(BINARY, "check", "-q", "gw.click", cwd=folder, check=False).stderr


def test_a_good_file(tmp_path):
    assert check(tmp_path) == ""


@pytest.mark.parametrize("before, after, error", [
    ("neigh port 1 02:00:00:00:01:01\n", "", "gw.cfg:3: '1': port 1 lacks a line 'neigh port 1 ADDRESS'"),
    ("/16 port 1", "/16 port 2", "gw.cfg:3: '2': expected a port from 0 to 1, those that are connected"),
    ("/16 port 1", "/16 port one", "gw.cfg:3: 'one': expected the number of a port"),
    ("neigh port 1 ", "neigh port 7 02:00:00:00:01:07\nneigh port 1 ",
     "gw.cfg:5: '7': expected a port from 0 to 1, those that are connected"),
    ("neigh port 1 ", "neigh port 0 02:00:00:00:01:00\nneigh port 1 ",
     "gw.cfg:5: '0': line 4 has a neighbor of this port already"),
    ("02:00:00:00:01:01", "02:00:00:00:01", "gw.cfg:5: '02:00:00:00:01': expected an Ethernet address"),
    ("02:00:00:00:01:01", "03:00:00:00:01:01",
     "gw.cfg:5: '03:00:00:00:01:01': expected the Ethernet address of a neighbor, not of a group or of nobody"),
    ("dst 10.1.0.0/16", "dst 0.0.0.0/0", "gw.cfg:3: '0.0.0.0/0': line 2 has a route of this prefix already"),
], ids=["no-neigh", "port-beyond", "port-word", "neigh-beyond", "neigh-twice", "mac-short", "mac-group", "route-twice"])
def test_mistakes_in_the_file(tmp_path, before, after, error):
    assert before in CONFIG
    assert check(tmp_path, CONFIG.replace(before, after)).splitlines() == [error, "Router could not be initialized!"]


@pytest.mark.parametrize("change, errors", [
    (("PORT protected", "PORT inside"), ["PORT: 'inside': expected protected or unprotected"]),
    (("10.1.0.1/16", "10.1.0.1.1"), ["PORT: '10.1.0.1.1': expected an Ethernet, IPv4 or IPv6 address"]),
    (("02:00:00:00:00:02 ", ""), ["PORT: 'protected 10.1.0.1/16': expected the port's own Ethernet address as well"]),
    (("PORT unprotected", "PORT protected"), ["PORT: expected a protected port and an unprotected one at least"]),
    (("Idle -> [1] gw [1] -> Discard;", ""),
     ["expected 2 inputs and outputs, one for each PORT, or one more for the host; 1 and 1 are connected"]),
    (("{more}", ", MTU 1000, TUNNEL_MTU x"), ["MTU: out of range, bound 1280", "TUNNEL_MTU: expected an integer"]),
    (("{more}", ", MTU 1400, TUNNEL_MTU 1500"), ["TUNNEL_MTU: expected at most MTU 1400"]),
    (("CONFIG gw.cfg, ", ""), ["missing mandatory CONFIG argument"]),
], ids=["side", "address", "no-mac", "no-outside", "unconnected", "mtu", "tunnel-mtu", "no-config"])
def test_mistakes_in_the_configuration(tmp_path, change, errors):
    """They name the line of the configuration and the element, as everywhere."""
    assert change[0] in GATEWAY
    shown = check(tmp_path, gateway=GATEWAY.replace(*change)).splitlines()
    assert shown[0] == "gw.click:1: While configuring 'gw :: IPsecGateway':", shown
    assert {f"  {error}" for error in errors} <= set(shown)


def test_encapsulation_ports_are_for_the_lookup(tmp_path):
    assert check(tmp_path, more=", ENCAP_PORTS 4500 4501") == ""
    assert "IPsecESPLookup(db, ENCAP_PORTS 4501)" in netlab.call(
        BINARY, "flatten", "-e", GATEWAY.format(more=", ENCAP_PORTS 4501"), cwd=tmp_path).stdout


def test_further_arguments_are_for_the_database(tmp_path):
    shown = check(tmp_path, more=", CAPACITY 0")
    assert shown.splitlines()[0] == "gw.click:1: While configuring 'gw/db :: IPsecDatabase':", shown
    assert "CAPACITY" in shown
