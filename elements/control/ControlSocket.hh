#pragma once

#include <headrace/element.hh>
#include <headrace/touches_machine.hh>

namespace headrace {

namespace control {
class ControlServer;
}

/// Lets other programs read and write handlers, in the line protocol of Click's ControlSocket 1.3.
///
///     ControlSocket(UNIX, FILENAME [, keyword READONLY, PROXY, VERBOSE, RETRIES, RETRY_WARNINGS])
///     ControlSocket(TCP, PORT [, keyword LOCALHOST, and the same])
///     ControlSocket(SOCKET, FD [, the same as UNIX])
///
/// FILENAME: the socket's file; only its owner may connect. PORT: a port, or "PORT+" for the first free one of the 20
/// from there on. FD: a connection that the program was started with, a stream socket; there is no other then.
///
/// LOCALHOST false: connections from everywhere, not only from this machine. Whoever connects may change the router:
/// there is no password. Default true.
/// READONLY true: no write handlers. Default false.
/// PROXY NAME: handler `e.h` means that of element `NAME/e`, else `e`. Default none.
/// VERBOSE true: says who connects. Default false.
/// RETRIES: while the socket cannot be opened, it is tried again once a second, so many times; then the router stops.
/// Default 0: an error when the router starts.
/// RETRY_WARNINGS false: only the last failure is said. Default true.
///
/// Commands, a line each: READ HANDLER [ARGS], READDATA HANDLER N, READUNTIL HANDLER [END], WRITE HANDLER [ARGS],
/// WRITEDATA HANDLER N, WRITEUNTIL HANDLER [END], CHECKREAD HANDLER, CHECKWRITE HANDLER, HELP, QUIT. A HANDLER is
/// `element.handler`, `N.handler` with the N-th element, or `handler` for the router's own. N bytes, or the lines up to
/// END (default: an empty one), follow the command's line. Answers begin with a code: 200 success, 220 success with
/// warnings, 500 syntax, 501 no such command, 510 no such element, 511 no such handler, 520 the handler failed, 521 too
/// much data (64 MiB), 530 not permitted, 540 no router, 590 another error; a line that is not the last has a hyphen
/// behind it. What was read follows as "DATA N" and N bytes.
///
/// Connections outlive the configuration: when another one takes over that has a ControlSocket with the same socket,
/// they go on with it. Commands run on a thread of their own and do not keep packets waiting, but for write handlers
/// that need the workers to stand still.
///
/// Handlers: `port` (r) TCP port in use; `filename` (r); `connections` (r) how many there are.
class ControlSocket : public Element, public TouchesMachine {
 public:
  static constexpr Ports kPorts{"0/0"};

  ControlSocket();
  ~ControlSocket() override;
  Status configure(Args& args) override;
  Status initialize(Errors& errors) override;
  void add_handlers(Handlers& handlers) override;
  void run_timer(Timer& timer) override;

  bool read_only() const { return read_only_; }
  bool verbose() const { return verbose_; }
  const std::string& proxy() const { return proxy_; }

 private:
  Status open(Errors& errors);

  std::string type_ = "UNIX";
  std::string place_;  // file name; port with '+' or without; file descriptor
  bool local_ = true;
  bool read_only_ = false;
  bool verbose_ = false;
  bool retry_warnings_ = true;
  int retries_ = 0;
  std::string proxy_;
  Timer retry_{this};
  std::shared_ptr<control::ControlServer> server_;
};

HEADRACE_ELEMENT(ControlSocket)

}  // namespace headrace
