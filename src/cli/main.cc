#include <fmt/format.h>
#include <sys/resource.h>

#include <exception>
#include <new>
#include <string>
#include <string_view>
#include <vector>

#include "cli/command_line.hh"
#include "cli/commands.hh"
#include "cli/man_page.hh"
#include "cli/output.hh"

namespace {

using namespace headrace;
using cli::Command;
using cli::complain;
using cli::print;

constexpr Command kCommands[] = {
    {"run", &cli::run_command, "run a configuration on all cores and report what it does"},
    {"bench", &cli::bench_command, "measure a configuration"},
    {"check", &cli::check_command, "find the mistakes in a configuration without running it"},
    {"compile", &cli::compile_command, "compile a configuration's chains for a machine without a compiler"},
    {"graph", &cli::graph_command, "draw a configuration and its chains"},
    {"balance", &cli::balance_command, "try a balancer on a trace or a simulated machine"},
    {"elements", &cli::elements_command, "list the elements, or show one element's page"},
    {"flatten", &cli::flatten_command, "print a configuration without compound elements"},
    {"click", &cli::click_command, "run a configuration as Click's user-level driver does"},
};

/// Programs of Click that this executable stands in for when it is called by their names.
constexpr Command kPrograms[] = {
    {"click", &cli::click_command, ""},
    {"click-flatten", &cli::click_flatten_command, ""},
    {"click-buildtool", &cli::buildtool_command, ""},
};

std::vector<Command> all_commands() {
  std::vector<Command> all(std::begin(kCommands), std::end(kCommands));
  all.insert(all.end(), cli::ExtraCommand::all().begin(), cli::ExtraCommand::all().end());
  return all;
}

void print_help() {
  print("Headrace, a software router for Click-language configurations.\n\nUsage: headrace COMMAND [OPTION]...\n\n");
  for (const Command& c : all_commands()) print("  {:<10}{}\n", c.name, c.summary);
  print(
      "\n'headrace COMMAND --help' tells more about a command, 'headrace --version' what\n"
      "this program was made from. Called by the name 'click' or 'click-flatten', it\n"
      "behaves as that program of Click does.\n");
}

/// Names and summaries of the commands, a line each, for programs that make man pages and completions; the options of
/// one are printed by `headrace COMMAND --describe`.
void print_commands() {
  for (const Command& c : all_commands()) print("{}\t{}\n", c.name, c.summary);
}

/// \param name becomes the command's name, for messages
int run(int argc, char** argv, std::string& name) {
  for (const Command& c : kPrograms)
    if (c.name == name) return c.run(argc, argv);

  const std::string_view word = argc > 1 ? argv[1] : "";
  name = "headrace";
  const auto find = [&](const auto& commands) -> const Command* {
    for (const Command& c : commands)
      if (c.name == word) return &c;
    return nullptr;
  };
  const Command* command = find(kCommands);
  if (!command) command = find(cli::ExtraCommand::all());
  if (command) {
    name += fmt::format(" {}", command->name);
    return command->run(argc - 1, argv + 1);
  }
  if (word == "--help" || word == "-h" || word == "help") {
    print_help();
    return 0;
  }
  if (word == "--version" || word == "-V" || word == "-v") {
    cli::write_output(cli::version_text());
    return 0;
  }
  if (word == "--describe") {
    print_commands();
    return 0;
  }
  if (word == "--man") {
    cli::print_man_page(all_commands());
    return 0;
  }
  if (word == "--bash-completion") {
    cli::print_bash_completion(all_commands());
    return 0;
  }
  if (word.empty())
    complain("headrace: no command given\n");
  else
    complain("headrace: unknown command '{}'\n", word);
  complain("Try 'headrace --help' for more information.\n");
  return cli::kUsage;
}

/// ", the limit of this process (ulimit -v) is 400 MB", where there is one.
std::string memory_limit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return {};
  return fmt::format("; this process may use {} MB of address space (ulimit -v)", limit.rlim_cur / 1000000);
}

}  // namespace

int main(int argc, char** argv) {
  cli::hold_standard_streams();
  std::string name = argc > 0 ? argv[0] : "headrace";
  name.erase(0, name.rfind('/') + 1);  // npos + 1 is 0
  int status = cli::kFailed;
  try {
    status = run(argc, argv, name);
  } catch (const std::bad_alloc& e) {
    complain("{}: out of memory: {}{}\n", name, e.what(), memory_limit());
  } catch (const std::exception& e) {
    complain("{}: {}\n", name, e.what());
  }
  return cli::finish_output(name, status);
}
