// `headrace flatten` and click-flatten.

#include <algorithm>
#include <string>
#include <vector>

#include "cli/command_line.hh"
#include "cli/commands.hh"
#include "cli/options.hh"
#include "cli/output.hh"
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
constexpr Option kFlattenOptions[] = {
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

constexpr const char* kFlattenHelp =
    R"(Usage: click-flatten [OPTION]... [NAME=VALUE]... [FILE]

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

int print_flat(const ConfigurationSource& source, int action, const std::string& output, const char* program) {
  Errors errors(Errors::Output::kStderr);
  errors.limit(ConfigurationSource::kMaxErrors);
  lang::Configuration configuration;
  if (!source.load(configuration, errors, ConfigurationSource::Check::kSyntax)) return kFailed;
  return write_file(output.empty() ? "-" : output, render(configuration, action), program) ? 0 : kFailed;
}

}  // namespace

int flatten_command(int argc, char** argv) {
  CommandLine line("headrace flatten",
                   "Prints a configuration with all compound elements expanded. Element classes need not exist.",
                   "[NAME=VALUE]... CONF");
  ConfigurationSource source;
  std::string output;
  int action = kConfig;
  source.add_options(line);
  line.add_flag_callback(
      "-c,--classes", [&] { action = kClasses; }, "Print the names of the classes in use instead");
  line.add_flag_callback(
      "-n,--names", [&] { action = kNames; }, "Print the names of the elements instead");
  line.add_flag_callback(
      "-d,--declarations", [&] { action = kDeclarations; }, "Print the declarations instead");
  line.add_option("-o,--output", output, "Write to FILE instead of standard output")->option_text("FILE");
  if (const auto status = line.read(argc, argv)) return *status;
  return print_flat(source, action, output, "headrace flatten");
}

int click_flatten_command(int argc, char** argv) {
  const char* const program = "click-flatten";
  Errors errors(Errors::Output::kStderr);
  ConfigurationSource source;
  std::string output;
  int action = kConfig;
  OptionReader reader(program, argc, argv, kFlattenOptions);
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
        write_output(kFlattenHelp);
        return 0;
      case kShowVersion:
        print("{} (Headrace) {}\n", program, kVersion);
        return 0;
      default:
        action = id;
    }
    if (!good) {
      cli::complain("Usage: {0} [OPTION]... [FILE]\nTry '{0} --help' for more information.\n", program);
      return kFailed;
    }
  }
  return print_flat(source, action, output, program);
}

}  // namespace headrace::cli
