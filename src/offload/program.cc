#include "offload/program.hh"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "offload/program_text.hh"

namespace headrace::offload {

namespace {

/// Steps [first, first + size) that differ only in their parameters and whose codes are equally spaced. One piece of
/// code serves them all; slots of different steps of the group run side by side.
struct Group {
  size_t first;
  size_t size;
};

/// The spacing of the codes of neighboring steps; -1 if it is not constant.
template <typename Code>
int distance(size_t size, Code&& code) {
  const int d = size > 1 ? code(1) - code(0) : 0;
  for (size_t i = 2; i < size; ++i)
    if (code(i) - code(i - 1) != d) return -1;
  return d;
}

bool alike(const Plan& plan, size_t first, size_t size) {
  const auto step = [&](size_t i) -> const Step& { return plan.steps()[first + i]; };
  for (size_t i = 1; i < size; ++i)
    if (step(i).level != step(0).level || step(i).targets.size() != step(0).targets.size() ||
        std::string_view(step(i).element->info().documented_as) != step(0).element->info().documented_as ||
        step(i).element->fixed() != step(0).element->fixed())
      return false;
  for (size_t port = 0; port < step(0).targets.size(); ++port)
    if (distance(size, [&](size_t i) { return int{step(i).targets[port]}; }) < 0) return false;
  if (distance(size, [&](size_t i) { return step(i).result; }) < 0) return false;
  return distance(size, [&](size_t i) { return static_cast<int>(step(i).image); }) >= 0;
}

std::vector<Group> find_groups(const Plan& plan) {
  std::vector<Group> groups;
  for (size_t first = 0; first < plan.steps().size();) {
    size_t size = 1;
    while (first + size < plan.steps().size() && alike(plan, first, size + 1)) ++size;
    groups.push_back({first, size});
    first += size;
  }
  return groups;
}

void write_group(std::string& out, const Plan& plan, const Group& group) {
  const auto step = [&](size_t i) -> const Step& { return plan.steps()[group.first + i]; };
  const char* type = step(0).element->info().documented_as;
  for (size_t i = 0; i < group.size; ++i)
    out += fmt::format("  // {} :: {}({})\n", as_comment(step(i).element->name()), step(i).element->class_name(),
                       as_comment(step(i).element->configuration()));
  // "base + n * distance", where n is the position in the group.
  const auto formula = [&](int base, int d, bool hex) {
    const std::string text = hex ? fmt::format("{:#x}", base) : std::to_string(base);
    return d == 0 ? text : d == 1 ? text + " + n" : fmt::format("{} + n * {}", text, d);
  };
  const auto along = [&](auto&& member) {
    return distance(group.size, [&](size_t i) { return static_cast<int>(member(step(i))); });
  };
  const bool rewrites = step(0).element->rewrites(), scans = rewrites || step(0).element->scans();
  const std::string here =
      group.size == 1 ? fmt::format("s.header.at == {}", group.first)
                      : fmt::format("s.header.at >= {} && s.header.at < {}", group.first, group.first + group.size);
  // All threads of a warp scan or rewrite packets together.
  out += scans ? fmt::format("  {{\n    const bool here = {};\n", here) : fmt::format("  if ({}) {{\n", here);
  if (group.size > 1)
    out += fmt::format("    const uint32_t n = {}s.header.at - {}u{};\n", scans ? "here ? " : "", group.first,
                       scans ? " : 0u" : "");
  out += fmt::format("    static_assert(sizeof({}) == {}, \"host and device disagree about {}\");\n", type,
                     step(0).element->image_size(), type);
  const std::string image =
      formula(static_cast<int>(step(0).image), along([](const Step& s) { return s.image; }), false);
  const std::string counter =
      formula(step(0).first_counter, along([](const Step& s) { return s.first_counter; }), false);
  std::string last = "Rows{}, " + counter;
  if (step(0).element->result_size() > 0)
    last += ", " + formula(step(0).result, along([](const Step& s) { return s.result; }), false);
  if (scans) {
    bool newer = false, more = false, again = false;
    for (size_t i = 0; i < group.size; ++i) newer |= step(i).newer, more |= step(i).more, again |= step(i).again;
    out += fmt::format(
        "    s.newer = {};\n    s.more = {};\n    s.again = {};\n"
        "    const Next next = {}_slot(reinterpret_cast<const {}*>(parameters + {}), s, here, {});\n"
        "    if (here) switch (next) {{\n",
        newer, more, again, rewrites ? "rewrite" : "scan", type, image, last);
  } else {
    std::string shader = fmt::format("*reinterpret_cast<const {}*>(parameters + {})", type, image);
    if (const std::optional<uint32_t> fixed = step(0).element->fixed())
      shader = fmt::format("with_fixed<{}u>({})", *fixed, shader);
    out += fmt::format("    switch (shade_slot({}, s, {})) {{\n", shader, last);
  }
  const auto line = [&](const std::string& label, auto&& code) {
    const uint16_t base = code(step(0));
    const std::string value = formula(base, along(code), base >= kExit);
    out += fmt::format("      {}:\n        s.header.at = {};  // {}{}\n", label,
                       group.size == 1 ? value : fmt::format("static_cast<uint16_t>({})", value), meaning(plan, base),
                       group.size == 1 || base >= kExit ? "" : ", ...");
    bool whole = false;
    for (size_t i = 0; i < group.size; ++i) whole |= plan.comes_back_whole(code(step(i)));
    if (whole) out += "        s.whole = true;\n";
    out += "        break;\n";
  };
  for (size_t port = 0; port < step(0).targets.size(); ++port)
    line(fmt::format("case {}", port), [port](const Step& s) { return s.targets[port]; });
  line("case kEscape", [](const Step& s) { return s.escape; });
  line("case kResume", [](const Step& s) { return s.resume; });
  line("default", [](const Step& s) { return s.drop; });
  out += "    }\n  }\n";
}

/// What the shaders of a class of plans need of a block's shared memory.
uint32_t block_bytes(const std::vector<Plan>& plans, PlanClass c) {
  uint32_t most = 0;
  for (const Plan& plan : plans)
    if (class_of(plan.row()) == c)
      for (const Step& step : plan.steps()) most = std::max(most, step.element->block_bytes());
  return most;
}

}  // namespace

std::string program_source(const std::vector<Plan>& plans) {
  std::set<std::string_view> headers;
  for (const Plan& plan : plans)
    for (const Step& step : plan.steps()) headers.insert(header_of(step));
  std::string out = "// Made by Headrace from a configuration: what its shaders do, for one packet at a time.\n\n";
  out += "#include \"headrace/device/jobs.hh\"\n#include \"headrace/shader.hh\"\n";
  for (const std::string_view h : headers)
    if (!h.empty()) out += fmt::format("#include \"{}\"\n", h);
  out += "\nnamespace headrace {\n";
  for (size_t i = 0; i < plans.size(); ++i) {
    const Plan& plan = plans[i];
    const RowLayout& r = plan.row();
    out += fmt::format(
        "\n// Rows of {} bytes, of which {} go and {} come back; {} bytes of the packet, from byte {} on.\n", r.stride,
        r.there, r.back, r.window_size, r.window_begin);
    out += fmt::format("namespace plan{} {{\n\nstruct Rows {{\n", i);
    out += "  HEADRACE_SHADER static constexpr RowLayout row() {\n";
    out += "    RowLayout row;\n";
    const std::pair<const char*, int> parts[] = {{"stride", r.stride},
                                                 {"header", r.header},
                                                 {"there", r.there},
                                                 {"back", r.back},
                                                 {"in_place", r.in_place},
                                                 {"annotations_back", r.annotations_back},
                                                 {"annotations_both", r.annotations_both},
                                                 {"annotations_there", r.annotations_there},
                                                 {"annotations_stay", r.annotations_stay},
                                                 {"window_begin", r.window_begin},
                                                 {"window_size", r.window_size},
                                                 {"written", r.written},
                                                 {"address_size", r.address_size},
                                                 {"result_size", r.result_size},
                                                 {"results", r.results}};
    for (const auto& [name, value] : parts) out += fmt::format("    row.{} = {};\n", name, value);
    out += fmt::format("    return row;\n  }}\n  static constexpr bool kHomes = {};\n}};\n\n",
                       plan.reads_payloads_again());
    out += "HEADRACE_SHADER void run(Slot& s, const uint8_t* parameters) {\n";
    for (const Group& group : find_groups(plan)) write_group(out, plan, group);
    if (plan.reads_payloads_again()) out += "  deliver(s, Rows{}.row());\n";
    out += fmt::format("}}\n\n}}  // namespace plan{}\n", i);
  }
  out += "\n}  // namespace headrace\n\n";
  out += "template <headrace::PlanClass kClass>\n";
  out += "HEADRACE_SHADER void headrace_run_plan(int plan, headrace::Slot& slot, const uint8_t* parameters) {\n";
  for (const PlanClass c : {kHeaderPlans, kPayloadPlans}) {
    out += c == kHeaderPlans ? "  if constexpr (kClass == headrace::kHeaderPlans) {\n" : "  } else {\n";
    out += "    switch (plan) {\n";
    for (size_t i = 0; i < plans.size(); ++i)
      if (class_of(plans[i].row()) == c)
        out += fmt::format("      case {}:\n        headrace::plan{}::run(slot, parameters);\n        break;\n", i, i);
    out += "    }\n";
  }
  out += "  }\n}\n\n";
  out += "template <headrace::PlanClass kClass>\n";
  out += "HEADRACE_SHADER constexpr uint32_t headrace_block_bytes() {\n";
  out += fmt::format("  return kClass == headrace::kHeaderPlans ? {} : {};\n}}\n\n", block_bytes(plans, kHeaderPlans),
                     block_bytes(plans, kPayloadPlans));
  out += "template <headrace::PlanClass kClass>\n";
  out += "HEADRACE_SHADER void headrace_prepare_block() {\n";
  for (const PlanClass c : {kHeaderPlans, kPayloadPlans}) {
    out += c == kHeaderPlans ? "  if constexpr (kClass == headrace::kHeaderPlans) {\n" : "  } else {\n";
    std::map<std::string_view, uint32_t> types;
    for (const Plan& plan : plans)
      if (class_of(plan.row()) == c)
        for (const Step& step : plan.steps()) types[step.element->info().documented_as] = step.element->block_bytes();
    std::string_view owner;
    for (const auto& [type, bytes] : types) {
      if (bytes != 0 && !owner.empty())
        out += fmt::format("    static_assert(false, \"{} and {} want the same shared memory\");\n", owner, type);
      if (bytes != 0) owner = type;
      out += fmt::format("    headrace::prepare_block<headrace::{}>();\n", type);
    }
  }
  out += "  }\n}\n";
  return out;
}

Program make_program(const std::vector<Plan>& plans, size_t images) {
  Program program;
  for (const Plan& plan : plans) program.plans.push_back({plan.row(), plan.counters(), plan.reads_payloads_again()});
  program.objects = &plans;
  program.source = program_source(plans);
  program.parameter_bytes = images;
  for (const PlanClass c : {kHeaderPlans, kPayloadPlans}) program.block_bytes[c] = block_bytes(plans, c);
  return program;
}

}  // namespace headrace::offload
