#pragma once
/// \file
/// A request that a switch is answering.

#include <span>
#include <utility>

#include "control/openflow/channel/connection.hh"
#include "control/openflow/switch/switch.hh"

namespace headrace::openflow {

struct Switch::Request {
  Connection& connection;
  uint32_t xid;
  std::span<const uint8_t> bytes;  ///< as it came

  Version version() const { return connection.version(); }
  void reply(Body body) { connection.send(xid, std::move(body)); }
  void reply_part(ReplyBody body, bool more = false) {
    MultipartReply reply;
    reply.flags = more ? multipart_flag::kMore : 0;
    reply.body = std::move(body);
    connection.send(xid, std::move(reply));
  }
  /// Nothing if there is no error.
  void refuse(ErrorCode error) {
    if (error != ErrorCode::kNone) connection.refuse(error, bytes);
  }
};

}  // namespace headrace::openflow
