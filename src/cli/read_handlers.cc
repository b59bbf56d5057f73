#include "cli/read_handlers.hh"

#include <fmt/format.h>
#include <fnmatch.h>

#include "base/argument_text.hh"
#include "cli/output.hh"

namespace headrace::cli {

namespace {

std::string full_name(const Element* element, const std::string& handler) {
  return element ? element->name() + "." + handler : handler;
}

Status print_handler(const Router& router, Element* element, const std::string& name, bool headed, Errors& errors) {
  const Handler* handler = (element ? element->handlers() : router.root_handlers()).find(name);
  if (!handler) return errors.error("no '{}' handler", full_name(element, name));
  if (!handler->read) return errors.error("'{}' is a write handler", full_name(element, name));
  std::string value;
  const Status status = router.call_read(*handler, "", value, errors);
  if (headed) print("{}:\n", full_name(element, name));
  if (!value.empty() && value.back() != '\n') value += '\n';
  write_output(value);
  if (headed) print("\n");
  return status;
}

/// The elements that `text` stands for and whether it was a pattern or a class, so that several were meant.
Status expand_elements(const Router& router, const std::string& text, const std::string& handler,
                       std::vector<Element*>& found, bool& several, Errors& errors) {
  if (Element* element = router.find(text)) {
    found.push_back(element);
    several = false;
    return {};
  }
  const bool pattern = text.find_first_of("*?[") != std::string::npos;
  bool any = false;
  for (const auto& e : router.elements()) {
    if (pattern ? fnmatch(text.c_str(), e->name().c_str(), 0) != 0 : text != e->class_name()) continue;
    any = true;
    const Handler* h = e->handlers().find(handler);
    if (h && h->read) found.push_back(e.get());
  }
  several = true;
  if (any) return {};
  return pattern ? errors.error("no element matching '{}'", text) : errors.error("no element '{}'", text);
}

}  // namespace

Status print_handlers(const Router& router, const std::vector<std::string>& names, Errors& errors) {
  Status status;
  for (const std::string& name : names) {
    const size_t dot = name.find('.');
    if (dot == std::string::npos) {
      status &= print_handler(router, nullptr, name, names.size() > 1, errors);
      continue;
    }
    const std::string handler = name.substr(dot + 1);
    std::vector<Element*> elements;
    bool several = false;
    status &= expand_elements(router, name.substr(0, dot), handler, elements, several, errors);
    for (Element* e : elements) status &= print_handler(router, e, handler, several || names.size() > 1, errors);
  }
  return status;
}

int read_exit_status(Router& router, const std::string& name, Errors& errors) {
  HandlerCall call(name);
  std::string value;
  if (!call.bind(router, nullptr, false, errors) || !call.read(value, errors)) return -1;
  const std::string text = lang::uncomment(value);
  int status;
  if (parse_argument(text, status, {})) return status;
  bool good;
  if (parse_argument(text, good, {})) return good ? 0 : 1;
  (void)errors.error("exit handler value should be integer");
  return -1;
}

}  // namespace headrace::cli
