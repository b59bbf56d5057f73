#pragma once

#include <headrace/element.hh>
#include <headrace/touches_machine.hh>

namespace headrace {

namespace control {
class ControlServer;
}

/// Lets other programs read and write handlers through the protocol of Click's ControlSocket, version 1.3.
///
///     ControlSocket(UNIX, FILENAME [, keyword READONLY, PROXY, VERBOSE, RETRIES, RETRY_WARNINGS])
///     ControlSocket(TCP, PORT [, keyword LOCALHOST, and the same])
///     ControlSocket(SOCKET, FD [, the same as UNIX])
///
/// FILENAME: the socket's file; only its owner may connect. PORT: a port, or "PORT+" for the first free one of the 20
/// ports from PORT on. FD: an inherited, connected stream socket, which is then the only connection.
///
/// LOCALHOST false: accepts connections from anywhere, not only from this machine. There is no password: any client can
/// change the router. Default true.
/// READONLY true: rejects writes. Default false.
/// PROXY NAME: handler `e.h` means that of element `NAME/e`, else `e`. Default none.
/// VERBOSE true: reports connections. Default false.
/// RETRIES: number of retries, one per second, if the socket cannot be opened; then the router stops.
/// Default 0: an error when the router starts.
/// RETRY_WARNINGS false: only the last failure is reported. Default true.
///
/// Commands, a line each: READ HANDLER [ARGS], READDATA HANDLER N, READUNTIL HANDLER [END], WRITE HANDLER [ARGS],
/// WRITEDATA HANDLER N, WRITEUNTIL HANDLER [END], CHECKREAD HANDLER, CHECKWRITE HANDLER, HELP, QUIT. A HANDLER is
/// `element.handler`, `N.handler` with the N-th element, or `handler` for the router's own. N bytes, or the lines up to
/// END (default: an empty one), follow the command's line. Answers begin with a code: 200 success, 220 success with
/// warnings, 500 syntax, 501 no such command, 510 no such element, 511 no such handler, 520 the handler failed, 521 too
/// much data (64 MiB), 530 not permitted, 540 no router, 590 another error; in all lines but the last, a hyphen follows
/// the code. The value read follows as "DATA N" and N bytes.
///
/// Connections survive a hot swap if the new configuration has a ControlSocket with the same socket. Commands run on a
/// separate thread and do not delay packets, except for write handlers that must stop the workers.
///
/// Handlers: `port` (r) TCP port in use; `filename` (r); `connections` (r) number of connections.
class ControlSocket : public Element, public TouchesMachine {
 public:
  static constexpr Ports kPorts{"0/0"};

  ControlSocket();
  ~ControlSocket() override;
  Status configure(Args& args) override;
  Status initialize(Errors& errors) override;
  void add_handlers(Handlers& handlers) override;
  void run_timer(Timer& timer) override;

 private:
  struct Policy;  // what the server asks of this element

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
  std::unique_ptr<Policy> policy_;
};

HEADRACE_ELEMENT(ControlSocket)

}  // namespace headrace
