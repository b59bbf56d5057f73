// The part of click-buildtool that test suites ask: which classes and features there are.

#include <fmt/format.h>

#include <cstdio>
#include <set>
#include <string>
#include <string_view>

#include "cli/commands.hh"
#include "cli/output.hh"
#include "headrace/element.hh"

namespace headrace::cli {

namespace {

/// Names of Click's build features that hold here. The `linuxmodule` and other drivers do not.
constexpr std::string_view kFeatures[] = {"userlevel", "umultithread", "int64", "ip6"};

constexpr const char* kBuildtoolUsage =
    "Usage: click-buildtool provides [--query] [--print] [--provide NAME] [NAME...]\n"
    "Exits with status 0 if there is an element class or feature of each NAME, else with 1.\n";

}  // namespace

int buildtool_command(int argc, char** argv) {
  if (argc < 2 || std::string_view(argv[1]) != "provides") {
    complain("click-buildtool: only 'provides' is supported\n{}", kBuildtoolUsage);
    return 1;
  }
  std::set<std::string, std::less<>> provisions(std::begin(kFeatures), std::end(kFeatures));
  for (const ElementInfo* info : all_element_infos()) provisions.insert(info->name);
  bool query = false, answer = false, all = true;
  std::set<std::string> wanted;
  for (int i = 2; i < argc; ++i) {
    const std::string_view word = argv[i];
    if (word == "-q" || word == "--query") {
      query = true;
    } else if (word == "-l" || word == "--print") {
      answer = true;
    } else if ((word == "-r" || word == "--provide") && i + 1 < argc) {
      provisions.insert(argv[++i]);
    } else if (word == "-h" || word == "--help") {
      print("{}", kBuildtoolUsage);
      return 0;
    } else if (word.starts_with('-')) {
      complain("{}", kBuildtoolUsage);
      return 1;
    } else {
      wanted.emplace(word);
    }
  }
  if (query)
    for (const std::string& p : provisions) print("{}\n", p);
  for (const std::string& name : wanted) all &= provisions.contains(name);
  if (answer) print("{}\n", all ? 1 : 0);
  return all ? 0 : 1;
}

}  // namespace headrace::cli
