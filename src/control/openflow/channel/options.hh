#pragma once
/// \file
/// How a channel is set up.

#include <cstdint>
#include <optional>
#include <vector>

#include "control/openflow/channel/backoff.hh"
#include "control/openflow/channel/negotiation.hh"
#include "control/openflow/channel/target.hh"
#include "control/openflow/channel/tls.hh"

namespace headrace::openflow {

/// Bounds of memory, in bytes of one connection unless something else is said.
struct Limits {
  /// While so much is unsent, packet-ins are dropped and requests wait.
  size_t unsent = 1u << 20;
  /// When so many other asynchronous messages are unsent, the connection is closed.
  size_t unsent_events = 16u << 20;
  /// While so many requests wait, the connection is not read from.
  size_t waiting = 1u << 20;
  /// Of requests that are handled before it is another connection's turn.
  size_t turn = 65536;
  /// Of a multipart request in parts: elements, bytes, and how many such requests may be incomplete.
  size_t part_elements = 4096, part_bytes = 1u << 20, part_requests = 8;
  /// Connections that the others have opened.
  size_t clients = 64;
};

struct Options {
  std::vector<Target> targets;
  Versions versions;
  std::optional<TlsFiles> tls;  ///< required for Target::Kind::kSsl
  /// In nanoseconds: silence after which an echo request is sent, and the time for its answer; 0: none is sent.
  int64_t probe = 5 * kSecond;
  /// The longest wait between attempts to connect.
  int64_t most_backoff = 8 * kSecond;
  /// How long no controller must be there before Handler::on_controllers(false).
  int64_t lost_after = 15 * kSecond;
  /// Auxiliary connections to each controller that speaks 1.3; they carry packet-ins.
  uint8_t auxiliary = 0;
  Limits limits;
};

}  // namespace headrace::openflow
