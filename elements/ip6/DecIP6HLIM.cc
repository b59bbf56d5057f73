#include "elements/ip6/DecIP6HLIM.hh"

namespace headrace {

void DecIP6HLIM::add_handlers(Handlers& handlers, ShaderElementBase& element) {
  handlers.read("drops", [&element] { return std::to_string(element.counter(kExpired)); });
}

}  // namespace headrace
