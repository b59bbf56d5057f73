// `headrace elements`: what there is to build a router from.

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include "cli/commands.hh"
#include "cli/element_page.hh"
#include "cli/options.hh"
#include "headrace/element.hh"
#include "runtime/packages.hh"

namespace headrace::cli {

namespace {

enum OptionId { kPackage, kClickpath, kHelp };

using Value = Option::Value;
constexpr Option kOptions[] = {
    {kPackage, "package", 'p', Value::kRequired},
    {kClickpath, "clickpath", 'C', Value::kRequired},
    {kHelp, "help"},
};

constexpr const char* kHelpText =
    R"(Usage: headrace elements [OPTION]... [NAME...]

Without NAME, lists all elements: their ports (inputs/outputs), how these work (h push, l pull, a either), whether the
element is a shader, which CPUs and GPUs can run, or code for the host, and what it does. With NAME, prints the
element's page.

  -p, --package NAME         load the elements of a package first
  -C, --clickpath PATH       folders for packages, separated by ':'
      --help
)";

void print_table() {
  struct Row {
    std::string name, ports, processing, runs_on, summary;
  };
  std::vector<Row> rows{{"element", "ports", "mode", "runs on", "summary"}};
  for (const ElementInfo* info : all_element_infos()) {
    const std::string summary = std::string_view(info->name) != info->documented_as
                                    ? fmt::format("Another name for {}.", info->documented_as)
                                    : summary_of(element_page(*info));
    rows.push_back({info->name, info->ports, info->processing, info->shader ? "shader" : "host", summary});
  }
  size_t name = 0, ports = 0, processing = 0;
  for (const Row& r : rows) {
    name = std::max(name, r.name.size());
    ports = std::max(ports, r.ports.size());
    processing = std::max(processing, r.processing.size());
  }
  for (const Row& r : rows)
    fmt::print("{:<{}}  {:<{}}  {:<{}}  {:<7}  {}\n", r.name, name, r.ports, ports, r.processing, processing, r.runs_on,
               r.summary);
}

bool print_page(const std::string& name) {
  const ElementInfo* info = find_element_info(name);
  if (!info) {
    fmt::print(stderr, "headrace elements: no element '{}'{}\n", name, suggest_class(name));
    return false;
  }
  fmt::print("{}{}\n", info->name,
             std::string_view(info->name) == info->documented_as
                 ? std::string()
                 : fmt::format(", another name for {}", info->documented_as));
  fmt::print("ports {}, processing {}, flow {}, {}\n\n", info->ports, info->processing, info->flow,
             info->shader ? "a shader: one function for CPUs and GPUs" : "runs on the host");
  const std::string page = element_page(*info);
  fmt::print("{}", page.empty() ? "There is no page for this element.\n" : page);
  return true;
}

}  // namespace

int elements_command(int argc, char** argv) {
  std::vector<std::string> names, packages;
  Errors errors(Errors::Output::kStderr);
  OptionReader reader("headrace elements", argc, argv, kOptions);
  for (int id; (id = reader.next()) != OptionReader::kDone;) {
    switch (id) {
      case OptionReader::kArgument:
        names.push_back(reader.value());
        break;
      case kPackage:
        packages.push_back(reader.value());
        break;
      case kClickpath: {
        const std::string& path = reader.value();
        for (size_t begin = 0, end; begin <= path.size(); begin = end + 1) {
          end = std::min(path.find(':', begin), path.size());
          if (end > begin) add_package_path(path.substr(begin, end - begin));
        }
        break;
      }
      case kHelp:
        fmt::print("{}", kHelpText);
        return 0;
      default:
        fmt::print(stderr, "Try 'headrace elements --help' for more information.\n");
        return 1;
    }
  }
  for (const std::string& package : packages)
    if (!load_package(package, {}, errors)) return 1;
  if (names.empty()) {
    print_table();
    return 0;
  }
  bool good = true;
  for (size_t i = 0; i < names.size(); ++i) {
    if (i > 0) fmt::print("\n");
    good &= print_page(names[i]);
  }
  return good ? 0 : 1;
}

}  // namespace headrace::cli
