// `headrace graph`: draws a configuration and its chains.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>

#include "cli/commands.hh"
#include "cli/session.hh"
#include "offload/engine.hh"
#include "runtime/router_graph.hh"

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

}  // namespace

namespace {

std::string graph_as_dot(const Router& router) {
  size_t images = 0;
  const std::vector<Element*> nodes = Router::Graph::nodes(router);
  const std::vector<offload::Plan> plans =
      offload::make_plans(nodes, router.graph().edges, router.graph().resolved, images);
  std::vector<int> plan_of(nodes.size(), -1);
  for (size_t p = 0; p < plans.size(); ++p)
    for (const offload::Step& step : plans[p].steps())
      plan_of[static_cast<size_t>(step.element->index())] = static_cast<int>(p);

  std::string out = "digraph headrace {\n  rankdir=TB;\n  node [shape=box, fontname=\"sans-serif\", fontsize=10];\n";
  out += "  edge [fontname=\"sans-serif\", fontsize=8];\n";
  for (size_t i = 0; i < nodes.size(); ++i)
    if (plan_of[i] < 0) out += "  " + box(*nodes[i], nodes[i]->info().shader);
  for (size_t p = 0; p < plans.size(); ++p) {
    const RowLayout& row = plans[p].row();
    out += fmt::format("  subgraph cluster_{} {{\n    label=\"chain {}: rows of {} bytes\";\n    color=\"#608030\";\n",
                       p, p, row.stride);
    for (const offload::Step& step : plans[p].steps()) out += "    " + box(*step.element, true);
    out += "  }\n";
  }
  for (size_t e = 0; e < router.connections().size(); ++e) {
    const Router::Connection& c = router.connections()[e];
    std::string label;
    if (c.from->noutputs() > 1) label += fmt::format(" taillabel=\"{}\"", c.from_port);
    if (c.to->ninputs() > 1) label += fmt::format(" headlabel=\"{}\"", c.to_port);
    // A pull connection is drawn with an open arrow: who is at its head asks.
    if (c.from->output_is_pull(c.from_port)) label += " arrowhead=empty";
    out += fmt::format("  e{} -> e{}{};\n", c.from->index(), c.to->index(),
                       label.empty() ? "" : " [" + label.substr(1) + "]");
  }
  return out + "}\n";
}

}  // namespace

int graph_command(int argc, char** argv) {
  CLI::App app{
      "Draws a configuration: shaders are green, and what can run on a device as one program stands in a frame. SVG is "
      "drawn by Graphviz.",
      "headrace graph"};
  std::vector<std::string> words;
  std::string format, output;
  app.add_option("CONF", words, "Configuration file ('-' for standard input), then NAME=value for its variables")
      ->required();
  app.add_option("-o,--output", output, "Write to this file instead of standard output");
  app.add_option("-f,--format", format, "dot or svg; default: by the name of the output, else dot")
      ->check(CLI::IsMember({"dot", "svg"}));
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    return app.exit(e) == 0 ? 0 : 1;
  }
  if (format.empty()) format = output.ends_with(".svg") ? "svg" : "dot";
  std::map<std::string, std::string> variables;
  std::string file;
  for (const std::string& word : words)
    if (!split_variable(word, variables)) file = word;
  lang::Configuration configuration;
  if (!load_configuration(file, variables, configuration)) return 1;
  Runtime runtime(Runtime::Options{.threads = 1, .cpus = {}, .control_thread = false});
  Errors errors(Errors::Output::kStderr);
  RouterOptions options;
  options.only_configure = true;
  const std::unique_ptr<Router> router = Router::create(configuration, runtime, errors, options);
  if (!router) return 1;
  const std::string dot = graph_as_dot(*router);

  std::FILE* out = stdout;
  if (format == "svg") {
    // The shell gets no text of the user's but the file name, and that by way of a redirection that is opened here.
    if (!output.empty() && !std::freopen(output.c_str(), "w", stdout)) {
      fmt::print(stderr, "headrace graph: {}: cannot be written\n", output);
      return 1;
    }
    out = popen("dot -Tsvg", "w");
  } else if (!output.empty()) {
    out = std::fopen(output.c_str(), "w");
  }
  if (!out) {
    fmt::print(stderr, "headrace graph: {}: cannot be written\n", output.empty() ? "dot" : output);
    return 1;
  }
  std::fputs(dot.c_str(), out);
  int status = 0;
  if (format == "svg") {
    status = pclose(out);
    if (status != 0) fmt::print(stderr, "headrace graph: 'dot' of Graphviz is needed for SVG (package graphviz)\n");
  } else if (out != stdout) {
    status = std::fclose(out);
    if (status != 0) fmt::print(stderr, "headrace graph: {}: cannot be written\n", output);
  }
  return status == 0 ? 0 : 1;
}

}  // namespace headrace::cli
