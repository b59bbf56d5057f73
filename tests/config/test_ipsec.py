"""ESP against Scapy: it decrypts what Headrace sends, and Headrace what it sends, with every algorithm, mode and family, on the
CPU and on the reference device. Bad packets are dropped and counted. The captures of tcpdump's tests decrypt."""

import hmac
import itertools
import os
import pathlib
import random
import re
import shutil
import subprocess

import pytest

scapy = pytest.importorskip("scapy.all", reason="python3-scapy is not installed (tools/deps test)")
ipsec = pytest.importorskip("scapy.layers.ipsec")
from scapy.layers.inet import ICMP, IP, TCP, UDP  # noqa: E402
from scapy.layers.inet6 import ICMPv6EchoRequest, IPv6, IPv6ExtHdrFragment  # noqa: E402
from scapy.layers.l2 import Ether  # noqa: E402
from test_compile import compiler  # noqa: E402

if not ipsec.algorithms:
    pytest.skip("python3-cryptography is not installed", allow_module_level=True)

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
CAPTURES = ROOT / ".." / "shared" / "data" / "esp" / "tcpdump-esp-tests.tar.xz"

WAYS = {
    "cpu": ["--mode", "cpu", "--workers", "1", "--compile", "off"],
    "compiled": ["--mode", "cpu", "--workers", "1", "--compile", "wait"],
    "workers": ["--mode", "cpu", "--workers", "4", "--compile", "off"],
    "device": ["--mode", "device", "--backend", os.environ.get("HEADRACE_DEVICE", "reference"), "--workers", "1", "--compile", "off"],
}

# Name in files; Scapy's cipher and the bytes of its key; the same of the authentication.
ALGORITHMS = [
    ("aes-128-ctr", "AES-CTR", 20, "sha1-hmac", "HMAC-SHA1-96", 20),
    ("aes-256-ctr", "AES-CTR", 36, "sha256-hmac", "SHA2-256-128", 32),
    ("aes-128-cbc", "AES-CBC", 16, "sha1-hmac", "HMAC-SHA1-96", 20),
    ("null", "NULL", 0, "sha256-hmac", "SHA2-256-128", 32),
    ("aes-128-gcm", "AES-GCM", 20, None, "NULL", 0),
    ("aes-256-gcm", "AES-GCM", 36, None, "NULL", 0),
    ("aes-256-cbc", "AES-CBC", 32, "sha256-hmac", "SHA2-256-128", 32),
    ("3des-cbc", "3DES", 24, "sha1-hmac", "HMAC-SHA1-96", 20),
]
MODES = ["tunnel4", "tunnel6", "transport"]
OURS4, PEER4, OURS6, PEER6 = "192.0.2.1", "192.0.2.2", "2001:db8::1", "2001:db8::2"


class Association:
    """One of Headrace, and its like of Scapy."""

    def __init__(self, number, algorithm, mode, udp=False, extended=False):
        r = random.Random(number)
        self.number, self.spi, self.mode, self.udp, self.extended = number, 0x1000 + number, mode, udp, extended
        self.name, self.cipher, key, self.auth_name, self.auth, auth_key = algorithm
        self.key, self.auth_key = r.randbytes(key), r.randbytes(auth_key)
        self.v6_inside = number % 2 == 1

    def line(self, direction):
        text = f"sa {direction} {self.spi} "
        key = ":".join(f"{b:02x}" for b in self.key)
        if self.auth_name is None:
            text += f"aead_algo {self.name} aead_key {key}"
        else:
            text += f"cipher_algo {self.name} " + (f"cipher_key {key} " if key else "")
            text += f"auth_algo {self.auth_name} auth_key " + ":".join(f"{b:02x}" for b in self.auth_key)
        source, destination = (OURS4, PEER4) if self.mode == "tunnel4" else (OURS6, PEER6)
        if direction == "in":
            source, destination = destination, source
        text += " mode transport" if self.mode == "transport" else f" mode ip{self.mode[-1] == '6' and 'v6' or 'v4'}-tunnel src {source} dst {destination}"
        return text + (" udp-encap" if self.udp else "") + (" esn 1" if self.extended else "")

    def inside(self, host):
        return f"2001:db8:{self.number:x}::{host}" if self.v6_inside else f"10.{self.number}.0.{host}"

    def policy(self, direction):
        version = 6 if self.v6_inside else 4
        end = "dst" if direction == "out" else "src"
        prefix = f"2001:db8:{self.number:x}::/48" if self.v6_inside else f"10.{self.number}.0.0/16"
        return f"sp ipv{version} {direction} esp protect {self.spi} pri 1 {end} {prefix}"

    def scapy(self, incoming=False):
        source, destination = (OURS4, PEER4) if self.mode == "tunnel4" else (OURS6, PEER6)
        if incoming:
            source, destination = destination, source
        version = {"tunnel4": IP, "tunnel6": IPv6}.get(self.mode)
        header = version and version(src=source, dst=destination)
        nat = UDP(sport=4500, dport=4500, chksum=0) if self.udp else None
        return ipsec.SecurityAssociation(ipsec.ESP, spi=self.spi, crypt_algo=self.cipher, crypt_key=self.key, auth_algo=self.auth,
                                         auth_key=self.auth_key, tunnel_header=header, nat_t_header=nat,
                                         esn_en=self.extended, esn=0)

    def icv(self, esp):
        """Of an ESP packet without it, whose extended number has an upper half of 0: Scapy does not know that of HMACs."""
        digest, length = {"HMAC-SHA1-96": ("sha1", 12), "SHA2-256-128": ("sha256", 16)}[self.auth]
        return hmac.digest(self.auth_key, esp + bytes(4), digest)[:length]

    def encrypt(self, p, number):
        sealed = self.scapy(incoming=True).encrypt(p, seq_num=number)
        if self.extended and self.auth_name:
            data = bytes(sealed)
            at = len(data) - len(bytes(sealed[ipsec.ESP]))
            length = len(self.icv(b""))
            sealed = sealed.__class__(data[:-length] + self.icv(data[at:-length]))
        return sealed

    def decrypt(self, p):
        by_hand = self.extended and self.auth_name
        if by_hand:
            esp, length = bytes(p[ipsec.ESP]), len(self.icv(b""))
            assert esp[-length:] == self.icv(esp[:-length])
        return self.scapy().decrypt(p, verify=not by_hand)

    def packets(self, outgoing, n=12):
        """Packets of many lengths and protocols, in the direction."""
        r = random.Random(self.number)
        ours, peer = ("2001:db8:ffff::9", self.inside(7)) if self.v6_inside else ("198.51.100.9", self.inside(7))
        if not outgoing:
            ours, peer = peer, ours
        result = []
        for i in range(n):
            payload = r.randbytes(r.choice((0, 1, 2, 15, 16, 17, 31, 64, 300, r.randrange(1200))))
            if self.v6_inside:
                upper = [TCP(sport=1000, dport=80), UDP(sport=53, dport=5353), ICMPv6EchoRequest(seq=i)][i % 3]
                p = IPv6(src=ours, dst=peer, hlim=64, tc=(i % 4) | (i << 2)) / upper / payload
            else:
                upper = [TCP(sport=1000, dport=80), UDP(sport=53, dport=5353), ICMP(seq=i)][i % 3]
                p = IP(src=ours, dst=peer, id=i, ttl=64, tos=(i % 3) | (i << 2 & 0xfc), flags="DF" if i % 2 else 0) / upper / payload
            result.append(p.__class__(bytes(p)))
        return result


def associations():
    number, result = 1, []
    for algorithm, mode in itertools.product(ALGORITHMS, MODES):
        for _ in range(2):  # a family inside each
            result.append(Association(number, algorithm, mode))
            number += 1
    for algorithm in ALGORITHMS:
        result.append(Association(number, algorithm, "tunnel4", udp=True))
        result.append(Association(number + 1, algorithm, "tunnel6", extended=True))
        number += 2
    return result


def frame(p):
    return Ether(dst="02:00:00:00:00:01", src="02:00:00:00:00:02") / p


INPUT = """first :: Null;
FromDump(in.pcap, STOP true)
    -> kind :: Classifier(12/0800, 12/86dd);
kind[0] -> Strip(14) -> CheckIPHeader -> first;
kind[1] -> Strip(14) -> CheckIP6Header -> first;
first -> """
OUTBOUND = "db :: IPsecDatabase(CONFIG out.cfg);\n" + INPUT + """IPsecPolicy(db, out)
    -> IPsecESPEncap(db) -> IPsecAES(db, true) -> IPsecAuthHMACSHA1(db, false)
    -> ToDump(out.pcap, ENCAP IP, SNAPLEN 0);
"""
INBOUND = "db :: IPsecDatabase(CONFIG in.cfg);\n" + INPUT + """lookup :: IPsecESPLookup(db)
    -> IPsecAuthHMACSHA1(db, true) -> IPsecAES(db, false) -> IPsecESPUnencap(db)
    -> ToDump(out.pcap, ENCAP IP, SNAPLEN 0);
lookup[1] -> ToDump(others.pcap, ENCAP IP, SNAPLEN 0);
"""


def run(headrace, way, conf, frames, *reads):
    scapy.wrpcap(str(headrace.folder / "in.pcap"), [frame(p) for p in frames])
    if way == "workers":
        # Packets on their way from worker to worker would be lost at the end of the file.
        conf = conf.replace("STOP true", "STOP false") + "Script(wait 1s, stop);\n"
    (headrace.folder / "conf.click").write_text(conf)
    done = headrace("run", "conf.click", *WAYS[way], "--read", "db.counts",
                    *(word for read in reads for word in ("--read", read)))
    packets = [p if isinstance(p, (IP, IPv6)) else (IPv6 if bytes(p)[0] >> 4 == 6 else IP)(bytes(p))
               for p in scapy.rdpcap(str(headrace.folder / "out.pcap"))]
    if way == "compiled" and compiler():
        assert "chains: compiled: " in done.stdout, done.stdout
    if way == "device":
        assert "on the CPU" not in done.stdout.split("offload")[0] or "1 device" in done.stdout, done.stdout
    return packets, done.stdout


def write_config(headrace, direction, those):
    text = "".join(f"{a.policy(direction)}\n{a.line(direction)}\n" for a in those)
    (headrace.folder / f"{direction}.cfg").write_text(text)


@pytest.mark.parametrize("way", WAYS)
def test_scapy_decrypts(headrace, way):
    those = associations()
    write_config(headrace, "out", those)
    sent = {a.spi: a.packets(True) for a in those}
    # Packets of different associations alternate.
    packets, printed = run(headrace, way, OUTBOUND, [p for row in zip(*sent.values()) for p in row])
    came = {a.spi: [] for a in those}
    for p in packets:
        came[p[ipsec.ESP].spi].append(p)
    ivs = set()
    for a in those:
        assert len(came[a.spi]) == len(sent[a.spi]), (a.line("out"), printed)
        for i, (p, expected) in enumerate(zip(came[a.spi], sent[a.spi])):
            esp = p[ipsec.ESP]
            assert esp.seq == i + 1
            if a.cipher != "NULL":
                iv = (a.key, bytes(esp.data)[:16 if a.cipher == "AES-CBC" else 8])
                assert iv not in ivs
                ivs.add(iv)
            outer = p.copy()
            if a.mode != "transport":
                if a.mode == "tunnel4":
                    assert (p.src, p.dst, p.ttl) == (OURS4, PEER4, 64)
                    inner_class = expected.tc if a.v6_inside else expected.tos
                    assert p.tos == inner_class
                    assert bool(p.flags.DF) == (not a.v6_inside and bool(expected.flags.DF))
                    fresh = p.copy()
                    del fresh.chksum
                    assert p.chksum == IP(bytes(fresh)).chksum
                else:
                    assert (p.src, p.dst, p.hlim) == (OURS6, PEER6, 64)
            plain = a.decrypt(outer)
            assert bytes(plain) == bytes(expected), (a.line("out"), i)


@pytest.mark.parametrize("way", WAYS)
def test_headrace_decrypts(headrace, way):
    those = associations()
    write_config(headrace, "in", those)
    sent, expected = [], {}
    for a in those:
        expected[a.spi] = a.packets(False)
        sent.append([a.encrypt(p, i + 1) for i, p in enumerate(expected[a.spi])])
    packets, printed = run(headrace, way, INBOUND, [p for row in zip(*sent) for p in row])
    came = {a.spi: [] for a in those}
    by_source = {a.inside(7): a.spi for a in those}
    for p in packets:
        came[by_source[p.src]].append(bytes(p))
    for a in those:
        assert came[a.spi] == [bytes(p) for p in expected[a.spi]], (a.line("in"), printed)


def counts(printed, spi):
    line = re.search(rf"^.*\bin {spi}\b[^:\n]*: (.*)$", printed, re.M)[1]
    return {name: int(n) for n, name in re.findall(r"(\d+) ([^,]+)", line)}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("algorithm", ALGORITHMS, ids=lambda a: a[0])
def test_bad_packets(headrace, way, algorithm):
    """Each is dropped, and counted by its association; nothing of it comes out."""
    a = Association(2, algorithm, "tunnel4")
    write_config(headrace, "in", [a])
    peer = a.scapy(incoming=True)
    good = a.packets(False, 100)
    sent = [peer.encrypt(p, seq_num=i + 1) for i, p in enumerate(good)]

    def changed(p, at, count=1):
        data = bytearray(bytes(p))
        for i in range(count):
            data[at + i if at >= 0 else len(data) + at] ^= 0x40
        return IP(bytes(data))

    frames = list(sent)
    frames += [sent[99], sent[60]]  # replayed
    frames += [sent[3], sent[10]]  # too old: the window has 64
    fresh = [peer.encrypt(p, seq_num=200 + i) for i, p in enumerate(a.packets(False, 12))]
    frames += [changed(p, -1 - i) for i, p in enumerate(fresh[:10])]  # ICV
    frames += [changed(p, 20 + 8 + i % 8) for i, p in enumerate(fresh[:10])]  # IV or ciphertext
    frames.append(changed(fresh[10], 20 + 5))  # sequence number
    unknown = Association(2, algorithm, "tunnel4")
    unknown.spi = 99
    frames.append(unknown.scapy(incoming=True).encrypt(good[0], seq_num=1))
    frames.append(IP(src=PEER4, dst=OURS4, proto=50) / bytes.fromhex("0000100200000300"))  # too short
    wrong = peer.encrypt(good[0], seq_num=300)
    wrong.src = "192.0.2.77"
    del wrong.chksum
    frames.append(IP(bytes(wrong)))
    # Authentic, but none of the association's: an inner source that no policy lets it carry.
    frames.append(peer.encrypt(IP(src="10.9.9.9", dst="198.51.100.9") / UDP() / b"x", seq_num=301))
    frames.append(peer.encrypt(good[1], seq_num=302))
    packets, printed = run(headrace, way, INBOUND, frames)
    assert [bytes(p) for p in packets] == [bytes(p) for p in good] + [bytes(good[1])], printed
    n = counts(printed, a.spi)
    assert n.pop("packets") == 101 and n.pop("bytes") > 0
    # A changed sequence number is another one: old, or not authentic.
    # Where packets are under way on a device, an old number may be looked up while it is still in the window.
    assert n["replayed"] >= 2 and n.pop("replayed") + n.pop("too old", 0) == 4, printed
    assert n.pop("bad ICV") == 21, printed
    assert n == {"malformed": 1, "wrong source": 1, "policy violation": 1}, printed
    assert re.search(r"lookup +1 +unknown SPI", printed), printed


@pytest.mark.parametrize("way", ("cpu", "device"))
@pytest.mark.parametrize("udp", (False, True), ids=("esp", "udp"))
def test_fragments_of_esp(headrace, way, udp):
    """Scapy cuts ESP by IPv6 into fragments, some of them atomic (RFC 6946), some out of order, some overlapping (RFC 5722)."""
    a = Association(2, ALGORITHMS[4], "tunnel6", udp=udp)
    write_config(headrace, "in", [a])
    good = [IP(bytes(IP(src=a.inside(7), dst="198.51.100.9", id=i) / UDP() / random.Random(i).randbytes(900 + i))) for i in range(40)]
    frames, expected = [], []
    for i, p in enumerate(good):
        sealed = a.encrypt(p, i + 1)
        outer = IPv6(bytes(sealed))
        data, upper = bytes(outer.payload), outer.nh

        def fragment(begin, end, more, outer=outer, data=data, upper=upper, i=i):
            return IPv6(src=outer.src, dst=outer.dst, hlim=outer.hlim, nh=44) / IPv6ExtHdrFragment(
                nh=upper, offset=begin // 8, m=more, id=1000 + i) / scapy.Raw(data[begin:end])

        parts = [fragment(begin, begin + 320, begin + 320 < len(data)) for begin in range(0, len(data), 320)]
        if i % 4 == 1:
            parts.reverse()
        elif i % 4 == 2:
            parts = [fragment(0, len(data), 0)]
        elif i % 4 == 3:
            parts.insert(2, fragment(312, 640, 1))
        if i % 4 != 3:
            expected.append(bytes(p))
        frames += parts
    conf = INBOUND.replace("kind[1] -> Strip(14) -> CheckIP6Header -> first",
                           "kind[1] -> Strip(14) -> CheckIP6Header -> whole :: IP6Reassembler -> first")
    packets, printed = run(headrace, way, conf, frames)
    assert [bytes(p) for p in packets] == expected, printed
    assert f"in {a.spi} {OURS6}: 30 packets, {sum(map(len, expected))} bytes\n" in printed, printed
    # Of each such packet every fragment is dropped.
    spoiled = sum(p[IPv6ExtHdrFragment].id % 4 == 3 for p in frames)
    assert int(re.search(r"whole +(\d+) +overlapping fragments", printed)[1]) == spoiled, printed


def test_tshark_shows_what_is_inside(headrace):
    if not shutil.which("tshark"):
        pytest.skip("tshark is not installed (tools/deps test)")
    those = [Association(2 * i, algorithm, "tunnel4") for i, algorithm in enumerate(ALGORITHMS, 1)]
    write_config(headrace, "out", those)
    run(headrace, "cpu", OUTBOUND, [p for a in those for p in a.packets(True, 6)])
    names = {"AES-CTR": "AES-CTR [RFC3686]", "AES-CBC": "AES-CBC [RFC3602]", "NULL": "NULL",
             "3DES": "TripleDES-CBC [RFC2451]", "AES-GCM": "AES-GCM with 16 octet ICV [RFC4106]"}
    auth = {"HMAC-SHA1-96": "HMAC-SHA-1-96 [RFC2404]", "SHA2-256-128": "HMAC-SHA-256-128 [RFC4868]", "NULL": "NULL"}
    options = ["-o", "esp.enable_encryption_decode:TRUE", "-o", "esp.enable_authentication_check:TRUE"]
    for a in those:
        key = f"0x{a.key.hex()}" if a.key else ""
        auth_key = f"0x{a.auth_key.hex()}" if a.auth_key else ""
        authentication = auth[a.auth]
        options += ["-o", f'uat:esp_sa:"IPv4","{OURS4}","{PEER4}","{a.spi:#010x}","{names[a.cipher]}","{key}","{authentication}","{auth_key}"']
    shown = subprocess.run(["tshark", "-r", headrace.folder / "out.pcap", *options, "-T", "fields", "-e", "esp.spi", "-e", "ip.dst"],
                           capture_output=True, text=True)
    assert shown.returncode == 0, shown.stderr
    lines = [line.split("\t") for line in shown.stdout.splitlines()]
    assert len(lines) == 6 * len(those)
    by_spi = {f"{a.spi:#010x}": a for a in those}
    for spi, destinations in lines:
        assert destinations.split(",")[1:] == [by_spi[spi].inside(7)], (spi, destinations)


class Secret:
    """A line of esp-secrets.txt, as an association of Headrace. tcpdump does not verify ICVs, so the file has no keys for them.
    They are those of FreeS/WAN's tests, from which the captures come: the bytes 87 65 or 65 87 again and again, and HMAC-MD5-96
    with 3DES, HMAC-SHA1-96 with AES."""

    CIPHERS = {"3des-cbc-hmac96": "3des-cbc", "aes256-cbc-hmac96": "aes-256-cbc"}

    def __init__(self, line):
        spi, self.destination, name, self.key = re.fullmatch(r"(0x[0-9a-f]+)@(\S+)\s+(\S+):0x([0-9a-f]+)", line).groups()
        self.spi, self.cipher = int(spi, 16), self.CIPHERS[name]

    def lines(self, source, inner, udp=False):
        """An association of a tunnel from `source`, and the policy for packets in it: from and to the addresses `inner`."""
        key = ":".join(self.key[i:i + 2] for i in range(0, len(self.key), 2))
        auth_key = ":".join(["87", "65"] * 10)
        return (f"sa in {self.spi} cipher_algo {self.cipher} cipher_key {key} auth_algo sha1-hmac auth_key {auth_key} "
                f"mode ipv4-tunnel src {source} dst {self.destination}{' udp-encap' if udp else ''}\n"
                f"sp ipv4 in esp protect {self.spi} pri 1 src {inner[0]}/32 dst {inner[1]}/32\n")


def esp_of(p):
    """Where the ESP header of an IPv4 packet is: behind its header, and that of UDP."""
    return p.ihl * 4 + (8 if p.proto == 17 else 0)


def with_sha1(p, md5_key):
    """A packet whose ICV is right with HMAC-MD5-96 with one that is right with HMAC-SHA1-96. MD5 is not for ESP any more (RFC
    8221, section 6: MUST NOT), so Headrace has it not; the ciphertext stays as it is."""
    data = bytes(p)
    esp = data[esp_of(p):-12]
    assert data[-12:] == hmac.digest(md5_key, esp, "md5")[:12]
    return IP(data[:-12] + hmac.digest(b"\x87\x65" * 10, esp, "sha1")[:12])


@pytest.fixture(scope="module")
def captures(tmp_path_factory):
    """A folder with tcpdump's test files."""
    if not CAPTURES.exists():
        pytest.skip("../shared/data/esp/tcpdump-esp-tests.tar.xz is not there")
    folder = tmp_path_factory.mktemp("captures")
    unpacked = subprocess.run(["tar", "-xJf", CAPTURES, "-C", folder], capture_output=True, text=True)
    if unpacked.returncode != 0:
        pytest.skip(f"tar cannot unpack {CAPTURES.name}: {unpacked.stderr}")
    return folder / "tests"


def captured(captures, name):
    return [IP(bytes(p[IP])[:p[IP].len]) for p in scapy.rdpcap(str(captures / name)) if IP in p]


def decoded(captures, name):
    """What tcpdump shows of the packets inside, line by line: the end of `... ESP(...), length 116: IP ...`."""
    return [line.rsplit(": IP ", 1)[1] for line in (captures / name).read_text().splitlines()]


def as_tcpdump(p):
    assert (p[ICMP].type, p[ICMP].code) == (8, 0)
    return f"{p.src} > {p.dst}: ICMP echo request, id {p[ICMP].id}, seq {p[ICMP].seq}, length {p.len - 20}"


def secrets(captures):
    lines = (captures / "esp-secrets.txt").read_text().splitlines()
    return {s.spi: s for s in (Secret(line) for line in lines if line.startswith("0x"))}


# The key of esp1's command line in TESTrun: esp-secrets.txt has another one for the same SPI.
FIRST = "0x12345678@192.1.2.45 3des-cbc-hmac96:0x4043434545464649494a4a4c4c4f4f515152525454575758"
INNER = "192.0.2.1", "192.0.1.1"


@pytest.mark.parametrize("way", WAYS)
def test_capture_of_aes(headrace, captures, way):
    """AES-256-CBC with HMAC-SHA1-96: as it was captured."""
    secret = secrets(captures)[0xd1234567]
    (headrace.folder / "in.cfg").write_text(secret.lines("192.1.2.23", INNER))
    packets, printed = run(headrace, way, INBOUND, captured(captures, "08-sunrise-sunset-aes.pcap"))
    assert [as_tcpdump(p) for p in packets] == decoded(captures, "esp5.out"), printed
    assert counts(printed, secret.spi) == {"packets": 8, "bytes": 8 * 84}


@pytest.mark.parametrize("way", WAYS)
def test_capture_of_3des(headrace, captures, way):
    """3DES with HMAC-MD5-96, whose ICVs are replaced. As captured, all are refused."""
    secret = Secret(FIRST)
    (headrace.folder / "in.cfg").write_text(secret.lines("192.1.2.23", INNER))
    sent = captured(captures, "02-sunrise-sunset-esp.pcap")
    packets, printed = run(headrace, way, INBOUND, sent + [with_sha1(p, b"\x87\x65" * 8) for p in sent])
    assert [as_tcpdump(p) for p in packets] == decoded(captures, "esp1.out"), printed
    assert counts(printed, secret.spi) == {"packets": 8, "bytes": 8 * 84, "bad ICV": 8}


def test_capture_of_3des_in_3des(headrace, captures):
    """A tunnel in a tunnel: what comes out of the first is ESP for a second."""
    outer, inner = secrets(captures)[0x12345678], secrets(captures)[0xabcdabcd]
    (headrace.folder / "in.cfg").write_text(outer.lines("192.1.2.23", ("192.1.2.23", "192.0.1.1")) + inner.lines("192.1.2.23", INNER))
    sent = [with_sha1(p, b"\x65\x87" * 8) for p in captured(captures, "08-sunrise-sunset-esp2.pcap")]
    between, printed = run(headrace, "cpu", INBOUND, sent)
    assert counts(printed, outer.spi)["packets"] == 8, printed
    packets, printed = run(headrace, "cpu", INBOUND, [with_sha1(p, b"\x87\x65" * 8) for p in between])
    assert [as_tcpdump(p) for p in packets] == decoded(captures, "esp2.out"), printed
    assert counts(printed, inner.spi) == {"packets": 8, "bytes": 8 * 84}


def test_capture_of_3des_in_udp(headrace, captures):
    """The secrets do not fit this capture: tcpdump shows noise, and we see that the padding is none. With the key of the first
    capture it decrypts."""
    wrong, right = secrets(captures)[0x12345678], Secret(FIRST)
    sent = [with_sha1(p, b"\x87\x65" * 8) for p in captured(captures, "espudp1.pcap")]
    assert not any(": IP " in line.split("length 116")[1] for line in (captures / "espudp1.out").read_text().splitlines())
    for secret, expected in (wrong, []), (right, decoded(captures, "esp1.out")):
        (headrace.folder / "in.cfg").write_text(secret.lines("192.1.2.23", INNER, udp=True))
        packets, printed = run(headrace, "cpu", INBOUND, sent)
        assert [as_tcpdump(p) for p in packets] == expected, printed
        n = counts(printed, secret.spi)
        assert n == ({"packets": 8, "bytes": 8 * 84} if expected else {"packets": 0, "bytes": 0, "bad padding": 8}), printed


def test_captures_without_secrets(headrace, captures):
    """Nothing of them goes on as decrypted; IKE goes to the host."""
    secret = secrets(captures)[0xabcdabcd]
    (headrace.folder / "in.cfg").write_text(secret.lines("192.1.2.23", INNER))
    sent = captured(captures, "isakmp4500.pcap") + captured(captures, "02-sunrise-sunset-esp.pcap")
    packets, printed = run(headrace, "cpu", INBOUND, sent, "lookup.drop_reasons")
    assert packets == []
    reasons = {reason: int(n) for n, reason in re.findall(r"^(?:lookup.drop_reasons: )?(\d+)\t(.*)$", printed, re.M)}
    assert reasons == {"unknown SPI": 8 + 8, "NAT keepalive": 4}, printed
    others = scapy.rdpcap(str(headrace.folder / "others.pcap"))
    assert len(others) == len(sent) - 20
    for p in others:
        udp = IP(bytes(p))[UDP]
        assert udp.dport == 500 or (udp.dport == 4500 and bytes(udp.payload)[:4] == bytes(4))
    # A capture that ends within the UDP header, and what there is of it is not for our port.
    truncated = scapy.rdpcap(str(captures / "esp_truncated.pcap"))
    packets, printed = run(headrace, "cpu", INBOUND, [IP(bytes(truncated[0])[14:])])
    assert packets == [] and counts(printed, secret.spi) == {"packets": 0, "bytes": 0}
