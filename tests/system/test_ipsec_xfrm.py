"""An IPsecGateway that takes its associations and policies from the kernel (XFRM), as a daemon or `ip xfrm` puts them there,
against a gateway of Linux, with hosts of Linux behind both. The configurations are those of docs/ipsec.md."""

import os
import pathlib
import re
import shutil
import socket
import subprocess
import time

import netlab
import pytest
import uml

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
BINARY = pathlib.Path(os.environ.get("HEADRACE", ROOT / "build" / "headrace"))
MODULES = ["xfrm_user", "esp4", "esp6", "veth", "tun", "af_packet"]
GCM = ["aead", "rfc4106(gcm(aes))", "0x{:02x}" + "0102030405060708090a0b0c0d0e0f10111213", "128"]


def kernel_has_esp(*algorithm):
    """With GCM, or with this algorithm. Tried in a namespace of its own. After it, the kernel has loaded the modules."""
    name = f"hr-{os.getpid()}-esp"
    subprocess.run(["ip", "netns", "add", name], check=True)
    try:
        key = algorithm or [word.format(0) for word in GCM]
        added = subprocess.run(["ip", "-n", name, "xfrm", "state", "add", "src", "192.0.2.1", "dst", "192.0.2.2", "proto", "esp",
                                "spi", "0x1000", "mode", "tunnel", *key], capture_output=True, text=True, check=False)
        return added.returncode == 0
    finally:
        subprocess.run(["ip", "netns", "del", name], check=True)


@pytest.fixture
def elsewhere(request):
    """True if the test has run in another kernel."""
    netlab.need("ping", "iperf3")
    if not BINARY.exists():
        pytest.skip(f"{BINARY} is not built")
    if not uml.inside() and kernel_has_esp():
        return False
    return uml.test_runs_there(request, MODULES)


def from_page(name):
    """A file of the page's section about strongSwan."""
    page = (ROOT / "docs" / "ipsec.md").read_text()
    return re.search(rf"^```\w+ file={re.escape(name)}\n(.*?)^```", page, re.M | re.S)[1]


def replaced(text, *changes):
    for before, after in changes:
        assert before in text, before
        text = text.replace(before, after)
    return text


class Site:
    """left -- (eth1) gw, our gateway, and its host (eth0) -- (wan) peer, a gateway of Linux (lan) -- right."""

    def __init__(self, lab, folder):
        self.folder = folder
        self.left, self.gw, self.peer, self.right = (lab.host(name) for name in ("left", "gw", "peer", "right"))
        lab.cable(self.left, "eth0", self.gw, "eth1")
        lab.cable(self.gw, "eth0", self.peer, "wan")
        lab.cable(self.peer, "lan", self.right, "eth0")
        self.left.address("eth0", "10.1.0.2/16")
        self.left.ip("route", "add", "default", "via", "10.1.0.1")
        self.peer.address("wan", "192.0.2.2/24")
        self.peer.address("lan", "10.2.0.1/16")
        self.peer.sysctl("net.ipv4.ip_forward", 1)
        # Whatever is not protected comes back, if at all, in clear.
        self.peer.ip("route", "add", "10.1.0.0/16", "via", "192.0.2.1")
        self.right.address("eth0", "10.2.0.2/16")
        self.right.ip("route", "add", "default", "via", "10.2.0.1")
        self.socket = folder / "gw.sock"

    def start(self, *changes):
        (self.folder / "keyed.cfg").write_text(replaced(from_page("keyed.cfg"), ("02:00:00:00:02:02", self.peer.mac("wan")),
                                                        ("02:00:00:00:01:10", self.left.mac("eth0"))))
        (self.folder / "keyed.click").write_text(replaced(from_page("keyed.click"), *changes))
        process = self.gw.start(BINARY, "run", "keyed.click", "--mode", "cpu", "-w", "1", "--compile", "off", "-u", self.socket,
                                cwd=self.folder)
        for _ in range(900):
            if process.poll() is not None:
                pytest.fail("".join(process.communicate()))
            if self.socket.exists() and "ipsec-host" in self.gw.run("ip", "link").stdout:
                break
            time.sleep(0.1)
        else:
            links = self.gw.run("ip", "link").stdout
            process.send_signal(3)
            pytest.fail(f"the gateway does not start: {self.socket.exists()}\n{links}" + "".join(process.communicate(timeout=20)))
        for line in from_page("host.sh").splitlines():
            self.gw.run("sh", "-c", line)
        return process

    def answer(self, handler):
        """All that comes back, an error too."""
        return self.gw.run("sh", "-c", f"printf 'READ gw/{handler}\\nQUIT\\n' | nc -U -N {self.socket}").stdout

    def read(self, handler):
        answer = self.answer(handler)
        return answer[answer.index("\n", answer.index("DATA ")) + 1:]

    def wait(self, handler, pattern, seconds=5):
        for _ in range(20 * seconds):
            text = self.read(handler)
            if re.search(pattern, text, re.M):
                return text
            time.sleep(0.05)
        raise AssertionError(f"{handler} never was {pattern}:\n{text}")

    def counts(self):
        """(direction, SPI): what an association has done."""
        return {(direction, int(spi)): {name: int(n) for n, name in re.findall(r"(\d+) ([^,]+)", line)}
                for direction, spi, line in re.findall(r"^(in|out) (\d+)[^:\n]*: (.*)$", self.read("db.counts"), re.M)}

    def drops(self):
        return self.read("out4.drop_reasons")

    def report(self):
        """For whoever looks for the reason of a failure."""
        handlers = [f"{name}:\n{self.read(name)}" for name in ("db.counts", "db.policies", "xfrm.counts", "xfrm.refused")]
        return "\n".join([*handlers, self.drops(), self.peer.ip("-s", "xfrm", "state"), self.peer.run("cat", "/proc/net/xfrm_stat").stdout,
                          self.peer.ip("neigh"), self.left.ip("neigh"), *(
                              self.answer(f"{name}.drop_reasons") for name in ("esp6", "whole6", "route", "authentic", "esp4"))])


def ping(host, address, count=5, *arguments):
    shown = host.run("ping", f"-c{count}", "-i0.05", "-W1", *arguments, address, check=False, timeout=60).stdout
    return int(re.search(r"(\d+) received", shown)[1])


def transfer(server, client, address, seconds=1, reverse=False):
    listening = server.start("iperf3", "-s", "-1", "-p", "5201")
    while not server.run("ss", "-Htln", "sport = :5201").stdout:
        assert listening.poll() is None, listening.communicate()
        time.sleep(0.05)
    done = client.run("iperf3", "-c", address, "-t", seconds, "-p", "5201", *(["-R"] if reverse else []), timeout=40)
    listening.wait(10)
    assert "receiver" in done.stdout
    return done.stdout


def stop(process):
    process.send_signal(2)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0, out + err
    return out + err


@pytest.fixture
def site(elsewhere, tmp_path):
    if elsewhere:
        yield None
        return
    with netlab.Lab() as lab:
        yield Site(lab, tmp_path)


def state(host, action, spi, out, number, *more):
    """An association from 192.0.2.1 to 192.0.2.2, or back, with the key `number`."""
    ends = ["src", "192.0.2.1", "dst", "192.0.2.2"] if out else ["src", "192.0.2.2", "dst", "192.0.2.1"]
    words = [*ends, "proto", "esp", "spi", spi]
    if action != "delete":
        words += ["mode", "tunnel", "reqid", 7, "replay-window", 64, "flag", "af-unspec", *more,
                  *(word.format(number) for word in GCM)]
    host.ip("xfrm", "state", action, *words)


def policy(host, action, direction, out):
    nets = ["10.1.0.0/16", "10.2.0.0/16"] if out else ["10.2.0.0/16", "10.1.0.0/16"]
    ends = ["192.0.2.1", "192.0.2.2"] if out else ["192.0.2.2", "192.0.2.1"]
    template = ["tmpl", "src", ends[0], "dst", ends[1], "proto", "esp", "reqid", 7, "mode", "tunnel"]
    host.ip("xfrm", "policy", action, "dir", direction, "src", nets[0], "dst", nets[1],
            *([] if action == "delete" else template))


def both(site, action, spi, number):
    """A pair of associations, in both gateways; what the one sends must be received by the other first."""
    for host, out in (site.peer, True), (site.gw, False), (site.gw, True), (site.peer, False):
        state(host, action, spi + (0 if out else 0x1000), out, number + (0 if out else 1))


def test_keys_by_hand(site):
    if site is None:
        return
    # What is there before the gateway is, and what comes later.
    both(site, "add", 0xc1000001, 0x10)
    policy(site.gw, "add", "out", True)
    gateway = site.start()
    policy(site.gw, "add", "fwd", False)
    for direction, out in ("out", False), ("fwd", True), ("in", True):
        policy(site.peer, "add", direction, out)
    site.wait("db.policies", "^sp ipv4 in esp protect")
    assert ping(site.left, "10.2.0.2") == 5 and ping(site.right, "10.1.0.2") == 5, site.report()
    transfer(site.right, site.left, "10.2.0.2")
    transfer(site.left, site.right, "10.1.0.2")

    # The kernel learns how much it was, and itself has neither encrypted nor decrypted.
    sent = site.counts()["out", 0xc1000001]["packets"]
    for _ in range(60):
        if re.search(rf"^\s+\d+\(bytes\), {sent}\(packets\)", site.gw.ip("-s", "xfrm", "state"), re.M):
            break
        time.sleep(0.05)
    else:
        pytest.fail(f"{sent} packets are not in {site.gw.ip('-s', 'xfrm', 'state')}")

    # New keys while packets flow: no packet is lost.
    pinging = site.left.start("ping", "-c100", "-i0.01", "-W2", "10.2.0.2")
    time.sleep(0.2)
    both(site, "add", 0xc1000002, 0x20)
    site.wait("db.associations", "^sa out 3238002690 ")
    time.sleep(0.2)
    both(site, "delete", 0xc1000001, 0x10)
    assert "100 received" in pinging.communicate(timeout=30)[0]
    counts = site.counts()
    assert sorted(counts) == [("in", 0xc1001002), ("out", 0xc1000002)]
    assert counts["out", 0xc1000002].keys() == counts["in", 0xc1001002].keys() == {"packets", "bytes"}

    # After a restart numbers go on, so the peer takes them.
    stop(gateway)
    site.socket.unlink(missing_ok=True)
    gateway = site.start()
    site.wait("db.associations", "^sa out 3238002690 ")
    assert ping(site.left, "10.2.0.2") == 5

    # Without associations nothing passes, and it is counted.
    site.gw.ip("xfrm", "state", "flush")
    site.wait("xfrm.counts", "^0 states$")
    assert ping(site.left, "10.2.0.2", 3) == 0
    assert re.search(r"^3\tno association$", site.drops(), re.M), site.drops()
    site.gw.ip("xfrm", "policy", "flush")
    site.wait("xfrm.counts", "^0 policies$")
    assert ping(site.left, "10.2.0.2", 3) == 0
    assert re.search(r"^3\tno policy$", site.drops(), re.M), site.drops()
    said = stop(gateway)
    assert "refused" not in said and "0102030405" not in said


def test_limits_and_what_is_refused(site):
    if site is None:
        return
    gateway = site.start()
    both(site, "add", 0xc1000001, 0x10)
    policy(site.gw, "add", "out", True)
    policy(site.gw, "add", "fwd", False)
    for direction, out in ("out", False), ("fwd", True), ("in", True):
        policy(site.peer, "add", direction, out)
    # An association with limits: whoever listens learns of the soft one, and the hard one ends it.
    monitor = site.gw.start("ip", "xfrm", "monitor", "expire")
    time.sleep(0.2)
    state(site.peer, "add", 0xc1000009, True, 0x50)
    state(site.gw, "add", 0xc1000009, True, 0x50, "limit", "packet-soft", 4, "limit", "packet-hard", 20)
    site.wait("db.associations", "^sa out 3238002697 .* most-packets 20$")
    assert ping(site.left, "10.2.0.2", 10) == 10
    time.sleep(1.2)
    assert "c1000009" in site.gw.ip("xfrm", "state")
    # The last that it has; then the older one protects again.
    assert ping(site.left, "10.2.0.2", 10) == 10
    site.wait("db.associations", "^sa out 3238002689 .*\n(?!sa out)")
    assert "c1000009" not in site.gw.ip("xfrm", "state")
    assert ping(site.left, "10.2.0.2") == 5
    assert "1 states ended by packets or bytes" in site.read("xfrm.counts")
    monitor.terminate()
    expired = monitor.communicate(timeout=10)[0]
    assert re.search(r"expired 0", expired) or "hard 0" in expired, expired
    assert re.search(r"expired 1", expired) or "hard 1" in expired, expired

    site.gw.ip("xfrm", "state", "add", "src", "192.0.2.1", "dst", "192.0.2.9", "proto", "esp", "spi", "0xc1000011", "mode",
               "tunnel", "enc", "cbc(aes)", "0x" + "01" * 24, "auth-trunc", "hmac(sha512)", "0x" + "02" * 64, "256")
    site.wait("xfrm.counts", "^1 states refused$")
    assert "state 0xc1000011 from 192.0.2.1 to 192.0.2.9: cbc(aes) with 192 bits of key" in site.read("xfrm.refused")
    said = stop(gateway)
    assert said.count("is refused") == 1 and "0101010101" not in said, said


def test_esp_in_fragments_by_ipv6(site):
    """Linux fragments ESP in transport mode after it has encrypted (RFC 4303, 3.3.4)."""
    if site is None:
        return
    ours, theirs = "2001:db8::1", "2001:db8::2"
    site.peer.sysctl("net.ipv6.conf.wan.disable_ipv6", 0)
    site.peer.ip("addr", "add", f"{theirs}/64", "dev", "wan", "nodad")
    gateway = site.start(("192.0.2.1/24", f"192.0.2.1/24 {ours}/64"))
    site.gw.sysctl("net.ipv6.conf.ipsec-host.disable_ipv6", 0)
    site.gw.sysctl("net.ipv6.conf.ipsec-host.disable_policy", 1)
    site.gw.ip("addr", "add", f"{ours}/128", "dev", "ipsec-host", "nodad")
    for host, direction in (site.gw, "in"), (site.peer, "out"):
        host.ip("xfrm", "state", "add", "src", theirs, "dst", ours, "proto", "esp", "spi", "0xc1000021", "mode", "transport",
                "reqid", 9, "replay-window", 64, *(word.format(0x60) for word in GCM))
        host.ip("xfrm", "policy", "add", "dir", direction, "src", f"{theirs}/128", "dst", f"{ours}/128", "proto", "udp", "tmpl",
                "proto", "esp", "reqid", 9, "mode", "transport")
    site.wait("db.policies", "^sp ipv6 in esp protect reqid 9 ")
    with site.gw.inside():
        receiver = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
        receiver.bind((ours, 7000))
        receiver.settimeout(5)
    with site.peer.inside():
        sender = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
    with receiver, sender:
        # The longest fit the host's interface, and the link only in fragments.
        for length in 100, 1400, 1440, 1452:
            data = os.urandom(length)
            sender.sendto(data, (ours, 7000))
            try:
                assert receiver.recv(65536) == data
            except TimeoutError:
                pytest.fail(f"{length} bytes did not come: {site.report()}\n{site.read('whole6.dump')}")
    assert re.search(r"good reassemblies: +[1-9]", site.read("whole6.dump")), site.read("whole6.dump")
    assert site.counts()["in", 0xc1000021].keys() == {"packets", "bytes"}
    stop(gateway)


class Charon:
    """strongSwan's daemon in a host."""

    def __init__(self, host, folder, swanctl):
        self.host, self.folder = host, folder
        folder.mkdir()
        # As on the page, but with files of its own, without what a test needs not, and less patient: a peer is dead after
        # 9 s. A busy machine may stand still for some of them.
        (folder / "strongswan.conf").write_text(replaced(
            from_page("strongswan.conf"), ("    include strongswan.d/charon/*.conf\n", f"vici {{ socket = unix://{folder}/vici }}\n"),
            ("  install_routes = no\n", """  install_routes = no
  load = random nonce drbg aes sha1 sha2 hmac kdf gmp kernel-netlink socket-default vici
  retransmit_tries = 2
  retransmit_timeout = 1.5
  filelog {
    stderr {
      default = 1
    }
  }
""")))
        (folder / "swanctl.conf").write_text(swanctl)
        environment = os.environ | {"STRONGSWAN_CONF": str(folder / "strongswan.conf")}
        self.log = open(folder / "log", "w")
        self.process = host.start("charon-systemd", env=environment, stdout=self.log, stderr=self.log)
        for _ in range(200):
            if (folder / "vici").exists():
                break
            assert self.process.poll() is None, (folder / "log").read_text()
            time.sleep(0.05)
        self.swanctl("--load-all", "--noprompt", "--file", folder / "swanctl.conf")

    def swanctl(self, *arguments, check=True):
        done = self.host.run("swanctl", *arguments, "--uri", f"unix://{self.folder}/vici", check=False, timeout=60)
        logs = [f"{log}:\n{log.read_text()}" for log in sorted(self.folder.parent.glob("*/log"))]
        assert not check or done.returncode == 0, "\n".join([done.stdout, done.stderr, *logs])
        return done.stdout


CBC_WITH_ESN = ["enc", "cbc(aes)", "0x" + "01" * 32, "auth-trunc", "hmac(sha256)", "0x" + "02" * 32, "128",
                "replay-window", "64", "flag", "esn"]


@pytest.mark.skipif(not all(map(shutil.which, ("charon-systemd", "swanctl"))),
                    reason="not installed: charon-systemd, swanctl (the packages charon-systemd and strongswan-swanctl)")
@pytest.mark.parametrize("esp, encap", [("aes128gcm16", "no"), ("aes256-sha256-esn", "yes")], ids=["gcm", "cbc-in-udp"])
def test_keys_of_strongswan(site, tmp_path, esp, encap):
    if site is None:
        return
    # charon answers IKE_AUTH when the kernel has its associations. To load the modules for one can take longer than the
    # other side is ready to wait.
    assert kernel_has_esp(*(CBC_WITH_ESN if esp.endswith("esn") else ()))
    gateway = site.start()
    mine = replaced(from_page("swanctl.conf"), ("dpd_delay = 30s", f"dpd_delay = 1s\nencap = {encap}\nproposals = aes128-sha256-modp2048"),
                    ("aes128gcm16", esp))
    ours = Charon(site.gw, tmp_path / "ours", mine)
    turned = [("192.0.2.1", "A"), ("192.0.2.2", "192.0.2.1"), ("A", "192.0.2.2"), ("10.1.", "B"), ("10.2.", "10.1."), ("B", "10.2.")]
    theirs = Charon(site.peer, tmp_path / "theirs", replaced(mine, *turned))
    ours.swanctl("--initiate", "--child", "net", "--timeout", 20)
    site.wait("xfrm.counts", "^2 states$")
    assert ping(site.left, "10.2.0.2") == 5 and ping(site.right, "10.1.0.2") == 5, site.report()
    transfer(site.right, site.left, "10.2.0.2")
    transfer(site.left, site.right, "10.1.0.2")
    first = site.counts()
    assert all(counts.keys() == {"packets", "bytes"} and counts["packets"] > 100 for counts in first.values()), first

    # New keys, asked for by either side, while packets flow: none is lost.
    for charon in ours, theirs:
        before = set(site.counts())
        pinging = site.left.start("ping", "-c300", "-i0.01", "-W2", "10.2.0.2")
        time.sleep(0.3)
        charon.swanctl("--rekey", "--child", "net")
        for _ in range(100):
            if before.isdisjoint(site.counts()) and site.counts():
                break
            time.sleep(0.05)
        else:
            pytest.fail(f"still {before}: {site.report()}")
        assert "300 received" in pinging.communicate(timeout=60)[0], site.report()

    # charon sees what the gateway has done.
    sent = next(counts["packets"] for (direction, _), counts in site.counts().items() if direction == "out")
    for _ in range(60):
        shown = ours.swanctl("--list-sas")
        if re.search(rf"out .* {sent} packets", shown):
            break
        time.sleep(0.05)
    else:
        pytest.fail(f"{sent} packets are not in {shown}")

    # The peer dies. charon notices, and takes associations and policies away.
    theirs.process.kill()
    site.wait("xfrm.counts", "^0 states\n0 policies$", 60)
    assert ping(site.left, "10.2.0.2", 3) == 0
    assert re.search(r"^3\tno policy$", site.drops(), re.M), site.drops()
    said = stop(gateway)
    assert "refused" not in said, said
