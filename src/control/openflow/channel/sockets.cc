#include "control/openflow/channel/sockets.hh"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <mutex>
#include <system_error>
#include <thread>

namespace headrace::openflow {

namespace {

SocketAddress unix_address(const std::string& file) {
  SocketAddress address;
  auto& un = reinterpret_cast<sockaddr_un&>(address.storage);
  un.sun_family = AF_UNIX;
  std::memcpy(un.sun_path, file.c_str(), file.size() + 1);
  address.length = sizeof un;
  return address;
}

const sockaddr* raw(const SocketAddress& address) { return reinterpret_cast<const sockaddr*>(&address.storage); }

/// Asks for addresses; 0 or an error of getaddrinfo(3).
int look_up(const std::string& host, uint16_t port, int flags, std::vector<SocketAddress>& found) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags;
  addrinfo* list = nullptr;
  const std::string service = std::to_string(port);
  const int result = getaddrinfo(host.c_str(), service.c_str(), &hints, &list);
  if (result != 0) return result;
  for (const addrinfo* one = list; one != nullptr; one = one->ai_next) {
    SocketAddress address;
    std::memcpy(&address.storage, one->ai_addr, one->ai_addrlen);
    address.length = one->ai_addrlen;
    found.push_back(address);
  }
  freeaddrinfo(list);
  return 0;
}

int open_socket(int family) { return socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0); }

/// Barriers and echoes must not wait for more bytes.
void send_at_once(int fd) {
  const int one = 1;
  (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
}

/// Removes the file of a process that could not clean up, and nothing else.
void remove_left_over(const std::string& file, const SocketAddress& address) {
  struct stat status {};
  if (lstat(file.c_str(), &status) != 0 || !S_ISSOCK(status.st_mode)) return;
  const int probe = open_socket(AF_UNIX);
  if (connect(probe, raw(address), address.length) != 0 && errno == ECONNREFUSED) unlink(file.c_str());
  close(probe);
}

}  // namespace

int listen_at(const Target& target, uint16_t& port, std::string& error) {
  port = target.port;
  SocketAddress address;
  if (target.kind == Target::Kind::kUnix) {
    address = unix_address(target.file);
    remove_left_over(target.file, address);
  } else {
    std::vector<SocketAddress> found;
    const std::string host = target.host.empty() ? "0.0.0.0" : target.host;
    const int result = look_up(host, target.port, AI_NUMERICHOST | AI_NUMERICSERV | AI_PASSIVE, found);
    if (result != 0 || found.empty()) {
      error = fmt::format("'{}' is not the address of an interface", target.host);
      return -1;
    }
    address = found[0];
  }
  const int family = address.storage.ss_family;
  const int fd = open_socket(family);
  const int one = 1;
  if (fd >= 0 && family != AF_UNIX) (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
  // The mode of the socket is that of the file; umask() would be of all threads.
  if (fd >= 0 && family == AF_UNIX) (void)fchmod(fd, 0600);
  if (fd >= 0 && bind(fd, raw(address), address.length) == 0 && listen(fd, SOMAXCONN) == 0) {
    SocketAddress bound;
    bound.length = sizeof bound.storage;
    if (family != AF_UNIX && getsockname(fd, reinterpret_cast<sockaddr*>(&bound.storage), &bound.length) == 0)
      port = ntohs(family == AF_INET ? reinterpret_cast<const sockaddr_in&>(bound.storage).sin_port
                                     : reinterpret_cast<const sockaddr_in6&>(bound.storage).sin6_port);
    return fd;
  }
  error = std::strerror(errno);
  if (fd >= 0) close(fd);
  return -1;
}

int accept_from(int listener, std::string& peer) {
  SocketAddress address;
  address.length = sizeof address.storage;
  const int fd =
      accept4(listener, reinterpret_cast<sockaddr*>(&address.storage), &address.length, SOCK_CLOEXEC | SOCK_NONBLOCK);
  if (fd < 0) return -1;
  if (address.storage.ss_family != AF_UNIX) send_at_once(fd);
  peer = peer_name(address);
  return fd;
}

int begin_connect(const SocketAddress& address, std::string& error) {
  const int fd = open_socket(address.storage.ss_family);
  if (fd >= 0 && address.storage.ss_family != AF_UNIX) send_at_once(fd);
  if (fd >= 0 && (connect(fd, raw(address), address.length) == 0 || errno == EINPROGRESS)) return fd;
  error = std::strerror(errno);
  if (fd >= 0) close(fd);
  return -1;
}

int connect_result(int fd) {
  int error = 0;
  socklen_t length = sizeof error;
  return getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &length) == 0 ? error : errno;
}

std::string peer_name(const SocketAddress& address) {
  char text[INET6_ADDRSTRLEN] = "";
  if (address.storage.ss_family == AF_INET) {
    const auto& in = reinterpret_cast<const sockaddr_in&>(address.storage);
    inet_ntop(AF_INET, &in.sin_addr, text, sizeof text);
    return fmt::format("{}:{}", text, ntohs(in.sin_port));
  }
  if (address.storage.ss_family == AF_INET6) {
    const auto& in = reinterpret_cast<const sockaddr_in6&>(address.storage);
    inet_ntop(AF_INET6, &in.sin6_addr, text, sizeof text);
    return fmt::format("[{}]:{}", text, ntohs(in.sin6_port));
  }
  return {};
}

/// The thread may outlive the Resolution.
struct Resolution::Shared {
  ~Shared() {
    if (event >= 0) close(event);
  }
  int event = -1;
  mutable std::mutex lock;
  bool done = false;
  std::vector<SocketAddress> addresses;
  std::string error;
};

Resolution::Resolution(const Target& target) : shared_(std::make_shared<Shared>()) {
  if (target.kind == Target::Kind::kUnix) {
    shared_->addresses.push_back(unix_address(target.file));
    shared_->done = true;
    return;
  }
  if (look_up(target.host, target.port, AI_NUMERICHOST | AI_NUMERICSERV, shared_->addresses) == 0) {
    shared_->done = true;
    return;
  }
  shared_->event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  try {
    std::thread([shared = shared_, host = target.host, port = target.port] {
      std::vector<SocketAddress> found;
      const int result = look_up(host, port, AI_NUMERICSERV | AI_ADDRCONFIG, found);
      {
        const std::lock_guard guard(shared->lock);
        shared->addresses = std::move(found);
        if (result != 0) shared->error = gai_strerror(result);
        shared->done = true;
      }
      (void)eventfd_write(shared->event, 1);
    }).detach();
  } catch (const std::system_error& error) {
    shared_->error = error.what();
    shared_->done = true;
  }
}

Resolution::~Resolution() = default;

int Resolution::fd() const { return done() ? -1 : shared_->event; }

bool Resolution::done() const {
  const std::lock_guard guard(shared_->lock);
  return shared_->done;
}

std::vector<SocketAddress> Resolution::addresses() const {
  const std::lock_guard guard(shared_->lock);
  return shared_->addresses;
}

std::string Resolution::error() const {
  const std::lock_guard guard(shared_->lock);
  return shared_->error;
}

}  // namespace headrace::openflow
