// `headrace flatten` and click-flatten.

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "cli/commands.hh"
#include "cli/options.hh"
#include "cli/source.hh"
#include "headrace/version.hh"
#include "lang/lang.hh"

namespace headrace::cli {

namespace {

enum OptionId {
  kFile,
  kExpression,
  kOutput,
  kClasses,
  kNames,
  kDeclarations,
  kConfig,
  kExpandVars,
  kClickpath,
  kHelp,
  kShowVersion
};

using Value = Option::Value;
constexpr Option kOptions[] = {
    {kFile, "file", 'f', Value::kRequired},
    {kExpression, "expression", 'e', Value::kRequired},
    {kOutput, "output", 'o', Value::kRequired},
    {kClasses, "classes", 'c'},
    {kNames, "names", 'n'},
    {kNames, "elements", 0},
    {kDeclarations, "declarations", 'd'},
    {kDeclarations, "decls", 0},
    {kConfig, "config"},
    {kExpandVars, "expand-vars", 0, Value::kNone, true},
    {kClickpath, "clickpath", 'C', Value::kRequired},
    {kHelp, "help"},
    {kShowVersion, "version", 'v'},
};

constexpr const char* kHelpText =
    R"(Usage: {} [OPTION]... [NAME=VALUE]... [FILE]

Prints a configuration with all compound elements expanded. Element classes need not exist.

  -f, --file FILE            read FILE ('-' or nothing: standard input)
  -e, --expression TEXT      the configuration is TEXT
  -c, --classes              print the names of the classes in use instead
  -n, --names                print the names of the elements instead
  -d, --declarations         print the declarations instead
      --config               print the configuration alone, also if it came in an archive
  -o, --output FILE          print to FILE
  -C, --clickpath PATH       folders for required files, separated by ':' (else $CLICKPATH)
      --help, -v, --version
)";

std::string sorted_lines(std::vector<std::string> lines, bool unique) {
  std::sort(lines.begin(), lines.end());
  if (unique) lines.erase(std::unique(lines.begin(), lines.end()), lines.end());
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  return text;
}

std::string render(const lang::Configuration& configuration, int action) {
  std::vector<std::string> lines;
  switch (action) {
    case kClasses:
      for (const lang::ElementDecl& e : configuration.elements) lines.push_back(e.class_name);
      return sorted_lines(std::move(lines), true);
    case kNames:
      for (const lang::ElementDecl& e : configuration.elements) lines.push_back(e.name);
      return sorted_lines(std::move(lines), false);
    case kDeclarations:
      for (const lang::ElementDecl& e : configuration.elements) lines.push_back(e.name + " :: " + e.class_name);
      return sorted_lines(std::move(lines), false);
    default:
      return lang::unparse(configuration);
  }
}

}  // namespace

int flatten_command(int argc, char** argv) {
  const std::string_view path = argc > 0 ? argv[0] : "flatten";
  const std::string program(path.substr(path.rfind('/') + 1));
  Errors errors(Errors::Output::kStderr);
  ConfigurationSource source;
  std::string output;
  int action = kConfig;
  OptionReader reader(program, argc, argv, kOptions);
  for (int id; (id = reader.next()) != OptionReader::kDone;) {
    bool good = true;
    switch (id) {
      case OptionReader::kBad:
        good = false;
        break;
      case OptionReader::kArgument:
        good = source.add_argument(reader.value(), errors);
        break;
      case kFile:
      case kExpression:
        good = id == kFile ? source.set_file(reader.value()) : source.set_expression(reader.value());
        if (!good) reader.complain("router configuration specified twice");
        break;
      case kOutput:
        if (!output.empty()) reader.complain("--output file specified twice");
        good = output.empty();
        output = reader.value();
        break;
      case kExpandVars:
        break;  // variables are always expanded
      case kClickpath:
        source.set_search_path(reader.value());
        break;
      case kHelp:
        fmt::print(kHelpText, program);
        return 0;
      case kShowVersion:
        fmt::print("{} (Headrace) {}\n", program, kVersion);
        return 0;
      default:
        action = id;
    }
    if (!good) {
      fmt::print(stderr, "Usage: {0} [OPTION]... [FILE]\nTry '{0} --help' for more information.\n", program);
      return 1;
    }
  }

  lang::Configuration configuration;
  if (!source.load(configuration, errors, false)) return 1;
  const std::string text = render(configuration, action);
  std::FILE* out = output.empty() || output == "-" ? stdout : std::fopen(output.c_str(), "wb");
  bool good = out && std::fwrite(text.data(), 1, text.size(), out) == text.size();
  if (out && out != stdout) good = std::fclose(out) == 0 && good;
  if (!good) (void)errors.error("{}: {}", output, std::strerror(errno));
  return good ? 0 : 1;
}

}  // namespace headrace::cli
