#pragma once
/// \file
/// Messages from bytes and to bytes.

#include <cstdint>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "control/openflow/errors.hh"
#include "control/openflow/messages.hh"
#include "control/openflow/multipart.hh"
#include "control/openflow/wire.hh"

namespace headrace::openflow {

/// By MessageType.
using Body =
    std::variant<Hello, Error, EchoRequest, EchoReply, Experimenter, FeaturesRequest, FeaturesReply, GetConfigRequest,
                 GetConfigReply, SetConfig, PacketIn, FlowRemoved, PortStatus, PacketOut, FlowMod, GroupMod, PortMod,
                 TableMod, MultipartRequest, MultipartReply, BarrierRequest, BarrierReply, QueueGetConfigRequest,
                 QueueGetConfigReply, RoleRequest, RoleReply, GetAsyncRequest, GetAsyncReply, SetAsync, MeterMod>;

struct Message {
  Version version = Version::k1_3;
  uint32_t xid = 0;
  Body body;
  /// The version of a hello's header, which may be one that we do not speak; 0: `version`.
  uint8_t hello_version = 0;

  MessageType type() const { return static_cast<MessageType>(body.index()); }
  bool operator==(const Message&) const = default;
};

/// The fixed part of all messages.
struct Header {
  uint8_t version = 0;
  uint8_t type = 0;
  uint16_t length = 0;
  uint32_t xid = 0;
};
/// Of at least kHeaderBytes bytes.
Header read_header(std::span<const uint8_t> bytes);

/// Reads one message, which must be all of `bytes`. Returns kNone, or the error that the specification names; `message`
/// then has no meaning. Takes memory in proportion to the bytes. What takes a switch to know is not checked: whether ports,
/// tables, groups, buffers and experimenters exist; see unknown_experimenter(), and check_consistency() for actions.
[[nodiscard]] ErrorCode decode(std::span<const uint8_t> bytes, Message& message, Reading reading = Reading::kStrict);

/// Appends a message, in the form of `message.version`. A multipart message that is longer than 65,535 bytes becomes
/// several, all but the last with the flag kMore. False if the version cannot say everything: what it has no form for is
/// left out, which makes matches wider and lists shorter. A message that it does not have at all appends nothing.
bool encode(const Message& message, std::vector<uint8_t>& out);

/// The answer to `offending`, a whole message or what there is of one: its version (1.3 if it is none of ours), its xid,
/// and as data its first 64 bytes. `code` must be an error.
Message error_message(ErrorCode code, std::span<const uint8_t> offending);
/// The same by numbers, for experimenters' errors or a text (HELLO_FAILED).
Message error_message(ErrorCode code, Version version, uint32_t xid, std::vector<uint8_t> data);

/// The error for an experimenter message, or multipart message, that the receiver does not know: unknown experimenters, and
/// types of Nicira other than those of roles. kNone for other messages.
ErrorCode unknown_experimenter(const Message& message);

}  // namespace headrace::openflow
