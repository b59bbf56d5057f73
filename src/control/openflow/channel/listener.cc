#include "control/openflow/channel/listener.hh"

#include <fmt/format.h>
#include <unistd.h>

#include <utility>

#include "control/openflow/channel/sockets.hh"

namespace headrace::openflow {

std::unique_ptr<Listener> Listener::open(const Target& target, std::string& error) {
  uint16_t port = 0;
  std::string why;
  const int fd = listen_at(target, port, why);
  if (fd >= 0) return std::unique_ptr<Listener>(new Listener(target, fd, port));
  error = fmt::format("{}: {}", to_string(target), why);
  return nullptr;
}

Listener::Listener(Target target, int fd, uint16_t port) : target_(std::move(target)), fd_(fd), port_(port) {}

Listener::~Listener() {
  close(fd_);
  if (target_.kind == Target::Kind::kUnix) unlink(target_.file.c_str());
}

}  // namespace headrace::openflow
