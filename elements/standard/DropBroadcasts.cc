#include "elements/standard/DropBroadcasts.hh"

namespace headrace {

static_assert(static_cast<int>(PacketType::kBroadcast) == 1 && static_cast<int>(PacketType::kMulticast) == 2);

void DropBroadcasts::add_handlers(Handlers& handlers, ShaderElementBase& element) {
  handlers.read("drops", [&element] { return std::to_string(element.counter(kBroadcast)); });
}

}  // namespace headrace
