#pragma once
/// \file
/// The server behind ControlSocket elements: listens, and speaks the protocol on the runtime's control thread. It
/// belongs to the process: elements of one configuration after the other share it.

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "headrace/error.hh"

namespace headrace {
class Router;
class Runtime;
}  // namespace headrace

namespace headrace::control {

/// How the configuration of one router wants connections to be treated.
class ControlPolicy {
 public:
  virtual const Router& policy_router() const = 0;
  virtual bool read_only() const = 0;
  virtual std::string proxy() const = 0;
  /// A name for messages about connections; empty: no such messages.
  virtual std::string reports_as() const = 0;

 protected:
  ~ControlPolicy() = default;
};

class ControlServer {
 public:
  struct Place {
    enum class Kind { kUnix, kTcp, kConnection };
    Kind kind = Kind::kUnix;
    std::string name;   // of the file; the port, with a '+' if the next free one will do; a connection's descriptor
    bool local = true;  // TCP: only from this machine
    auto operator<=>(const Place&) const = default;
  };

  /// The server at `place`, which is opened unless there is one. Null with an error if that fails.
  static std::shared_ptr<ControlServer> at(const Place& place, Runtime& runtime, Errors& errors);
  ~ControlServer();
  ControlServer(const ControlServer&) = delete;
  ControlServer& operator=(const ControlServer&) = delete;

  /// `policy` holds while its router is the current one.
  void join(const ControlPolicy* policy);
  void leave(const ControlPolicy* policy);

  Runtime& runtime() const { return runtime_; }
  uint16_t port() const { return port_; }
  size_t connections() const;

 private:
  ControlServer(Runtime& runtime, int fd, Place place, uint16_t port);
  /// That of the router that runs, or null.
  const ControlPolicy* policy() const;
  void report(const char* what, const std::string& peer) const;
  void accept_one();
  void greet(int fd, const std::string& from);
  struct Shared;
  struct Connection;
  void serve(int fd);
  /// Takes in what the client has sent, carries commands out and sends answers, without waiting. False: that was all.
  bool take_turn(int fd, Connection& connection);
  void close_connection(int fd);

  Runtime& runtime_;
  const int fd_;  // listens; -1: there is the one connection only
  const Place place_;
  const uint16_t port_;
  std::unique_ptr<Shared> shared_;
};

/// One client. Takes bytes in, gives answers out; knows nothing of sockets, so that tests can feed it.
class ControlSession {
 public:
  struct Rights {
    bool write = true;
    std::string proxy;
  };
  /// Most bytes that one command may bring.
  static constexpr size_t kMostData = 64u << 20;

  /// What a client is told first.
  static std::string greeting();
  /// Takes `bytes` in and appends what is to be answered to `out`. Whole commands are carried out, until `out` has `most`
  /// bytes; `router` is asked for before each, as a command may replace it. False when the connection is to be closed.
  template <typename RouterNow>
  bool take(std::string_view bytes, const RouterNow& router, const Rights& rights, std::string& out,
            size_t most = SIZE_MAX) {
    if (!add(bytes, out)) return false;
    more_ = true;
    while (out.size() < most) {
      more_ = command_complete();
      if (!more_) break;
      Router* r = router();
      if (!carry_out(r, rights, out)) return false;
    }
    return true;
  }
  /// Whether take() may have left commands for its next call.
  bool more() const { return more_; }

 private:
  struct Command {
    std::string verb;
    std::vector<std::string> words;  // behind the verb
    std::string data;
    int code = 0;  // of the error with which it is answered, when it cannot be carried out
    std::string error;
  };
  bool add(std::string_view bytes, std::string& out);
  /// Whether in_ begins with a whole command; it is then in command_ and no longer in in_.
  bool command_complete();
  bool take_line(std::string& line, size_t& end) const;
  bool carry_out(Router* router, const Rights& rights, std::string& out);
  void read_or_write(Router& router, const Rights& rights, bool write, std::string& out);
  void check(Router& router, const Rights& rights, bool write, std::string& out);

  std::string in_;
  Command command_;
  bool more_ = false;
  uint64_t skip_ = 0;  // bytes of refused data that are still to come
};

}  // namespace headrace::control
