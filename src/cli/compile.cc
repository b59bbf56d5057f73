// `headrace compile`: the chains of a configuration as a file, for machines without a compiler.

#include <memory>
#include <string>

#include "cli/command_line.hh"
#include "cli/commands.hh"
#include "cli/dpdk_option.hh"
#include "cli/output.hh"
#include "cli/source.hh"
#include "headrace/router.hh"
#include "offload/chain_plans.hh"
#include "offload/cpu_compiler.hh"
#include "offload/cpu_program.hh"
#include "runtime/router_graph.hh"
#include "runtime/runtime.hh"

namespace headrace::cli {

int compile_command(int argc, char** argv) {
  CommandLine line(
      "headrace compile",
      "Compiles the chains of a configuration for the CPU, with $HEADRACE_CXX, g++ or clang++. headrace run "
      "--compiled FILE takes them from there. A router needs the same version of Headrace and the same "
      "configuration, or it does without.",
      "[NAME=VALUE]... CONF");
  ConfigurationSource source;
  std::string output, machine = "x86-64-v3";
  source.add_options(line);
  line.add_option(
          "-o,--output", output,
          "The file to write; in a folder, files with the names that headrace looks for among those installed: one "
          "for the configuration as it is, one for any values that its handlers may set")
      ->option_text("FILE")
      ->required();
  line.add_option("--march", machine, "The processor to compile for, as g++ -march names it; default: x86-64-v3")
      ->option_text("NAME");
  add_dpdk_option(line);
  if (const auto status = line.read(argc, argv)) return *status;

  Errors errors(Errors::Output::kStderr);
  errors.limit(ConfigurationSource::kMaxErrors);
  lang::Configuration configuration;
  if (!source.load(configuration, errors, ConfigurationSource::Check::kClasses)) return kFailed;
  Runtime runtime(Runtime::Options{.threads = 1, .cpus = {}, .control_thread = false, .look_only = true});
  const std::unique_ptr<Router> router = Router::create(configuration, runtime, errors);
  if (!router) return kFailed;
  const std::vector<offload::Plan> plans =
      offload::plan_cpu_chains(Router::Graph::nodes(*router), router->graph().edges, router->graph().resolved,
                               CompileOptions().shortest)
          .plans;
  if (plans.empty()) {
    complain("headrace compile: {} has no chain of shaders\n", source.landmark());
    return kFailed;
  }
  const std::vector<std::string> sources = {offload::cpu_program_source(plans),
                                            offload::cpu_program_source(plans, false, true)};
  return offload::compile_to_file(sources, output, machine, errors).ok() ? 0 : kFailed;
}

}  // namespace headrace::cli
