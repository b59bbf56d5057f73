#pragma once
/// \file
/// A configuration that can be replaced while it runs, and the sockets by which one asks for that.

#include <memory>
#include <string>
#include <vector>

#include "headrace/router.hh"
#include "lang/lang.hh"
#include "runtime/runtime.hh"

namespace headrace::cli {

class LiveConfiguration {
 public:
  using Parse = std::function<Status(const std::string& text, lang::Configuration& out, Errors& errors)>;

  /// \param parse reads the text of a new configuration
  LiveConfiguration(Runtime& runtime, RouterOptions options, Parse parse)
      : runtime_(runtime), options_(std::move(options)), parse_(std::move(parse)) {}
  LiveConfiguration(const LiveConfiguration&) = delete;
  LiveConfiguration& operator=(const LiveConfiguration&) = delete;

  /// Routers made from now on have the handler `hotconfig`.
  void allow_reconfigure();
  /// Routers made from now on have a ControlSocket with these arguments ("UNIX, FILE").
  void add_socket(const std::string& arguments) { sockets_.push_back(arguments); }

  /// The first router.
  std::unique_ptr<Router> make(lang::Configuration configuration, Errors& errors);
  /// Builds `text` aside and lets it take over. With an error, all stays as it is. On another thread than the control
  /// thread, and in a Script, it is done soon afterwards, and errors go to stderr.
  Status replace(const std::string& text, Errors& errors);

 private:
  void add_sockets(lang::Configuration& configuration) const;
  Status replace_now(const std::string& text, Errors& errors);

  Runtime& runtime_;
  RouterOptions options_;
  Parse parse_;
  std::vector<std::string> sockets_;
};

/// "PORT", "PORT+" as the arguments of a ControlSocket.
inline std::string tcp_socket(const std::string& port) { return "TCP, " + port; }
std::string unix_socket(const std::string& file);

}  // namespace headrace::cli
