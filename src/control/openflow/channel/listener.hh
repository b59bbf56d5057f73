#pragma once
/// \file
/// A socket that listens for controllers.

#include <memory>
#include <string>

#include "control/openflow/channel/target.hh"

namespace headrace::openflow {

class Listener {
 public:
  /// Null with the reason in `error`, which names the target.
  static std::unique_ptr<Listener> open(const Target& target, std::string& error);
  ~Listener();
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

  const Target& target() const { return target_; }
  int fd() const { return fd_; }
  uint16_t port() const { return port_; }

  /// No descriptor was left for a connection: not before this time.
  int64_t paused_until = 0;

 private:
  Listener(Target target, int fd, uint16_t port);

  const Target target_;
  const int fd_;
  const uint16_t port_;
};

}  // namespace headrace::openflow
