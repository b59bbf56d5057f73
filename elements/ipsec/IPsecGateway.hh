#pragma once
#include <headrace/compound.hh>

namespace headrace {

/// An IPsec gateway (RFC 4301) that is configured by a file of DPDK's ipsec-secgw.
///
///     IPsecGateway(CONFIG file, PORT protected|unprotected ETH [ADDRESS ...], PORT ..., [keyword MTU, TUNNEL_MTU,
///         ENCAP_PORTS, XFRM, STATE, CAPACITY])
///
/// Input n: Ethernet frames from port n of the file, pushed. Output n: frames to it. The first PORT is port 0, the next
/// is port 1, and so on; at least one is protected (inside), and one unprotected (outside). One input and one output
/// more, both optional, lead to the host: IP packets without link header, as KernelTun has them.
///
/// A packet from inside leaves as the `sp` lines `out` say: in ESP, as it is, or not at all. ESP from outside is
/// authenticated, decrypted and checked against the `sp` lines `in`; what comes unprotected passes only if they let it
/// bypass. The `rt` lines tell the port of what leaves, the `neigh` lines the Ethernet address of the neighbor there.
/// IPv4 and IPv6 are forwarded inside and outside of tunnels.
///
/// Packets from inside that are too long for a tunnel are fragmented before they are encrypted, or their senders learn
/// TUNNEL_MTU; so does who sends a packet whose time to live ends. ESP in fragments is reassembled. Each
/// port answers ARP requests and neighbor solicitations for its ADDRESSes.
///
/// The host gets what comes for an ADDRESS: all that inside neighbors send, what policies let pass from outside, and
/// whatever comes from outside for the ADDRESS of an unprotected port and is not ESP, such as IKE. What the host sends
/// leaves by the policies, but IKE (UDP ports 500 and 4500) leaves as it is. Without the host, pings of ADDRESSes are
/// answered, and the rest is dropped.
///
/// CONFIG: the file; several: CONFIG once for each.
/// PORT: which side, the gateway's own Ethernet address (or `DEVICE:eth`), and its IPv4 and IPv6 addresses, each with the
/// length of its prefix if you like. A side without an address of a family sends no ICMP errors of that family.
/// MTU: the longest IP packet that links carry. Default 1500.
/// TUNNEL_MTU: the longest packet that is protected. Default MTU - 105, which fits whatever ESP adds. IPv6 packets may
/// have 1280 bytes in any case.
/// XFRM: true takes over the kernel's associations and policies as well, see IPsecXFRM: an IKE daemon such as
/// strongSwan's charon negotiates, by the host's port, and the gateway protects. Default false.
/// ENCAP_PORTS: as for IPsecESPLookup. STATE, CAPACITY: as for IPsecDatabase. All further arguments are for it, too.
///
/// Its elements have handlers, such as `NAME/db.counts`, `NAME/db.add` and `NAME/route.table`.
struct IPsecGateway {
  static constexpr Ports kPorts{"2-/2-"};

  static Status expand(Args& args, std::string& body);
};

HEADRACE_COMPOUND(IPsecGateway)

}  // namespace headrace
