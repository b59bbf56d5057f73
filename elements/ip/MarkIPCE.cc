#include "elements/ip/MarkIPCE.hh"

namespace headrace {

Status MarkIPCE::configure(Args& args) { return args.read_p("FORCE", force).complete(); }

void MarkIPCE::add_handlers(Handlers& handlers, ShaderElement<MarkIPCE>& element) {
  handlers.read("drops", [&element] { return std::to_string(element.counter(kNotCapable)); });
}

}  // namespace headrace
