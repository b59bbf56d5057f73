#pragma once
/// \file
/// The actions of OpenFlow that change a packet, each at once, in place: for what a Walk leaves to the host.

#include <cstdint>
#include <headrace/packet.hh>

#include "tables/key/packet_key_view.hh"

namespace headrace::openflow {

/// How an action went.
enum class Edited : uint8_t { kDone, kInvalidTtl, kNoRoom };

/// Does what the operation at `op` says, one other than kOutput and kGroup, to a packet that begins with an Ethernet
/// header. Does nothing if the packet lacks the header in question. Of `context` a tunnel's id may change.
Edited act_on_frame(Packet& packet, const uint32_t* op, PacketKeyContext& context);

/// Raises the drop precedence of an IP packet (RFC 2597) by `levels`, to 3 at most: a meter's band of type dscp-remark.
/// Packets of other classes than those of assured forwarding stay as they are.
void raise_drop_precedence(Packet& packet, uint32_t levels);

}  // namespace headrace::openflow
