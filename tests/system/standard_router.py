"""The standard IP router of the Click papers, as a configuration for network interfaces of Linux. Beyond it: martians
are filtered (RFC 1812, 5.3.7), and destinations without a route and hosts that do not answer are reported."""

import dataclasses
import ipaddress

LOCAL, UNREACHABLE = 0, 1  # outputs of the routing table; interfaces follow


@dataclasses.dataclass
class Interface:
    name: str
    address: str  # "10.0.0.1/24"
    mac: str
    mtu: int = 1500


def configuration(interfaces, routes=(), arp="", reassembly="", icmp="RATE 0"):
    """`routes`: (network, gateway, index of the interface). `arp`, `reassembly`, `icmp`: more arguments of ARPQuerier,
    IPReassembler and ICMPError."""
    def args(*words):
        return ", ".join(word for word in words if word)

    nets = [ipaddress.ip_interface(i.address) for i in interfaces]
    bad = "BADADDRS " + " ".join(str(net.network.broadcast_address) for net in nets)
    table = [f"{a}/32 {LOCAL}" for net in nets for a in (net.ip, net.network.broadcast_address, net.network.network_address)]
    table += ["255.255.255.255/32 0", "0.0.0.0/32 0"]
    table += [f"{net.network} {2 + i}" for i, net in enumerate(nets)]
    table += [f"{network} {gateway} {2 + i}" for network, gateway, i in routes]
    table += [f"0.0.0.0/0 {UNREACHABLE}"]
    martians = "deny " + " or ".join(
        [f"src net {net}" for net in ("0.0.0.0/8", "127.0.0.0/8", "224.0.0.0/4")] + [f"src host {net.ip}" for net in nets]
        + [f"dst net {net}" for net in ("0.0.0.0/8", "127.0.0.0/8")]) + ", allow all"
    lines = [f"AddressInfo({', '.join(f'if{i} {n.address} {n.mac}' for i, n in enumerate(interfaces))});",
             f"""
ip :: Strip(14)
    -> CheckIPHeader(INTERFACES {' '.join(f'if{i}:ipnet' for i in range(len(interfaces)))})
    -> martians :: IPFilter({martians})
    -> rt :: RadixIPLookup({', '.join(table)});

rt[{UNREACHABLE}] -> ICMPError({args('if0', 'unreachable', 'net', bad, icmp)}) -> rt;

rt[{LOCAL}] -> reassembler :: IPReassembler({reassembly})
    -> local :: IPClassifier(icmp type echo, icmp, udp, tcp, -);
reassembler[1] -> ICMPError({args('if0', 'timeexceeded', 'reassembly', bad, icmp)}) -> rt;
local[0] -> CheckICMPHeader -> ICMPPingResponder -> rt;
local[1] -> Discard;
local[2] -> CheckUDPHeader -> ICMPError({args('if0', 'unreachable', 'port', bad, icmp)}) -> rt;
local[3] -> Discard;
local[4] -> ICMPError({args('if0', 'unreachable', 'protocol', bad, icmp)}) -> rt;
"""]
    for i, interface in enumerate(interfaces):
        name = f"if{i}"

        def error(*what, **keywords):
            return f"ICMPError({args(name, *what, bad, icmp, *(f'{k} {v}' for k, v in keywords.items()))}) -> rt"

        lines.append(f"""
FromDevice({interface.name}) -> HostEtherFilter({name})
    -> in{i} :: Classifier(12/0806 20/0001, 12/0806 20/0002, 12/0800, -);
out{i} :: Queue(2000) -> ToDevice({interface.name});
in{i}[0] -> ARPResponder({name}) -> out{i};
in{i}[1] -> [1] arp{i} :: ARPQuerier({args(name, arp)});
in{i}[2] -> Paint({2 + i}) -> ip;
in{i}[3] -> Discard;
rt[{2 + i}] -> DropBroadcasts
    -> redirect{i} :: PaintTee({2 + i})
    -> options{i} :: IPGWOptions({name}, {' '.join(str(net.ip) for net in nets)})
    -> FixIPSrc({name})
    -> ttl{i} :: DecIPTTL
    -> fragmenter{i} :: IPFragmenter({interface.mtu})
    -> [0] arp{i};
arp{i}[0] -> out{i};
arp{i}[1] -> out{i};
arp{i}[2] -> {error('unreachable', 'host')};
redirect{i}[1] -> {error('redirect', 'host')};
options{i}[1] -> {error('parameterproblem')};
ttl{i}[1] -> {error('timeexceeded')};
fragmenter{i}[1] -> {error('unreachable', 'needfrag', PMTU=interface.mtu)};
""")
    return "".join(lines)
