"""What conf/ip-router-pcap.click must do with a frame, computed with Scapy and not with Headrace.

Only what a standard leaves open is taken from the configuration: addresses, routes, the quoted length (576 bytes in all)
and the TTL of an ICMP error. What becomes of IP options each test case says itself, as bytes.
"""

import collections
import dataclasses
import ipaddress
import struct

from scapy.layers.inet import ICMP, IP
from scapy.layers.l2 import Ether
from scapy.packet import Raw
from scapy.utils import checksum

LOCAL = 2
ROUTERS = ["10.0.0.1", "10.0.1.1"]
OWN_MAC = ["02:00:00:00:00:01", "02:00:00:00:00:02"]
PEER_MAC = ["02:00:00:00:01:01", "02:00:00:00:01:02"]
ROUTES = [(ipaddress.ip_network(network), gateway, port) for network, gateway, port in [
    ("10.0.0.1/32", None, LOCAL), ("10.0.0.0/32", None, LOCAL), ("10.0.0.255/32", None, LOCAL),
    ("10.0.1.1/32", None, LOCAL), ("10.0.1.0/32", None, LOCAL), ("10.0.1.255/32", None, LOCAL),
    ("255.255.255.255/32", None, LOCAL), ("0.0.0.0/32", None, LOCAL),
    ("10.0.0.0/24", None, 0), ("10.0.1.0/24", None, 1),
    ("20.0.0.0/8", "10.0.1.2", 1), ("30.0.0.0/8", "10.0.0.2", 0)]]
NO_HOSTS = {"0.0.0.0", "255.255.255.255", "10.0.0.0", "10.0.0.255", "10.0.1.0", "10.0.1.255"}
ICMP_ERRORS = {3, 4, 5, 11, 12}
ERROR_TTL = 65
ERROR_TOS = 0xc0  # precedence: internetwork control
ERROR_LENGTH = 576


def ip_packet(payload=b"", options=b"", **fields):
    """The bytes of a packet with these option bytes, right lengths and a right checksum."""
    fields.setdefault("proto", 253)
    packet = bytearray(bytes(IP(**fields) / Raw(payload)))
    assert len(options) % 4 == 0 and "chksum" not in fields
    packet[20:20] = options
    packet[0] = 0x40 | (20 + len(options)) // 4
    struct.pack_into("!H", packet, 2, len(packet))
    return with_checksum(packet)


def with_checksum(packet):
    """The packet with its header checksum made anew."""
    packet = bytearray(packet)
    packet[10:12] = bytes(2)
    struct.pack_into("!H", packet, 10, checksum(bytes(packet[: header_length(packet)])))
    return bytes(packet)


def header_length(packet):
    return (packet[0] & 15) * 4


def replace_options(packet, options):
    assert len(options) == header_length(packet) - 20
    return with_checksum(packet[:20] + options + packet[20 + len(options):])


@dataclasses.dataclass
class Case:
    """A frame, and what Scapy cannot know about it."""

    name: str
    frame: bytes
    drop: tuple = None  # (element, reason): it does not get as far as the routing table
    answer: bytes = None  # a frame by interface 0 instead
    options: bytes = None  # the options as they leave
    copied: bytes = b""  # the options of fragments but the first
    pointer: int = None  # of the ICMP parameter problem
    reversed_route: bytes = b""  # the options of an ICMP error
    return_hop: str = None  # where an ICMP error goes that follows a source route back
    broadcast: bool = False  # arrived as a broadcast or multicast of the link


class Router:
    """Takes cases in turn; collects the frames of each interface and the drops."""

    def __init__(self, mtu):
        self.mtu = mtu
        self.out = [[], []]
        self.drops = collections.Counter()
        self._next_id = 1

    def receive(self, case):
        if case.drop:
            self.drops[case.drop] += 1
        elif case.answer is not None:
            self.out[0].append(case.answer)
        else:
            packet = case.frame[14:]
            self._route(packet[: struct.unpack_from("!H", packet, 2)[0]], case, painted=True)

    def _route(self, packet, case, painted=False, made_here=False):
        destination = ipaddress.ip_address(packet[16:20])
        matches = [route for route in ROUTES if destination in route[0]]
        if not matches:
            self.drops["rt", "no route"] += 1
            return
        _, gateway, port = max(matches, key=lambda route: route[0].prefixlen)
        if port == LOCAL:
            self._deliver(packet, case)
            return
        element = f"port{port}"
        if case and case.broadcast and not made_here:
            self.drops[f"{element}/broadcasts", "link broadcast or multicast"] += 1
            return
        if painted and port == 0:
            self._error(f"{element}/redirected", packet, case, type=5, code=1, gw=gateway or str(destination))
        if made_here:
            packet = with_checksum(packet[:12] + ipaddress.ip_address(ROUTERS[port]).packed + packet[16:])
        elif case.pointer is not None:
            self._error(f"{element}/problem", packet, case, type=12, code=0, ptr=case.pointer)
            return
        elif case.options is not None:
            packet = replace_options(packet, case.options)
        if packet[8] <= 1:
            self._error(f"{element}/expired", packet, case, type=11, code=0)
            return
        packet = with_checksum(packet[:8] + bytes([packet[8] - 1]) + packet[9:])
        if len(packet) <= self.mtu:
            pieces = [packet]
        elif IP(packet).flags.DF:
            self._error(f"{element}/too_big", packet, case, type=3, code=4, nexthopmtu=self.mtu)
            return
        else:
            pieces = self._fragments(packet, case.reversed_route if made_here else case.copied)
        self.out[port] += [bytes(Ether(src=OWN_MAC[port], dst=PEER_MAC[port], type=0x0800)) + piece for piece in pieces]

    def _fragments(self, packet, copied):
        # Scapy copies all options to each fragment, and lets the last one end at a multiple of 8 bytes, too.
        length = header_length(packet)
        # Without the payload, which Scapy would take apart with every layer that some test has loaded.
        ip = IP(packet[:length])
        pieces, data = [], packet[length:]
        while data:
            offset = len(packet) - length - len(data)
            options = packet[20:length] if offset == 0 else copied
            room = self.mtu - 20 - len(options)
            if len(data) > room:
                room = room // 8 * 8
            pieces.append(ip_packet(data[:room], options, src=ip.src, dst=ip.dst, id=ip.id, ttl=ip.ttl, proto=ip.proto,
                                    tos=ip.tos, frag=ip.frag + offset // 8,
                                    flags="MF" if len(data) > room or ip.flags.MF else 0))
            data = data[room:]
        return pieces

    def _deliver(self, packet, case):
        ip = IP(packet)
        if ip.proto != 1 or ip.frag or ip[ICMP].type != 8:
            self.drops["local", "count"] += 1
            return
        if case.broadcast or ip.dst in NO_HOSTS:
            self.drops["ping", "not an echo request to one host"] += 1
            return
        request = ip[ICMP]
        reply = IP(src=ip.dst, dst=ip.src, id=ip.id, tos=ip.tos, ttl=255) / ICMP(
            type=0, id=request.id, seq=request.seq) / bytes(request.payload)
        self._route(bytes(reply), case)

    def _error(self, element, about, case, **fields):
        ip = IP(about)
        source = ipaddress.ip_address(about[12:16])
        reason = None
        if ip.proto == 1 and about[header_length(about)] in ICMP_ERRORS:
            reason = "about an ICMP error"
        elif source.packed[0] in (0, 127) or source.packed[0] >= 224:
            reason = "source is no host"
        elif ip.frag:
            reason = "not the first fragment"
        elif fields["type"] == 5 and case.reversed_route:
            reason = "redirect of a source route"
        if reason:
            self.drops[element, reason] += 1
            return
        options = case.reversed_route
        quoted = about[: ERROR_LENGTH - 28 - len(options)]
        error = ip_packet(bytes(ICMP(**fields) / Raw(quoted)), options, src="0.0.0.0", dst=case.return_hop or ip.src, proto=1,
                          ttl=ERROR_TTL, tos=ERROR_TOS, id=self._next_id)
        self._next_id += 1
        self._route(error, case, made_here=True)
