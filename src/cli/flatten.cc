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

enum FlattenOption {
  kFlattenFile,
  kFlattenExpression,
  kFlattenOutput,
  kFlattenClasses,
  kFlattenNames,
  kFlattenDeclarations,
  kFlattenConfig,
  kFlattenExpandVars,
  kFlattenClickpath,
  kFlattenHelp,
  kFlattenShowVersion
};

using Value = Option::Value;
constexpr Option kFlattenOptions[] = {
    {kFlattenFile, "file", 'f', Value::kRequired},
    {kFlattenExpression, "expression", 'e', Value::kRequired},
    {kFlattenOutput, "output", 'o', Value::kRequired},
    {kFlattenClasses, "classes", 'c'},
    {kFlattenNames, "names", 'n'},
    {kFlattenNames, "elements", 0},
    {kFlattenDeclarations, "declarations", 'd'},
    {kFlattenDeclarations, "decls", 0},
    {kFlattenConfig, "config"},
    {kFlattenExpandVars, "expand-vars", 0, Value::kNone, true},
    {kFlattenClickpath, "clickpath", 'C', Value::kRequired},
    {kFlattenHelp, "help"},
    {kFlattenShowVersion, "version", 'v'},
};

constexpr const char* kFlattenHelpText =
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
    case kFlattenClasses:
      for (const lang::ElementDecl& e : configuration.elements) lines.push_back(e.class_name);
      return sorted_lines(std::move(lines), true);
    case kFlattenNames:
      for (const lang::ElementDecl& e : configuration.elements) lines.push_back(e.name);
      return sorted_lines(std::move(lines), false);
    case kFlattenDeclarations:
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
  int action = kFlattenConfig;
  source.add_options(line);
  line.add_flag_callback(
      "-c,--classes", [&] { action = kFlattenClasses; }, "Print the names of the classes in use instead");
  line.add_flag_callback(
      "-n,--names", [&] { action = kFlattenNames; }, "Print the names of the elements instead");
  line.add_flag_callback(
      "-d,--declarations", [&] { action = kFlattenDeclarations; }, "Print the declarations instead");
  line.add_option("-o,--output", output, "Write to FILE instead of standard output")->option_text("FILE");
  if (const auto status = line.read(argc, argv)) return *status;
  return print_flat(source, action, output, "headrace flatten");
}

int click_flatten_command(int argc, char** argv) {
  const char* const program = "click-flatten";
  Errors errors(Errors::Output::kStderr);
  ConfigurationSource source;
  std::string output;
  int action = kFlattenConfig;
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
      case kFlattenFile:
      case kFlattenExpression:
        good = id == kFlattenFile ? source.set_file(reader.value()) : source.set_expression(reader.value());
        if (!good) reader.complain("router configuration specified twice");
        break;
      case kFlattenOutput:
        if (!output.empty()) reader.complain("--output file specified twice");
        good = output.empty();
        output = reader.value();
        break;
      case kFlattenExpandVars:
        break;  // variables are always expanded
      case kFlattenClickpath:
        source.set_search_path(reader.value());
        break;
      case kFlattenHelp:
        write_output(kFlattenHelpText);
        return 0;
      case kFlattenShowVersion:
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
