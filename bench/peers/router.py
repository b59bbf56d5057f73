"""The router that all programs are measured with, and its routes: always the same ones."""

import ipaddress
import random

ROUTES = 282_797
# What part of the routes has which prefix length: 97 % are /24 or shorter, as in the table of the Internet.
LENGTHS = {
    8: .0002, 9: .0002, 10: .0004, 11: .0008, 12: .0015, 13: .002, 14: .004, 15: .006, 16: .022, 17: .012, 18: .018, 19: .032,
    20: .050, 21: .055, 22: .110, 23: .100, 24: .556, 25: .006, 26: .006, 27: .005, 28: .005, 29: .004, 30: .002, 31: .0002,
    32: .0018,
}


def routes(count):
    """(prefix, port) pairs: the default route, then `count` others."""
    drawn = random.Random(1)
    lengths, weights = list(LENGTHS), list(LENGTHS.values())
    prefixes = set()
    while len(prefixes) < count:
        length = drawn.choices(lengths, weights)[0]
        address = drawn.randrange(1 << 24, 224 << 24) >> (32 - length) << (32 - length)
        if address >> 24 not in (0, 10, 127):
            prefixes.add((address, length))
    yield "0.0.0.0/0", 0
    for address, length in sorted(prefixes):
        yield f"{ipaddress.IPv4Address(address)}/{length}", drawn.randrange(4)


def click(table, burst):
    """The standard IP router of the Click papers between four DPDK ports, for FastClick and Headrace alike."""
    text = f"""FromDPDKDevice(0, BURST {burst}, NDESC 512)
  -> c0 :: Classifier(12/0806 20/0001, 12/0806 20/0002, 12/0800, -);
c0[0] -> ARPResponder(10.0.0.1 02:00:00:00:00:01) -> Discard;
c0[1] -> Discard;
c0[3] -> Discard;
c0[2] -> Paint(1) -> Strip(14)
  -> CheckIPHeader(INTERFACES 10.0.0.1/24 10.0.1.1/24 10.0.2.1/24 10.0.3.1/24)
  -> rt :: DirectIPLookup({", ".join(f"{prefix} {port}" for prefix, port in table)});
"""
    for p in range(4):
        text += f"""
rt[{p}] -> DropBroadcasts -> cp{p} :: PaintTee({p + 2}) -> gio{p} :: IPGWOptions(10.0.{p}.1) -> FixIPSrc(10.0.{p}.1)
  -> dt{p} :: DecIPTTL -> fr{p} :: IPFragmenter(1500)
  -> EtherEncap(0x0800, 02:00:00:00:00:0{p + 1}, 02:00:00:00:01:0{p + 1})
  -> ToDPDKDevice({p}, BURST {burst}, NDESC 512, BLOCKING false);
dt{p}[1] -> ICMPError(10.0.{p}.1, timeexceeded) -> rt;
fr{p}[1] -> ICMPError(10.0.{p}.1, unreachable, needfrag) -> rt;
gio{p}[1] -> ICMPError(10.0.{p}.1, parameterproblem) -> rt;
cp{p}[1] -> ICMPError(10.0.{p}.1, redirect, host) -> rt;
"""
    return text


def l3fwd(table):
    """The routes as l3fwd reads them."""
    return "".join(f"R{prefix} {port}\n" for prefix, port in table)
