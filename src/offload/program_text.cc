#include "offload/program_text.hh"

#include <fmt/format.h>

#include <algorithm>

#include "headrace/device/embedded.hh"

namespace headrace::offload {

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

std::string meaning(const Plan& plan, uint16_t code) {
  if (code < kExit) return as_comment(plan.steps()[code].element->name());
  const Exit& e = plan.exits()[static_cast<size_t>(code - kExit)];
  switch (e.kind) {
    case Exit::Kind::kResume:
      return "the host does this element and what follows";
    case Exit::Kind::kDrop:
      return "dropped";
    case Exit::Kind::kEscape:
      return "the element's host body";
    case Exit::Kind::kPort:
      return fmt::format("leaves by output {}", e.port);
  }
  return {};
}

}  // namespace headrace::offload
