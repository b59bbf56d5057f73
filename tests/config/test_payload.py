"""What synthetic frames carry, and searches in them."""

import struct

import pytest


def payloads(path, header):
    data, at, all_of_them = path.read_bytes(), 24, []
    while at < len(data):
        length = struct.unpack_from("<I", data, at + 8)[0]
        all_of_them.append(data[at + 16 + header:at + 16 + length])
        at += 16 + length
    return all_of_them


def carried(headrace, arguments, header=42):
    (headrace.folder / "carry.click").write_text(
        f"TrafficSource(uniform, LENGTH 600, LIMIT 300, STOP true, {arguments}) -> ToDump(out.pcap, SNAPLEN 0);\n")
    headrace("run", "-q", "--workers", "1", "carry.click")
    found = payloads(headrace.folder / "out.pcap", header)
    assert len(found) == 300 and all(len(p) == 600 - header for p in found)
    return found


def test_text(headrace):
    found = carried(headrace, "PAYLOAD text")
    assert all(b in b"\r\n\t" or 32 <= b < 127 for p in found for b in p)
    assert len(set(found)) == len(found)
    assert any(b"HTTP/1.1 200 OK" in p for p in found) and any(b"User-Agent: " in p for p in found)


def test_random(headrace):
    everything = b"".join(carried(headrace, "PAYLOAD random"))
    counts = [everything.count(bytes([b])) for b in range(256)]
    mean = len(everything) / 256
    assert all(abs(n - mean) < 6 * mean ** 0.5 for n in counts)


def test_ip6_carries_it_too(headrace):
    (headrace.folder / "prefixes.txt").write_text("2001:db8::/32\n")
    found = carried(headrace, "PAYLOAD text, PREFIXES prefixes.txt", header=62)
    assert all(b in b"\r\n\t" or 32 <= b < 127 for p in found for b in p)


def test_unknown_payload(headrace):
    (headrace.folder / "bad.click").write_text("TrafficSource(PAYLOAD words) -> Discard;\n")
    assert "PAYLOAD: expected any, random or text" in headrace("check", "bad.click", status=1).stderr


def test_matchers_report_every_mistake(headrace):
    (headrace.folder / "bad.click").write_text(
        "Idle -> a :: StringMatcher() -> Discard; Idle -> b :: StringMatcher('|4', good, \"\") -> Discard;\n"
        "Idle -> c :: AhoCorasick(x, ENGINE prefilter) -> Discard; Idle -> d :: StringMatcher(FILE nowhere) -> Discard;\n")
    error = headrace("check", "bad.click", status=1).stderr
    assert "no patterns: name a FILE or give PATTERN1, ..." in error
    assert "pattern 1: " in error and "pattern 3: " in error and "pattern 2: " not in error
    assert "ENGINE: expected auto, dfa or compressed" in error
    assert "nowhere: No such file or directory" in error
    for element in "abcd":
        assert f"'{element} :: " in error


def test_without_a_second_output_matches_leave_by_the_first(headrace):
    (headrace.folder / "one.click").write_text(
        "TrafficSource(LENGTH 300, PAYLOAD text, LIMIT 500, STOP true) -> m :: StringMatcher(e) -> c :: Counter -> Discard;\n")
    out = headrace("run", "-q", "--workers", "1", "one.click", "-r", "c.count", "-r", "m.matches").stdout
    assert "c.count: 500" in out
    matches = int(out.split("m.matches: ")[1].split()[0])
    assert 450 < matches <= 500


@pytest.mark.parametrize("mode", ["cpu", "device"])
def test_the_payload_ends_where_udp_does(headrace, mode):
    """UDP says 6 bytes; IP carries 11."""
    (headrace.folder / "dsize.rules").write_text(
        'alert udp any any -> any any (msg:"six"; dsize:6; sid:1;)\n'
        'alert udp any any -> any any (msg:"behind"; content:"CRET"; sid:2;)\n'
        'alert udp any any -> any any (msg:"last"; content:"def"; isdataat:!1,relative; sid:3;)\n')
    (headrace.folder / "udp.click").write_text(
        "InfiniteSource(DATA \\<4500 0027 0000 0000 1111 a6c4 01000001 02000002 0400 0035 000e 0000 616263646566 4352455458>,\n"
        "  LIMIT 40, STOP true)\n"
        "-> CheckIPHeader(CHECKSUM false) -> s :: StringMatcher(CRET) -> f :: StringMatcher(def)\n"
        "-> i :: IDSMatcher(RULES dsize.rules, ALERTS alerts.json) -> Discard;\n")
    out = headrace("run", "-q", "-w", "1", "--mode", mode, "--backend", "reference", "udp.click",
                   "-r", "s.matches", "-r", "f.matches", "-r", "i.alerts").stdout
    assert "s.matches: 0\n" in out and "f.matches: 40\n" in out, out
    assert "i.alerts: 1 40 six\n3 40 last\n" in out and "behind" not in out, out
