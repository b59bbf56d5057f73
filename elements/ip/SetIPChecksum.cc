#include "elements/ip/SetIPChecksum.hh"

namespace headrace {

void SetIPChecksum::add_handlers(Handlers& handlers, ShaderElementBase& element) {
  handlers.read("drops", [&element] { return std::to_string(element.counter(kBad)); });
}

}  // namespace headrace
