#include "control/control_server.hh"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <utility>

#include "headrace/router.hh"
#include "runtime/runtime.hh"

namespace headrace::control {

namespace {

constexpr int kPortsTried = 20;
/// A client that reads nothing must not fill the memory. While so many bytes of answers have not been sent, its commands
/// wait,
constexpr size_t kMostUnsent = 1u << 20;
/// and when so many bytes of commands wait, it is not read from.
constexpr size_t kMostWaiting = 64u << 20;
/// Of commands that are carried out in a turn.
constexpr size_t kMostOfTurn = 65536;

std::mutex g_lock;
std::map<ControlServer::Place, std::weak_ptr<ControlServer>> g_servers;

int listen_unix(const std::string& file, Errors& errors) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (file.size() >= sizeof address.sun_path) {
    (void)errors.error("FILENAME: at most {} characters", sizeof address.sun_path - 1);
    return -1;
  }
  std::memcpy(address.sun_path, file.c_str(), file.size() + 1);
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  // A socket without a listener is left over from a process that could not clean up. Anything else is not ours to
  // remove.
  struct stat status {};
  if (lstat(file.c_str(), &status) == 0 && S_ISSOCK(status.st_mode)) {
    // Not blocking: a listener that is busy for a while would keep us waiting, and answers with EAGAIN.
    const int probe = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (connect(probe, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0 && errno == ECONNREFUSED)
      unlink(file.c_str());
    close(probe);
  }
  const mode_t mask = umask(0177);
  const bool good =
      fd >= 0 && bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0 && listen(fd, SOMAXCONN) == 0;
  umask(mask);
  if (good) return fd;
  (void)errors.error("{}: {}", file, std::strerror(errno));
  if (fd >= 0) close(fd);
  return -1;
}

int listen_tcp(uint16_t first, bool next_free, bool local, uint16_t& port, Errors& errors) {
  for (int n = 0; n < (next_free ? kPortsTried : 1) && first + n <= 65535; ++n) {
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) break;
    const int one = 1;
    (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(first + n));
    address.sin_addr.s_addr = htonl(local ? INADDR_LOOPBACK : INADDR_ANY);
    if (bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0 && listen(fd, SOMAXCONN) == 0) {
      socklen_t length = sizeof address;
      getsockname(fd, reinterpret_cast<sockaddr*>(&address), &length);
      port = ntohs(address.sin_port);
      return fd;
    }
    const int why = errno;
    close(fd);
    errno = why;
    if (why != EADDRINUSE) break;
  }
  (void)errors.error("TCP port {}: {}", first, std::strerror(errno));
  return -1;
}

/// Descriptor `number`, which the process was started with, as a connection.
int inherit(const std::string& number, Errors& errors) {
  const int fd = std::stoi(number);
  int type = 0;
  socklen_t length = sizeof type;
  if (getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &length) != 0 || type != SOCK_STREAM) {
    (void)errors.error("file descriptor {}: {}", number, errno == EBADF ? std::strerror(errno) : "not a stream socket");
    return -1;
  }
  if (fcntl(fd, F_SETFD, FD_CLOEXEC) == 0 && fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK) == 0) return fd;
  (void)errors.error("file descriptor {}: {}", number, std::strerror(errno));
  return -1;
}

}  // namespace

struct ControlServer::Connection {
  ControlSession session;
  std::string peer;
  std::string in;         // commands
  size_t taken = 0;       // of `in`, by the session
  std::string out;        // answers
  size_t sent = 0;        // of `out`
  bool ended = false;     // the client sends no more
  bool closing = false;   // nothing more is carried out
  short events = POLLIN;  // that are watched

  size_t waiting() const { return in.size() - taken; }
  bool backlog() const { return !closing && (session.more() || waiting() > 0); }
};

/// What worker threads (which make and destroy elements) and the control thread both see.
struct ControlServer::Shared {
  mutable std::mutex lock;
  std::vector<const ControlPolicy*> policies;
  std::map<int, std::unique_ptr<Connection>> connections;
};

std::shared_ptr<ControlServer> ControlServer::at(const Place& place, Runtime& runtime, Errors& errors) {
  const std::lock_guard guard(g_lock);
  std::weak_ptr<ControlServer>& known = g_servers[place];
  if (std::shared_ptr<ControlServer> server = known.lock(); server && &server->runtime_ == &runtime) return server;
  uint16_t port = 0;
  int fd;
  if (place.kind == Place::Kind::kUnix) {
    fd = listen_unix(place.name, errors);
  } else if (place.kind == Place::Kind::kConnection) {
    fd = inherit(place.name, errors);
  } else {
    const bool next_free = place.name.ends_with('+');
    fd = listen_tcp(static_cast<uint16_t>(std::stoi(place.name)), next_free, place.local, port, errors);
  }
  if (fd < 0) return nullptr;
  std::shared_ptr<ControlServer> server(new ControlServer(runtime, fd, place, port));
  known = server;
  return server;
}

ControlServer::ControlServer(Runtime& runtime, int fd, Place place, uint16_t port)
    : runtime_(runtime),
      fd_(place.kind == Place::Kind::kConnection ? -1 : fd),
      place_(std::move(place)),
      port_(port),
      shared_(std::make_unique<Shared>()) {
  if (fd_ >= 0)
    runtime_.watch(fd_, [this] { accept_one(); });
  else
    greet(fd, "");
}

ControlServer::~ControlServer() {
  if (fd_ >= 0) {
    runtime_.watch(fd_, nullptr);
    close(fd_);
  }
  for (const auto& [fd, connection] : shared_->connections) {
    runtime_.watch(fd, nullptr);
    close(fd);
  }
  if (place_.kind == Place::Kind::kUnix) unlink(place_.name.c_str());
}

void ControlServer::join(const ControlPolicy* policy) {
  const std::lock_guard guard(shared_->lock);
  shared_->policies.push_back(policy);
}

void ControlServer::leave(const ControlPolicy* policy) {
  const std::lock_guard guard(shared_->lock);
  std::erase(shared_->policies, policy);
}

const ControlPolicy* ControlServer::policy() const {
  const std::lock_guard guard(shared_->lock);
  for (const ControlPolicy* p : shared_->policies)
    if (&p->policy_router() == runtime_.current()) return p;
  return nullptr;
}

void ControlServer::report(const char* what, const std::string& peer) const {
  const ControlPolicy* p = policy();
  const std::string name = p ? p->reports_as() : std::string();
  if (name.empty()) return;
  const std::string line = fmt::format("{}: {} {}\n", name, what, peer);
  std::fwrite(line.data(), 1, line.size(), stderr);
}

size_t ControlServer::connections() const {
  const std::lock_guard guard(shared_->lock);
  return shared_->connections.size();
}

void ControlServer::accept_one() {
  sockaddr_storage address{};
  socklen_t length = sizeof address;
  const int fd = accept4(fd_, reinterpret_cast<sockaddr*>(&address), &length, SOCK_CLOEXEC | SOCK_NONBLOCK);
  if (fd < 0) return;
  std::string from;
  if (address.ss_family == AF_INET) {
    const auto& in = reinterpret_cast<const sockaddr_in&>(address);
    char text[INET_ADDRSTRLEN];
    inet_ntop(AF_INET, &in.sin_addr, text, sizeof text);
    from = fmt::format(" from {}.{}", text, ntohs(in.sin_port));
  }
  greet(fd, from);
}

void ControlServer::greet(int fd, const std::string& from) {
  auto connection = std::make_unique<Connection>();
  connection->peer = fmt::format("connection {}{}", fd, from);
  report("opened", connection->peer);
  const std::string greeting = ControlSession::greeting();
  // A client that has left already is noticed by serve().
  (void)!send(fd, greeting.data(), greeting.size(), MSG_NOSIGNAL);
  {
    const std::lock_guard guard(shared_->lock);
    shared_->connections.emplace(fd, std::move(connection));
  }
  runtime_.watch(fd, [this, fd] { serve(fd); });
}

void ControlServer::serve(int fd) {
  // A command may end the configuration and with it the last element that holds this server.
  std::shared_ptr<ControlServer> self;
  {
    const std::lock_guard guard(g_lock);
    self = g_servers[place_].lock();
  }
  Connection* connection = nullptr;
  {
    const std::lock_guard guard(shared_->lock);
    if (const auto it = shared_->connections.find(fd); it != shared_->connections.end()) connection = it->second.get();
  }
  if (!self || !connection) return;
  if (!take_turn(fd, *connection)) {
    close_connection(fd);
    return;
  }
  // Whoever sends thousands of commands before it reads an answer gets them all, and others have their turns meanwhile.
  short events = 0;
  if (!connection->ended && connection->waiting() < kMostWaiting) events |= POLLIN;
  if (connection->backlog() || !connection->out.empty()) events |= POLLOUT;
  if (std::exchange(connection->events, events) != events)
    runtime_.watch(
        fd, [this, fd] { serve(fd); }, events);
}

bool ControlServer::take_turn(int fd, Connection& connection) {
  if (!connection.ended && connection.waiting() < kMostWaiting) {
    char bytes[65536];
    const ssize_t n = read(fd, bytes, sizeof bytes);
    if (n < 0 && errno != EAGAIN && errno != EINTR) return false;
    connection.ended = n == 0;
    if (n > 0 && !connection.closing) {
      // Not in each turn, for the rest may be long.
      if (connection.taken >= connection.in.size() / 2) connection.in.erase(0, std::exchange(connection.taken, 0));
      connection.in.append(bytes, static_cast<size_t>(n));
    }
  }
  if (connection.backlog() && connection.out.size() - connection.sent < kMostUnsent) {
    connection.out.erase(0, std::exchange(connection.sent, 0));
    ControlSession::Rights rights;
    if (const ControlPolicy* p = policy()) rights = {.write = !p->read_only(), .proxy = p->proxy()};
    // A client may send thousands of route changes at a time. Its answers follow when devices have them.
    const Router::UpdatesTogether together(runtime_);
    const size_t n = connection.session.more() ? 0 : std::min(connection.waiting(), kMostOfTurn);
    const std::string_view now = std::string_view(connection.in).substr(connection.taken, n);
    connection.taken += n;
    connection.closing = !connection.session.take(
        now, [this] { return runtime_.current(); }, rights, connection.out, kMostUnsent);
  }
  while (connection.sent < connection.out.size()) {
    const ssize_t w =
        send(fd, connection.out.data() + connection.sent, connection.out.size() - connection.sent, MSG_NOSIGNAL);
    if (w < 0 && errno == EINTR) continue;
    if (w < 0 && errno == EAGAIN) return true;
    if (w <= 0) return false;
    connection.sent += static_cast<size_t>(w);
  }
  connection.out.clear();
  connection.sent = 0;
  return !connection.closing && (!connection.ended || connection.backlog());
}

void ControlServer::close_connection(int fd) {
  runtime_.watch(fd, nullptr);
  close(fd);
  std::unique_ptr<Connection> connection;
  {
    const std::lock_guard guard(shared_->lock);
    if (const auto it = shared_->connections.find(fd); it != shared_->connections.end()) {
      connection = std::move(it->second);
      shared_->connections.erase(it);
    }
  }
  if (connection) report("closed", connection->peer);
}

}  // namespace headrace::control
