#include <fmt/format.h>

#include <cstdio>
#include <string_view>

#include "cli/commands.hh"
#include "cli/self_test.hh"
#include "headrace/version.hh"

namespace {

using namespace headrace;

struct Command {
  std::string_view name;
  int (*run)(int argc, char** argv);
  const char* summary;
};

constexpr Command kCommands[] = {
    {"run", &cli::run_command, "run a configuration on all cores and report what it does"},
    {"bench", &cli::bench_command, "measure a configuration"},
    {"patterns", &cli::patterns_command, "measure the search for patterns, on the device and on the CPU"},
    {"limits", &cli::limits_command, "measure what this machine can do: copies, device reads, lookups"},
    {"check", &cli::check_command, "find the mistakes in a configuration without running it"},
    {"graph", &cli::graph_command, "draw a configuration and its chains"},
    {"elements", &cli::elements_command, "list the elements, or show one element's page"},
    {"flatten", &cli::flatten_command, "print a configuration without compound elements"},
    {"click", &cli::click_command, "run a configuration as Click's user-level driver does"},
};

/// Programs of Click that this executable stands in for when it is called by their names.
constexpr Command kPrograms[] = {
    {"click", &cli::click_command, ""},
    {"click-flatten", &cli::flatten_command, ""},
    {"click-buildtool", &cli::buildtool_command, ""},
};

void print_help() {
  fmt::print(
      "Headrace, a software router for Click-language configurations.\n\nUsage: headrace COMMAND [OPTION]...\n\n");
  for (const Command& c : kCommands) fmt::print("  {:<10}{}\n", c.name, c.summary);
  if (self_test) fmt::print("  {:<10}{}\n", "selftest", "run the tests that are built into this binary");
  fmt::print(
      "\n'headrace COMMAND --help' tells more about a command, 'headrace --version' what this binary was made from.\n"
      "Called by the name 'click' or 'click-flatten', it behaves as that program of Click does.\n");
}

}  // namespace

int main(int argc, char** argv) {
  std::string_view program = argc > 0 ? argv[0] : "headrace";
  program.remove_prefix(program.rfind('/') + 1);  // npos + 1 is 0
  for (const Command& c : kPrograms)
    if (c.name == program) return c.run(argc, argv);

  const std::string_view command = argc > 1 ? argv[1] : "";
  for (const Command& c : kCommands)
    if (c.name == command) return c.run(argc - 1, argv + 1);
  if (self_test && command == "selftest") return self_test(argc - 1, argv + 1);
  if (command == "--help" || command == "help") {
    print_help();
    return 0;
  }
  if (command == "--version" || command == "-v") {
    fmt::print("headrace {}\ncommit {}\n{}\n", kVersion, kCommit, kBuild);
    return 0;
  }
  if (command.empty())
    fmt::print(stderr, "headrace: no command given\n");
  else
    fmt::print(stderr, "headrace: unknown command '{}'\n", command);
  fmt::print(stderr, "Try 'headrace --help' for more information.\n");
  return 1;
}
