#include "elements/control/ControlSocket.hh"

#include <fmt/format.h>

#include "control/control_server.hh"
#include "headrace/router.hh"
#include "runtime/runtime.hh"

namespace headrace {

struct ControlSocket::Policy final : control::ControlPolicy {
  explicit Policy(const ControlSocket& socket) : socket(socket) {}
  const Router& policy_router() const override { return socket.router(); }
  bool read_only() const override { return socket.read_only_; }
  std::string proxy() const override { return socket.proxy_; }
  std::string reports_as() const override { return socket.verbose_ ? socket.declaration() : std::string(); }
  const ControlSocket& socket;
};

ControlSocket::ControlSocket() : policy_(std::make_unique<Policy>(*this)) {}

ControlSocket::~ControlSocket() {
  if (server_) server_->leave(policy_.get());
}

Status ControlSocket::configure(Args& args) {
  std::string type, place;
  Status status = args.read_mp("TYPE", type)
                      .read_mp("PLACE", place)
                      .read("READONLY", read_only_)
                      .read("PROXY", proxy_)
                      .read("VERBOSE", verbose_)
                      .read("LOCALHOST", local_)
                      .read("RETRIES", retries_)
                      .read("RETRY_WARNINGS", retry_warnings_)
                      .complete();
  if (!status.ok()) return status;
  for (char& c : type) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  if (type != "TCP" && type != "UNIX" && type != "SOCKET")
    return args.errors().error("TYPE: expected TCP, UNIX or SOCKET");
  type_ = type;
  place_ = place;
  if (type_ == "UNIX") return place_.empty() ? args.errors().error("FILENAME: expected the name of a file") : Status();
  if (type_ == "SOCKET") {
    if (place_.empty() || place_.size() > 6 || place_.find_first_not_of("0123456789") != std::string::npos)
      return args.errors().error("FD: expected a file descriptor");
    return {};
  }
  const std::string digits = place_.substr(0, place_.size() - place_.ends_with('+'));
  if (digits.empty() || digits.size() > 5 || digits.find_first_not_of("0123456789") != std::string::npos ||
      std::stoi(digits) > 65535)
    return args.errors().error(
        "PORT: expected a TCP port from 0 to 65535, with a '+' behind it if the next free one will do");
  return {};
}

Status ControlSocket::open(Errors& errors) {
  using Kind = control::ControlServer::Place::Kind;
  const Kind kind = type_ == "UNIX" ? Kind::kUnix : type_ == "TCP" ? Kind::kTcp : Kind::kConnection;
  server_ = control::ControlServer::at({kind, place_, local_}, router().runtime(), errors);
  if (!server_) return Status::failed();
  server_->join(policy_.get());
  return {};
}

Status ControlSocket::initialize(Errors& errors) {
  if (retries_ <= 0) return open(errors);
  Errors quiet;
  if (open(quiet).ok()) return {};
  if (retry_warnings_)
    for (const std::string& line : quiet.lines()) errors.warning("{} (tried again {} times)", line, retries_);
  retry_.initialize();
  retry_.schedule_after(Timestamp::from_sec(1));
  return {};
}

void ControlSocket::run_timer(Timer&) {
  Errors quiet;
  if (open(quiet).ok()) return;
  Errors errors(Errors::Output::kStderr);
  const bool last = --retries_ <= 0;
  if (last || retry_warnings_)
    for (const std::string& line : quiet.lines()) errors.warning_at(landmark(), "{}: {}", declaration(), line);
  if (last)
    router().request_stop();
  else
    retry_.schedule_after(Timestamp::from_sec(1));
}

void ControlSocket::add_handlers(Handlers& handlers) {
  handlers
      .read("port", [this] { return server_ && type_ == "TCP" ? fmt::format("{}", server_->port()) : std::string(); })
      .read("filename", [this] { return type_ == "UNIX" ? place_ : std::string(); })
      .read("connections", [this] { return fmt::format("{}", server_ ? server_->connections() : 0); });
}

}  // namespace headrace
