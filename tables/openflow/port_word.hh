#pragma once
/// \file
/// What packets must know of a port's configuration, as bits of one word. Includes no standard header.

#include <headrace/shader_types.hh>

namespace headrace::openflow {

namespace port_word {
inline constexpr uint32_t kNoReceive = 1;     ///< frames that come are dropped, except those of the spanning tree
inline constexpr uint32_t kNoReceiveStp = 2;  ///< those of the spanning tree (IEEE 802.1D) are dropped
inline constexpr uint32_t kNoForward = 4;     ///< frames that would leave are dropped
inline constexpr uint32_t kNoPacketIn = 8;    ///< frames that came by the port and miss do not become packet-ins
inline constexpr uint32_t kNoFlood = 16;      ///< FLOOD leaves it out
/// Nothing comes or goes.
inline constexpr uint32_t kClosed = kNoReceive | kNoReceiveStp | kNoForward | kNoPacketIn | kNoFlood;
}  // namespace port_word

}  // namespace headrace::openflow
