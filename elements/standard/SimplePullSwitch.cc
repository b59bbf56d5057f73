#include "elements/standard/SimplePullSwitch.hh"

namespace headrace {

Status SimplePullSwitch::configure(Args& args) {
  int input = 0;
  if (!args.read_p("INPUT", input).complete()) return Status::failed();
  set_input(input);
  return {};
}

void SimplePullSwitch::set_input(int input) {
  input_ = input < 0 || input >= ninputs() ? -1 : input;
  switched();
}

int SimplePullSwitch::pull(int, Batch& batch, int max) {
  const int from = input_.load(std::memory_order_relaxed);
  return from < 0 ? 0 : input(from).pull(batch, max);
}

void SimplePullSwitch::add_handlers(Handlers& handlers) {
  handlers.read("switch", [this] { return configuration(); });
  handlers.write(
      "switch",
      [this](const std::string& value, Errors& errors) {
        int input;
        if (!parse_value(value, input, errors)) return Status::failed();
        set_input(input);
        return Status();
      },
      Handler::kThreadSafe);
}

}  // namespace headrace
