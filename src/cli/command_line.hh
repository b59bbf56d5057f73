#pragma once
/// \file
/// The command line of one command: CLI11 with what all commands share.

#include <CLI/CLI.hpp>
#include <optional>
#include <string>
#include <string_view>

namespace headrace::cli {

/// Every command has -h, --help and -V, --version. An option with a value names it by option_text("N").
class CommandLine : public CLI::App {
 public:
  /// \param name "headrace run"
  /// \param operands what follows the options, as the usage line shows it
  CommandLine(std::string name, std::string description, std::string operands = "");

  /// Parses. The exit status if the command ends here: after --help, --version or a mistake, which has been reported.
  std::optional<int> read(int argc, char** argv);

  /// Reports a mistake in the command line. Returns the exit status.
  int misuse(std::string_view message) const;

  std::string help_text() const;
  /// Name, operands and options as JSON, for programs that make man pages and completions. The hidden option --describe
  /// prints it.
  std::string description_as_json() const;
  /// The command's section of the man page, as troff. The hidden option --man prints it.
  std::string man_section() const;
  /// The command's branch of the completion script for bash. The hidden option --bash-completion prints it.
  std::string completion_branch() const;

 private:
  std::string operands_;
};

/// "headrace 0.1.0", the commit and the build, a line each.
std::string version_text();

}  // namespace headrace::cli
