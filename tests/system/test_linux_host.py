"""Ports to the router's own host, KernelTap, KernelTun and FromHost, beside real Linux hosts in network namespaces."""

import collections
import os
import pathlib
import random
import re
import signal
import socket
import threading
import time

import netlab
import pytest
from linux_router import CONF, WAIT_S, Headrace, drops, hosts, lab, number, value, wire  # noqa: F401  (fixtures)


def start_router(router, tmp_path, *arguments):
    return Headrace(router, CONF / "ipv4-router-2ports.click", "DEV0=left", "DEV1=right", *arguments, cwd=tmp_path)


@pytest.fixture
def routed(hosts):
    left, router, right = hosts
    left.address("eth0", "10.0.0.2/24")
    left.ip("route", "add", "default", "via", "10.0.0.1")
    right.address("eth0", "10.0.1.2/24")
    right.ip("route", "add", "default", "via", "10.0.1.1")
    return left, router, right


def test_router_forwards_and_the_host_answers_at_its_addresses(routed, tmp_path):
    left, router, right = routed
    with start_router(router, tmp_path):
        left.run("ping", "-c", "2", "-i", "0.2", "-W", "5", "10.0.1.2")
        for address in ("10.0.0.1", "10.0.1.1"):  # also the one on the far side
            for host in (left, right):
                host.run("ping", "-c", "1", "-W", "5", address)
        router.run("ping", "-c", "1", "-W", "5", "10.0.1.2")
        # A server on the router, with large segments both ways.
        with router.inside():
            server = socket.create_server(("10.0.0.1", 7001))
        with left.inside():
            client = socket.create_connection(("10.0.0.1", 7001), timeout=10)
        connection, peer = server.accept()
        assert peer[0] == "10.0.0.2"
        data = random.Random(4).randbytes(100_000)
        threading.Thread(target=lambda: (connection.sendall(data), connection.close())).start()
        received = b""
        while part := client.recv(65536):
            received += part
        assert received == data
        client.close()
        server.close()


@pytest.mark.parametrize("method", ["AF_XDP", "AF_PACKET"])
def test_the_kernel_never_answers_by_the_routers_interface(routed, tmp_path, method):
    """A neighbor that asks while the router starts or ends must not learn the Ethernet address of the interface."""
    left, router, _ = routed
    text = (CONF / "ipv4-router-2ports.click").read_text()
    (tmp_path / "router.click").write_text(text.replace("FromDevice($dev,", f"FromDevice($dev, METHOD {method},"))
    asks = bytes.fromhex("ffffffffffff0200000000990806" "0001080006040001" "0200000000990a000063" "0000000000000a000001")
    answers, stop = [], threading.Event()

    def ask(port):
        while not stop.is_set():
            port.send(asks)
            while (frame := port.receive(0.0002)) is not None:
                if frame[12:14] == b"\x08\x06" and frame[20:22] == b"\x00\x02":
                    answers.append(frame[22:28])

    with left.port("eth0") as port:
        thread = threading.Thread(target=ask, args=[port])
        thread.start()
        try:
            for _ in range(3):
                with Headrace(router, "router.click", "DEV0=left", "DEV1=right", cwd=tmp_path):
                    time.sleep(0.1)
        finally:
            stop.set()
            thread.join()
    assert answers and set(answers) == {bytes.fromhex("020000000001")}, collections.Counter(map(bytes.hex, answers))


def test_tcpdump_on_the_twin_shows_the_hosts_traffic(routed, tmp_path):
    netlab.need("tcpdump")
    left, router, _ = routed
    with start_router(router, tmp_path):
        dump = router.start("tcpdump", "-l", "-n", "-i", "twin0", "-c", "2", "icmp")
        dump.stderr.readline()
        for line in dump.stderr:
            if "listening on" in line:
                break
        left.run("ping", "-c", "1", "-W", "5", "10.0.0.1")
        left.run("ping", "-c", "1", "-W", "5", "10.0.1.2")  # passes by, and is not the host's
        text, _ = dump.communicate(timeout=WAIT_S)
    assert re.search(r"10\.0\.0\.2 > 10\.0\.0\.1: ICMP echo request", text)
    assert re.search(r"10\.0\.0\.1 > 10\.0\.0\.2: ICMP echo reply", text)
    assert "10.0.1.2" not in text


def test_a_twin_that_is_deleted_is_made_again(routed, tmp_path):
    left, router, _ = routed
    with start_router(router, tmp_path) as headrace:
        left.run("ping", "-c", "1", "-W", "5", "10.0.0.1")
        router.ip("link", "del", "twin0")
        headrace.wait_for("port0/host :: KernelTap: twin0 is gone; making it again")
        headrace.wait_for("port0/host :: KernelTap: twin0 is there again")
        left.run("ping", "-c", "1", "-W", "5", "10.0.0.1")


def test_host_devices_stay_when_a_configuration_takes_over(routed, tmp_path):
    left, router, right = routed
    (tmp_path / "router.click").write_text((CONF / "ipv4-router-2ports.click").read_text())
    with Headrace(router, "router.click", "DEV0=left", "DEV1=right", cwd=tmp_path) as headrace:
        left.run("ping", "-c", "1", "-W", "5", "10.0.0.1")
        index = router.ip("-o", "link", "show", "twin0").split(":")[0]
        ping = left.start("ping", "-c", "10", "-i", "0.2", "-W", "10", "10.0.0.1")
        for _ in range(3):
            time.sleep(0.4)
            headrace.signal(signal.SIGHUP)
        text, _ = ping.communicate(timeout=WAIT_S)
        assert " 10 received, 0% packet loss" in text, text
        assert router.ip("-o", "link", "show", "twin0").split(":")[0] == index
        left.run("ping", "-c", "1", "-W", "5", "10.0.1.2")


def test_kernel_tun_and_from_host_to_host(lab, tmp_path):
    router = lab.host("router")
    text = """
    tun :: KernelTun(10.8.0.1/24) -> CheckIPHeader -> ICMPPingResponder -> tun;
    FromHost(fake0, 10.9.0.1/24, ETHER 2:0:0:0:9:1) -> c :: Classifier(12/0806, 12/0800);
    c[0] -> ARPResponder(0.0.0.0/0 2:0:0:0:9:2) -> h :: ToHost(fake0);
    c[1] -> Strip(14) -> CheckIPHeader -> ICMPPingResponder -> EtherEncap(0x0800, 2:0:0:0:9:2, 2:0:0:0:9:1) -> h;
    """
    with wire(router, tmp_path, "-r", "h.drops", "-r", "tun.dev_name", text=text) as headrace:
        router.run("ping", "-c", "2", "-i", "0.2", "-W", "5", "10.8.0.77")
        router.run("ping", "-c", "2", "-i", "0.2", "-W", "5", "10.9.0.77")
        text = headrace.stop()
    assert value(text, "h.drops") == "0" and value(text, "tun.dev_name") == "tun0"
    assert "fake0" not in router.ip("link") and "tun0" not in router.ip("link")


def test_a_tap_has_a_line_for_each_direction(hosts, tmp_path):
    _, router, _ = hosts
    text = "s :: InfiniteSource(LIMIT 40, LENGTH 60) -> k :: KernelTap(10.9.0.1/24) -> c :: Counter -> Discard;"
    with wire(router, tmp_path, "-r", "c.count", "-r", "k.sent", text=text) as headrace:
        time.sleep(0.5)
        text = headrace.stop()
    lines = {way: number(n) for way, n in re.findall(r"^(in|out) +k +([\d,]+) ", text, re.M)}
    assert lines["in"] == int(value(text, "c.count")), text
    assert lines["out"] == int(value(text, "k.sent")), text
    assert lines["out"] + sum(n for (name, _), n in drops(text).items() if name == "k") == 40, text


def test_idle_router_sleeps(hosts, tmp_path):
    _, router, _ = hosts
    with start_router(router, tmp_path) as headrace:
        def cpu_seconds():
            fields = pathlib.Path(f"/proc/{headrace.pid}/stat").read_text().rpartition(") ")[2].split()
            return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

        time.sleep(0.5)
        before = cpu_seconds()
        time.sleep(1)
        assert cpu_seconds() - before < 0.05
