// `headrace check`: everything but running.

#include <fmt/format.h>

#include <cstdio>
#include <memory>
#include <string>

#include "cli/commands.hh"
#include "cli/dpdk_option.hh"
#include "cli/options.hh"
#include "cli/source.hh"
#include "headrace/router.hh"
#include "offload/engine.hh"
#include "runtime/router_graph.hh"
#include "runtime/runtime.hh"

namespace headrace::cli {

namespace {

enum OptionId { kFile, kExpression, kThreads, kClickpath, kProgram, kQuiet, kDpdk, kHelp };

using Value = Option::Value;
constexpr Option kOptions[] = {
    {kFile, "file", 'f', Value::kRequired},       {kExpression, "expression", 'e', Value::kRequired},
    {kThreads, "threads", 'j', Value::kRequired}, {kClickpath, "clickpath", 'C', Value::kRequired},
    {kProgram, "program", 'p', Value::kRequired}, {kQuiet, "quiet", 'q'},
    {kDpdk, "dpdk", 0, Value::kRequired},         {kHelp, "help"},
};

constexpr const char* kHelpText =
    R"(Usage: headrace check [OPTION]... [NAME=VALUE]... [FILE]

Parses, configures and initialises a configuration without running it, and prints every mistake found. The exit status
is 1 if there was one. Nothing outside is touched: devices, sockets and files to write are not opened, so that whether
they can be shows only when the configuration runs.

  -f, --file FILE            check FILE ('-' or nothing: standard input)
  -e, --expression TEXT      the configuration is TEXT
  -j, --threads N            as it would be run by N threads (1)
  -C, --clickpath PATH       folders for required files and packages, separated by ':' (else $CLICKPATH)
  -p, --program FILE         write the device program of the configuration's chains, CUDA C++, to FILE ('-': standard
                             output)
  -q, --quiet                print nothing when all is well
      --dpdk ARGUMENTS       arguments for DPDK, in one word
      --help
)";

/// The program of all chains, whether or not they would be offloaded.
bool write_program(const Router& router, const std::string& file) {
  size_t images = 0;
  const std::string source = offload::program_source(
      offload::make_plans(Router::Graph::nodes(router), router.graph().edges, router.graph().resolved, images));
  std::FILE* out = file == "-" ? stdout : std::fopen(file.c_str(), "w");
  const bool good = out && std::fputs(source.c_str(), out) >= 0 && (out == stdout || std::fclose(out) == 0);
  if (!good) fmt::print(stderr, "headrace check: {}: cannot be written\n", file);
  return good;
}

}  // namespace

int check_command(int argc, char** argv) {
  Errors errors(Errors::Output::kStderr);
  ConfigurationSource source;
  int threads = 1;
  bool quiet = false;
  std::string program;
  OptionReader reader("headrace check", argc, argv, kOptions);
  for (int id; (id = reader.next()) != OptionReader::kDone;) {
    bool good = true;
    switch (id) {
      case OptionReader::kArgument:
        good = source.add_argument(reader.value(), errors);
        break;
      case kFile:
      case kExpression:
        good = id == kFile ? source.set_file(reader.value()) : source.set_expression(reader.value());
        if (!good) reader.complain("router configuration specified twice");
        break;
      case kThreads:
        good = reader.integer(threads);
        if (good && (threads < 1 || threads >= kMaxThreads)) {
          reader.complain(fmt::format("the number of threads must lie between 1 and {}", kMaxThreads - 1));
          good = false;
        }
        break;
      case kClickpath:
        source.set_search_path(reader.value());
        break;
      case kProgram:
        program = reader.value();
        break;
      case kQuiet:
        quiet = true;
        break;
      case kDpdk:
        if (const std::string reason = set_dpdk_arguments(reader.value()); !reason.empty()) {
          reader.complain(fmt::format("option '--dpdk': {}", reason));
          good = false;
        }
        break;
      case kHelp:
        fmt::print("{}", kHelpText);
        return 0;
      default:
        good = false;
    }
    if (!good) {
      fmt::print(stderr, "Try 'headrace check --help' for more information.\n");
      return 1;
    }
  }

  lang::Configuration configuration;
  if (!source.load(configuration, errors, true)) return 1;
  Runtime runtime(Runtime::Options{.threads = threads, .cpus = {}, .control_thread = false, .look_only = true});
  const std::unique_ptr<Router> router = Router::create(configuration, runtime, errors);
  if (!router) return 1;
  if (!program.empty() && !write_program(*router, program)) return 1;
  if (!quiet && program != "-")
    fmt::print("{}: {} elements, {} connections, no errors\n", source.landmark(), router->elements().size(),
               router->connections().size());
  return 0;
}

}  // namespace headrace::cli
