#include "cli/commands.hh"

namespace headrace::cli {

std::vector<Command>& ExtraCommand::all() {
  // Made by whichever static object is first.
  static std::vector<Command> commands;
  return commands;
}

}  // namespace headrace::cli
