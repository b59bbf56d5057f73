// `headrace elements`: what there is to build a router from.

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "cli/command_line.hh"
#include "cli/commands.hh"
#include "cli/element_page.hh"
#include "cli/output.hh"
#include "cli/source.hh"
#include "headrace/compound.hh"
#include "headrace/element.hh"
#include "runtime/packages.hh"

namespace headrace::cli {

namespace {

constexpr const char* kElementsDescription =
    "Without ELEMENT, lists all elements: their ports (inputs/outputs), how these work (h push, l pull, a either), whether "
    "the element is a shader, which CPUs and GPUs can run, code for the host, or a compound of other elements, and what it "
    "does. On a terminal a line is cut at its width. With ELEMENT, prints the element's page.";

/// Columns of the terminal that standard output is, or no limit.
size_t output_width() {
  winsize size{};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
  return std::string::npos;
}

const char* kind_of(const ElementInfo& info) {
  return is_compound(info) ? "compound" : info.shader ? "shader" : "host";
}

void print_table() {
  struct Row {
    std::string name, ports, processing, runs_on, summary;
  };
  std::vector<Row> rows{{"element", "ports", "mode", "runs on", "summary"}};
  for (const ElementInfo* info : all_element_infos()) {
    const std::string summary = std::string_view(info->name) != info->documented_as
                                    ? fmt::format("Another name for {}.", info->documented_as)
                                    : summary_of(element_page(*info));
    rows.push_back({info->name, info->ports, info->processing, kind_of(*info), summary});
  }
  size_t name = 0, ports = 0, processing = 0;
  for (const Row& r : rows) {
    name = std::max(name, r.name.size());
    ports = std::max(ports, r.ports.size());
    processing = std::max(processing, r.processing.size());
  }
  const size_t width = output_width();
  for (const Row& r : rows) {
    std::string line = fmt::format("{:<{}}  {:<{}}  {:<{}}  {:<8}  {}", r.name, name, r.ports, ports, r.processing,
                                   processing, r.runs_on, r.summary);
    if (line.size() > width) line = line.substr(0, width - std::min<size_t>(width, 3)) + "...";
    print("{}\n", line);
  }
}

bool print_page(const std::string& name) {
  const ElementInfo* info = find_element_info(name);
  if (!info) {
    complain("headrace elements: no element '{}'{}\n", name, suggest_class(name));
    return false;
  }
  print("{}{}\n", info->name,
        std::string_view(info->name) == info->documented_as
            ? std::string()
            : fmt::format(", another name for {}", info->documented_as));
  if (is_compound(*info))
    print("ports {}, a compound element: 'headrace flatten' shows what it is made of\n\n", info->ports);
  else
    print("ports {}, processing {}, flow {}, {}\n\n", info->ports, info->processing, info->flow,
          info->shader ? "a shader: one function for CPUs and GPUs" : "runs on the host");
  const std::string page = element_page(*info);
  print("{}", page.empty() ? "There is no page for this element.\n" : page);
  return true;
}

}  // namespace

int elements_command(int argc, char** argv) {
  std::vector<std::string> names, packages;
  std::string path;
  CommandLine line("headrace elements", kElementsDescription, "[ELEMENT]...");
  line.add_option("ELEMENT", names, "Element class");
  line.add_option("-p,--package", packages, "Load the elements of a package first; may be repeated")
      ->allow_extra_args(false)
      ->option_text("NAME");
  line.add_option("-C,--clickpath", path, "Folders for packages, separated by ':'; $HEADRACE_PATH is searched, too")
      ->option_text("PATH");
  if (const auto status = line.read(argc, argv)) return *status;

  Errors errors(Errors::Output::kStderr);
  for (const std::string& folder : split_path(path))
    if (!folder.empty()) add_package_path(folder);
  for (const std::string& package : packages)
    if (!load_package(package, {}, errors)) return kFailed;
  if (names.empty()) {
    print_table();
    return 0;
  }
  bool good = true;
  for (size_t i = 0; i < names.size(); ++i) {
    if (i > 0) print("\n");
    good &= print_page(names[i]);
  }
  return good ? 0 : kFailed;
}

}  // namespace headrace::cli
