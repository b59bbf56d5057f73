#include "elements/ip/DecIPTTL.hh"

namespace headrace {

Status DecIPTTL::configure(Args& args) { return args.read("ACTIVE", active).read("MULTICAST", multicast).complete(); }

void DecIPTTL::add_handlers(Handlers& handlers, ShaderElement<DecIPTTL>& element) {
  handlers.read("drops", [&element] { return std::to_string(element.counter(kExpired)); });
  handlers.read("active", [this] { return std::string(active ? "true" : "false"); });
  handlers.write("active", [this](const std::string& value, Errors& errors) {
    return parse_argument(value, active, ArgContext(nullptr, &errors)) ? Status()
                                                                       : errors.error("expected true or false");
  });
}

}  // namespace headrace
