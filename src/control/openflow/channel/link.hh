#pragma once
/// \file
/// A connected socket, with TLS if wanted, and the bytes that wait to be sent.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "control/openflow/channel/tls.hh"

namespace headrace::openflow {

/// Bytes that are appended at the end and leave at the front.
class ByteQueue {
 public:
  /// To be appended to only.
  std::vector<uint8_t>& tail() { return bytes_; }
  std::span<const uint8_t> front() const { return std::span(bytes_).subspan(at_); }
  size_t size() const { return bytes_.size() - at_; }
  bool empty() const { return size() == 0; }
  void remove(size_t count);

 private:
  std::vector<uint8_t> bytes_;
  size_t at_ = 0;
};

/// Never blocks.
class Link {
 public:
  /// Owns `fd`, a stream socket that does not block. `tls`: null, or of this connection.
  Link(int fd, std::unique_ptr<TlsStream> tls);
  ~Link();
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;

  int fd() const { return fd_; }
  bool secured() const { return !tls_ || tls_->secure(); }
  /// Appends what has arrived, some 64 KiB at most, to `bytes`. False: the connection is over.
  bool receive(std::vector<uint8_t>& bytes);
  /// What is appended here is sent by flush().
  std::vector<uint8_t>& out() { return plain_.tail(); }
  /// Sends what the socket takes. False: the connection is over.
  bool flush();
  /// The peer learns that nothing more will come.
  void end_writing();
  /// Bytes that flush() has not sent.
  size_t unsent() const { return plain_.size() + cipher_.size(); }
  /// Of out(), that flush() has sent or encrypted, since the beginning.
  uint64_t sent() const { return sent_; }
  /// Something is to be sent, and can be as soon as the socket takes it.
  bool wants_to_write() const { return !cipher_.empty() || (secured() && !plain_.empty()); }
  /// Why the connection is over.
  const std::string& error() const { return error_; }

 private:
  bool write(ByteQueue& queue, bool& full);

  const int fd_;
  std::unique_ptr<TlsStream> tls_;
  ByteQueue plain_, cipher_;
  uint64_t sent_ = 0;
  std::string error_;
};

}  // namespace headrace::openflow
