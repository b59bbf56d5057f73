#pragma once
/// \file
/// Sockets of targets, none of which blocks, and addresses of names.

#include <sys/socket.h>

#include <memory>
#include <string>
#include <vector>

#include "control/openflow/channel/target.hh"

namespace headrace::openflow {

struct SocketAddress {
  sockaddr_storage storage{};
  socklen_t length = 0;
};

/// Listens. -1 with the reason in `error`. `port` becomes the one that was free if the target's is 0. A file that is left
/// over, without a listener, is replaced; a new one has the mode 0600.
int listen_at(const Target& target, uint16_t& port, std::string& error);
/// A connection of a listener, and the name of the peer. -1 with errno if there is none.
int accept_from(int listener, std::string& peer);
/// Begins to connect. -1 with the reason in `error`; the socket is writable when the outcome is known.
int begin_connect(const SocketAddress& address, std::string& error);
/// How it went: 0 or an error number.
int connect_result(int fd);
/// "127.0.0.1:6653", "[::1]:6653"; empty for files.
std::string peer_name(const SocketAddress& address);

/// The addresses of an active target. Names are looked up on a thread of their own, for that may take minutes.
class Resolution {
 public:
  explicit Resolution(const Target& target);
  ~Resolution();
  Resolution(const Resolution&) = delete;
  Resolution& operator=(const Resolution&) = delete;

  /// Readable when done(); -1 if it was done at once.
  int fd() const;
  bool done() const;
  /// When done(); empty if there are none, and error() says why.
  std::vector<SocketAddress> addresses() const;
  std::string error() const;

 private:
  struct Shared;
  std::shared_ptr<Shared> shared_;
};

}  // namespace headrace::openflow
