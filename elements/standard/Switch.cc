#include "elements/standard/Switch.hh"

namespace headrace {

Status Switch::configure(Args& args) {
  int output = 0;
  if (!args.read_p("OUTPUT", output).complete()) return Status::failed();
  if (output >= noutputs()) return args.errors().error("output must be < {}", noutputs());
  output_ = output;
  return {};
}

void Switch::push(int, Batch& batch) {
  const int out = output_.load(std::memory_order_relaxed);
  if (out >= 0)
    output(out).push(batch);
  else
    drop(batch);
}

void Switch::add_handlers(Handlers& handlers) {
  handlers.read("switch", [this] { return configuration(); });
  handlers.write(
      "switch",
      [this](const std::string& value, Errors& errors) {
        int out;
        if (!parse_argument(value, out, ArgContext())) return errors.error("Switch output must be integer");
        output_ = out < noutputs() ? out : -1;
        return Status();
      },
      Handler::kThreadSafe);
}

}  // namespace headrace
