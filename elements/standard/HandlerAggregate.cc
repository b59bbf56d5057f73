#include "elements/standard/HandlerAggregate.hh"

#include <cstdlib>

namespace headrace {

Status HandlerAggregate::configure(Args& args) {
  if (!args.read_all("ELEMENT", elements_).complete()) return Status::failed();
  if (elements_.empty()) return args.errors().error("expected at least one ELEMENT");
  return {};
}

Status HandlerAggregate::sum(const std::string& handler, double& sum, Errors& errors) const {
  sum = 0;
  for (const Element* e : elements_) {
    HandlerCall call(e->name() + "." + handler);
    std::string value;
    if (!call.bind(router(), nullptr, false, errors) || !call.read(value, errors)) return Status::failed();
    sum += std::strtod(value.c_str(), nullptr);
  }
  return {};
}

void HandlerAggregate::add_handlers(Handlers& handlers) {
  const auto add = [&](const char* name, bool average) {
    handlers.read_with(name, [this, average](const std::string& handler, std::string& value, Errors& errors) {
      double total = 0;
      if (!sum(handler, total, errors)) return Status::failed();
      value = fmt::format("{}", average ? total / static_cast<double>(elements_.size()) : total);
      return Status();
    });
  };
  add("add", false);
  add("avg", true);
  handlers.write("write", [this](const std::string& text, Errors& errors) {
    for (const Element* e : elements_) {
      HandlerCall call(e->name() + "." + text);
      if (!call.bind(router(), nullptr, true, errors) || !call.write(errors)) return Status::failed();
    }
    return Status();
  });
}

}  // namespace headrace
