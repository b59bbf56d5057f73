#include "offload/program.hh"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "headrace/embedded.hh"

namespace headrace::offload {

namespace {

/// A configuration as one line of a comment, cut where it gets long.
std::string as_comment(std::string text) {
  constexpr size_t kMost = 100;
  std::replace_if(
      text.begin(), text.end(), [](char c) { return c == '\n' || c == '\r' || c == '\t'; }, ' ');
  // A backslash at the end would join the next line.
  std::replace(text.begin(), text.end(), '\\', '/');
  if (text.size() > kMost) text = text.substr(0, kMost) + " ...";
  return text;
}

std::string_view header_of(const Step& step) { return find_embedded_element(step.element->info().documented_as).path; }

std::string target(const Plan& plan, uint16_t code) {
  if (code < kExit) return fmt::format("{};  // {}", code, as_comment(plan.steps()[code].element->name()));
  const Exit& e = plan.exits()[static_cast<size_t>(code - kExit)];
  switch (e.kind) {
    case Exit::Kind::kResume:
      return fmt::format("{:#x};  // the host does this element and what follows", code);
    case Exit::Kind::kDrop:
      return fmt::format("{:#x};  // dropped", code);
    case Exit::Kind::kEscape:
      return fmt::format("{:#x};  // the element's host body", code);
    case Exit::Kind::kPort:
      return fmt::format("{:#x};  // leaves by output {}", code, e.port);
  }
  return {};
}

void write_step(std::string& out, const Plan& plan, size_t number) {
  const Step& step = plan.steps()[number];
  const char* type = step.element->info().documented_as;
  out += fmt::format("  // {} :: {}({})\n", as_comment(step.element->name()), step.element->class_name(),
                     as_comment(step.element->configuration()));
  out += fmt::format("  if (s.header.at == {}) {{\n", number);
  out += fmt::format("    static_assert(sizeof({}) == {}, \"host and device disagree about {}\");\n", type,
                     step.element->image_size(), type);
  out += fmt::format("    switch (shade_slot(*reinterpret_cast<const {}*>(parameters + {}), s, Rows{{}}, {})) {{\n",
                     type, step.image, step.first_counter);
  const auto line = [&](const std::string& label, uint16_t code) {
    out += fmt::format("      {}: s.header.at = {}\n", label, target(plan, code));
    out += "        break;\n";
  };
  for (size_t port = 0; port < step.targets.size(); ++port) line(fmt::format("case {}", port), step.targets[port]);
  line("case kEscape", step.escape);
  line("case kResume", step.resume);
  line("default", step.drop);
  out += "    }\n  }\n";
}

}  // namespace

std::string program_source(const std::vector<Plan>& plans) {
  std::set<std::string_view> headers;
  for (const Plan& plan : plans)
    for (const Step& step : plan.steps()) headers.insert(header_of(step));
  std::string out = "// Made by Headrace from a configuration: what its shaders do, for one packet at a time.\n\n";
  out += "#include \"headrace/shader.hh\"\n";
  for (const std::string_view h : headers)
    if (!h.empty()) out += fmt::format("#include \"{}\"\n", h);
  out += "\nnamespace headrace {\n";
  for (size_t i = 0; i < plans.size(); ++i) {
    const Plan& plan = plans[i];
    const RowLayout& r = plan.row();
    out += fmt::format("\n// Rows of {} bytes; {} bytes of the packet, from byte {} on.\n", r.stride, r.window_size,
                       r.window_begin);
    out += fmt::format("namespace plan{} {{\n\nstruct Rows {{\n", i);
    out += "  HEADRACE_SHADER static constexpr RowLayout row() {\n";
    out += fmt::format("    return {{{}, {:#x}, {}, {}}};\n  }}\n}};\n\n", r.stride, r.annotations, r.window_begin,
                       r.window_size);
    out += "HEADRACE_SHADER void run(Slot& s, const uint8_t* parameters) {\n";
    for (size_t step = 0; step < plan.steps().size(); ++step) write_step(out, plan, step);
    out += fmt::format("}}\n\n}}  // namespace plan{}\n", i);
  }
  out += "\n}  // namespace headrace\n\n";
  out += "HEADRACE_SHADER void headrace_run_plan(int plan, headrace::Slot& slot, const uint8_t* parameters) {\n";
  out += "  switch (plan) {\n";
  for (size_t i = 0; i < plans.size(); ++i)
    out += fmt::format("    case {}:\n      headrace::plan{}::run(slot, parameters);\n      break;\n", i, i);
  out += "  }\n}\n";
  return out;
}

Program make_program(const std::vector<Plan>& plans, size_t images) {
  Program program;
  for (const Plan& plan : plans) program.plans.push_back({plan.row(), plan.counters()});
  program.objects = &plans;
  program.source = program_source(plans);
  program.parameter_bytes = images;
  return program;
}

}  // namespace headrace::offload
