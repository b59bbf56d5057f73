// `headrace graph`: draws a configuration and its chains.

#include <fmt/format.h>

#include <csignal>
#include <cstdio>

#include "cli/command_line.hh"
#include "cli/commands.hh"
#include "cli/output.hh"
#include "cli/source.hh"
#include "offload/chain_plans.hh"
#include "runtime/router_graph.hh"
#include "runtime/runtime.hh"

namespace headrace::cli {

namespace {

std::string dot_text(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c == '\n' ? ' ' : c;
  }
  return out + "\"";
}

/// An element's box: name, class, arguments as far as there is room.
std::string box(const Element& e, bool shader) {
  constexpr size_t kMost = 48;
  std::string arguments = e.configuration();
  if (arguments.size() > kMost) arguments = arguments.substr(0, kMost - 3) + "...";
  std::string label = dot_text(e.declaration());
  if (!arguments.empty()) {
    label.pop_back();
    label += "\\n" + dot_text(arguments).substr(1);
  }
  return fmt::format("e{} [label={}{}];\n", e.index(), label, shader ? ", style=filled, fillcolor=\"#e8f0d8\"" : "");
}

std::string graph_as_dot(const Router& router) {
  const std::vector<Element*> nodes = Router::Graph::nodes(router);
  const std::vector<offload::Plan> plans =
      offload::plan_chains(nodes, router.graph().edges, router.graph().resolved).plans;
  std::vector<int> plan_of(nodes.size(), -1);
  for (size_t p = 0; p < plans.size(); ++p)
    for (const offload::Step& step : plans[p].steps()) {
      int& plan = plan_of[static_cast<size_t>(step.element->index())];
      if (plan < 0) plan = static_cast<int>(p);
    }

  std::string out = "digraph headrace {\n  rankdir=TB;\n  node [shape=box, fontname=\"sans-serif\", fontsize=10];\n";
  out += "  edge [fontname=\"sans-serif\", fontsize=8];\n";
  for (size_t i = 0; i < nodes.size(); ++i)
    if (plan_of[i] < 0) out += "  " + box(*nodes[i], nodes[i]->info().shader);
  for (size_t p = 0; p < plans.size(); ++p) {
    const RowLayout& row = plans[p].row();
    out += fmt::format("  subgraph cluster_{} {{\n    label=\"chain {}: rows of {} bytes\";\n    color=\"#608030\";\n",
                       p, p, row.stride);
    // An element of several chains is drawn in the first.
    for (const offload::Step& step : plans[p].steps())
      if (plan_of[static_cast<size_t>(step.element->index())] == static_cast<int>(p))
        out += "    " + box(*step.element, true);
    out += "  }\n";
  }
  for (size_t e = 0; e < router.connections().size(); ++e) {
    const Router::Connection& c = router.connections()[e];
    std::string label;
    if (c.from->noutputs() > 1) label += fmt::format(" taillabel=\"{}\"", c.from_port);
    if (c.to->ninputs() > 1) label += fmt::format(" headlabel=\"{}\"", c.to_port);
    // A pull connection has an open arrow.
    if (c.from->output_is_pull(c.from_port)) label += " arrowhead=empty";
    out += fmt::format("  e{} -> e{}{};\n", c.from->index(), c.to->index(),
                       label.empty() ? "" : " [" + label.substr(1) + "]");
  }
  return out + "}\n";
}

/// Lets Graphviz draw `dot` to standard output.
bool draw_svg(const std::string& dot, const std::string& output) {
  // The shell gets no text of the user's: the file is opened here.
  if (!output.empty() && !std::freopen(output.c_str(), "w", stdout)) {
    complain("headrace graph: {}: cannot be written\n", output);
    return false;
  }
  // A missing Graphviz ends before it has read its input.
  std::signal(SIGPIPE, SIG_IGN);
  std::FILE* out = popen("dot -Tsvg", "w");
  if (out) std::fputs(dot.c_str(), out);
  if (out && pclose(out) == 0) return true;
  complain("headrace graph: 'dot' of Graphviz is needed for SVG (package graphviz)\n");
  return false;
}

}  // namespace

int graph_command(int argc, char** argv) {
  CommandLine line("headrace graph",
                   "Draws a configuration. Shaders are green; a frame surrounds elements that can run on a device as "
                   "one program. SVG output requires Graphviz.",
                   "[NAME=VALUE]... CONF");
  ConfigurationSource source;
  std::string format, output;
  source.add_options(line);
  line.add_option("-o,--output", output, "Write to FILE instead of standard output")->option_text("FILE");
  line.add_option("--format", format, "dot or svg; default: by the name of the output, else dot")
      ->check(CLI::IsMember({"dot", "svg"}))
      ->option_text("FORMAT");
  if (const auto status = line.read(argc, argv)) return *status;
  if (format.empty()) format = output.ends_with(".svg") ? "svg" : "dot";

  Errors errors(Errors::Output::kStderr);
  errors.limit(ConfigurationSource::kMaxErrors);
  lang::Configuration configuration;
  if (!source.load(configuration, errors, ConfigurationSource::Check::kClasses)) return kFailed;
  Runtime runtime(Runtime::Options{.threads = 1, .cpus = {}, .control_thread = false});
  RouterOptions options;
  options.only_configure = true;
  const std::unique_ptr<Router> router = Router::create(configuration, runtime, errors, options);
  if (!router) return kFailed;
  const std::string dot = graph_as_dot(*router);
  const bool good = format == "svg" ? draw_svg(dot, output == "-" ? "" : output)
                                    : write_file(output.empty() ? "-" : output, dot, "headrace graph");
  return good ? 0 : kFailed;
}

}  // namespace headrace::cli
