#pragma once
/// \file
/// Messages out of a stream of bytes.

#include <cstdint>
#include <span>
#include <vector>

#include "control/openflow/codec.hh"

namespace headrace::openflow {

/// Cuts a stream into messages by their headers. Holds at most one incomplete message, 65,535 bytes, and what one call
/// adds to it:
///
///     framer.add(received);
///     while (const auto bytes = framer.next(); !bytes.empty()) ... decode(bytes, message) ...
///     if (framer.broken()) close the connection
class Framer {
 public:
  /// Adds what has arrived. Messages that next() has given are no longer valid.
  void add(std::span<const uint8_t> bytes);
  /// The next whole message; empty if there is none yet. Valid until add().
  std::span<const uint8_t> next();
  /// A header gave a length under 8 bytes: the rest of the stream cannot be understood. offending() has the header.
  bool broken() const { return broken_; }
  std::span<const uint8_t> offending() const;
  /// Bytes that wait for the rest of their message.
  size_t waiting() const { return buffer_.size() - at_; }

 private:
  std::vector<uint8_t> buffer_;
  size_t at_ = 0;
  bool broken_ = false;
};

}  // namespace headrace::openflow
