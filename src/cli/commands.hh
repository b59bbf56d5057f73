#pragma once
/// \file
/// The commands of the executable. Each gets its own name as argv[0] and returns the exit status.

#include <vector>

namespace headrace::cli {

/// `headrace run`: runs a configuration on all cores, with a line every second and a report.
int run_command(int argc, char** argv);
/// `headrace bench`: measures a configuration.
int bench_command(int argc, char** argv);
/// `headrace check`: everything but running.
int check_command(int argc, char** argv);
/// `headrace compile`: the chains of a configuration as a file.
int compile_command(int argc, char** argv);
/// `headrace graph`: a configuration and its chains as DOT or SVG.
int graph_command(int argc, char** argv);
/// `headrace balance`: balancers on traces and simulated machines.
int balance_command(int argc, char** argv);
/// `headrace elements`: the table of elements, or one element's page.
int elements_command(int argc, char** argv);
/// `headrace flatten`: a configuration without compound elements.
int flatten_command(int argc, char** argv);
/// The name click-flatten: the same with the options of that program.
int click_flatten_command(int argc, char** argv);
/// `headrace click`, and the name click: Click's user-level driver.
int click_command(int argc, char** argv);
/// The name click-buildtool: answers `provides`.
int buildtool_command(int argc, char** argv);

struct Command {
  const char* name;
  int (*run)(int argc, char** argv);
  const char* summary;
};

/// A command from outside of src/cli, such as a benchmark or the tests of a portable binary: a static object of this
/// type adds it to the executable.
class ExtraCommand {
 public:
  explicit ExtraCommand(Command command) { all().push_back(command); }
  static std::vector<Command>& all();
};

}  // namespace headrace::cli
