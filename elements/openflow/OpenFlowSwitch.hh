#pragma once
#include <headrace/compound.hh>

namespace headrace {

/// An OpenFlow switch, versions 1.0 and 1.3.
///
///     OpenFlowSwitch(DPID [, keyword CONTROLLER, LISTEN, FAIL, FLOWS, LOCAL, VERSIONS, PRIVATE_KEY, CERTIFICATE,
///         CA_CERTIFICATE, PROBE, MAX_BACKOFF, LOST_AFTER, AUXILIARY, BUFFERS, PACKET_IN_RATE, PACKET_IN_BURST,
///         DESCRIPTION, BYTES, ROOM, EDITS])
///
/// Input and output i, push: Ethernet frames from and to port i + 1 of the switch. Controllers fill 255 tables with
/// entries, groups and meters; ovs-ofctl works at LISTEN. There are no queues: an action that needs one is refused.
///
/// An entry whose actions are outputs to a port, TTL, VLAN tags and fields of Ethernet, IP, TCP and UDP is carried out on
/// either processor; copies, controllers, meters, MPLS and PBB bring a packet to the host. A barrier is answered when no
/// packet and no job of a device can meet the tables of before it, so that what was asked for before the barrier is true
/// for each packet after its answer.
///
/// The switch belongs to the process: a configuration that replaces the running one and has an OpenFlowSwitch of the same
/// DPID goes on with its tables, counters and connections.
///
/// DPID: the datapath id, up to 16 hexadecimal digits.
/// CONTROLLER: a controller to connect to, `tcp:HOST[:PORT]`, `ssl:HOST[:PORT]` or `unix:FILE`; several: CONTROLLER once
/// for each. The default port is 6653.
/// LISTEN: where controllers and ovs-ofctl may connect, `ptcp:[PORT][:HOST]`, `pssl:[PORT][:HOST]` or `punix:FILE`; also
/// several. They get packet-ins and other messages of the kind when they have asked by set-config.
/// FAIL: what the switch does without a CONTROLLER for LOST_AFTER. secure: it goes on by its tables. standalone: it is a
/// learning switch until one is back; the tables stay. Default secure.
/// FLOWS: a file of entries as `ovs-ofctl add-flows` reads them, which a new switch has from the start.
/// LOCAL true: the last input and output are the port LOCAL, the host's: KernelTap. Default false.
/// VERSIONS: "1.0", "1.3" or "1.0 1.3". Default both.
/// PRIVATE_KEY, CERTIFICATE, CA_CERTIFICATE: files in PEM form for ssl: and pssl:.
/// PROBE: silence after which an echo request is sent, and the time for its answer; 0: none is sent. Default 5 s.
/// MAX_BACKOFF: the longest wait between two attempts to connect. Default 8 s.
/// LOST_AFTER: how long no CONTROLLER must be there for FAIL. Default 15 s.
/// AUXILIARY: further connections to each CONTROLLER that speaks 1.3; packet-ins take them. Default 0.
/// BUFFERS: packets that wait for a controller's decision, so that only their beginnings are sent. Default 256.
/// PACKET_IN_RATE, PACKET_IN_BURST: packets of each reason that become packet-ins, a second and at once; rate 0: no
/// limit. Default 10000, 1000. With BUFFERS, they are those of the configuration that has made the switch.
/// DESCRIPTION: text for controllers, to tell switches apart.
/// BYTES, ROOM, EDITS: as for OpenFlowTables.
///
/// NORMAL is a learning switch for 16,384 addresses, with those of each VLAN for themselves, that forgets what was silent
/// for 5 minutes.
///
/// Handlers: `NAME/control.flows`, `groups`, `meters`, `ports` (r) with their counters; `addresses` (r) that NORMAL knows, with
/// port and VLAN; `controllers`, `counters` (r) of connections, packet-ins and buffers, through the control socket.
struct OpenFlowSwitch {
  static constexpr Ports kPorts{"1-/="};

  static Status expand(Args& args, std::string& body);
};

HEADRACE_COMPOUND(OpenFlowSwitch)

}  // namespace headrace
