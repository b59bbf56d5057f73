#pragma once
/// \file
/// What a switch implements to be controlled.

#include <cstdint>
#include <span>

#include "control/openflow/codec.hh"

namespace headrace::openflow {

class Connection;

/// Called from Channel::run() only, hence on the control thread.
class Handler {
 public:
  /// A request that a switch must answer: not hellos, echoes, errors, unknown experimenters, or those of roles and
  /// asynchronous messages, which the channel answers itself; nothing that changes the switch from slaves; and multipart
  /// requests whole. `bytes`: the message as it came, the last part of a multipart request; for Connection::refuse().
  ///
  /// Answers go out by connection.send(), in this call or later. Who answers a barrier later calls connection.hold() now
  /// and connection.release() after the answer, and no message behind the barrier is handled meanwhile.
  virtual void on_message(Connection& connection, Message&& message, std::span<const uint8_t> bytes) = 0;
  /// The connection has agreed on a version.
  virtual void on_connected(Connection& /*connection*/) {}
  /// The connection will send nothing more. Its id will not be used again.
  virtual void on_disconnected(Connection& /*connection*/) {}
  /// False: no controller that the switch connects to has been there for Options::lost_after, or there are none such:
  /// a switch with the fail mode `standalone` takes over. True: one is back. The first call may be either.
  virtual void on_controllers(bool there) = 0;

 protected:
  ~Handler() = default;
};

}  // namespace headrace::openflow
