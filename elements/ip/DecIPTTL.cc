#include "elements/ip/DecIPTTL.hh"

namespace headrace {

Status DecIPTTL::configure(Args& args) { return args.read("ACTIVE", active).read("MULTICAST", multicast).complete(); }

void DecIPTTL::add_handlers(Handlers& handlers, ShaderElement<DecIPTTL>& element) {
  handlers.read("drops", [&element] { return std::to_string(element.counter(kExpired)); });
  handlers.value("active", active);
}

}  // namespace headrace
