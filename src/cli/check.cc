// `headrace check`: everything but running.

#include <cstdio>
#include <memory>
#include <string>

#include "cli/command_line.hh"
#include "cli/commands.hh"
#include "cli/dpdk_option.hh"
#include "cli/output.hh"
#include "cli/source.hh"
#include "cli/workers_option.hh"
#include "headrace/router.hh"
#include "offload/chain_plans.hh"
#include "offload/cpu_program.hh"
#include "offload/program.hh"
#include "runtime/router_graph.hh"
#include "runtime/runtime.hh"

namespace headrace::cli {

namespace {

constexpr const char* kCheckDescription =
    "Parses, configures and initializes a configuration without running it, and prints every mistake found. The exit "
    "status is 1 if there was one. Nothing outside is touched: devices, sockets and files to write are not opened, so "
    "that whether they can be shows only when the configuration runs.";

/// Writes the program of all chains: that for a CPU if the file is named so, else that for a device, whether or not they
/// would be offloaded.
bool write_program(const Router& router, const std::string& file) {
  const std::vector<Element*> nodes = Router::Graph::nodes(router);
  const Router::Graph& graph = router.graph();
  const std::string source =
      file.ends_with(".cc")
          ? offload::cpu_program_source(
                offload::plan_cpu_chains(nodes, graph.edges, graph.resolved, CompileOptions().shortest).plans)
          : offload::program_source(offload::plan_chains(nodes, graph.edges, graph.resolved).plans);
  return write_file(file, source, "headrace check");
}

}  // namespace

int check_command(int argc, char** argv) {
  CommandLine line("headrace check", kCheckDescription, "[NAME=VALUE]... CONF");
  ConfigurationSource source;
  int workers = 1;
  bool quiet = false;
  std::string program;
  source.add_options(line);
  add_workers_option(line, workers, "default: 1");
  line.add_option("-p,--program", program,
                  "Write the program of the configuration's chains: if FILE ends with .cc that for the CPU, C++, else "
                  "that for devices, CUDA C++; '-': the latter to standard output")
      ->option_text("FILE");
  line.add_flag("-q,--quiet", quiet, "Print nothing when all is well");
  add_dpdk_option(line);
  if (const auto status = line.read(argc, argv)) return *status;

  Errors errors(Errors::Output::kStderr);
  errors.limit(ConfigurationSource::kMaxErrors);
  lang::Configuration configuration;
  if (!source.load(configuration, errors, ConfigurationSource::Check::kClasses)) return kFailed;
  Runtime runtime(Runtime::Options{.threads = workers, .cpus = {}, .control_thread = false, .look_only = true});
  const std::unique_ptr<Router> router = Router::create(configuration, runtime, errors);
  if (!router) return kFailed;
  if (!program.empty() && !write_program(*router, program)) return kFailed;
  if (!quiet && program != "-")
    print("{}: {} elements, {} connections, no errors\n", source.landmark(), router->elements().size(),
          router->connections().size());
  return 0;
}

}  // namespace headrace::cli
