#include "elements/ip6/SetIP6Address.hh"

#include "headrace/addresses.hh"

namespace headrace {

Status SetIP6Address::configure(Args& args) {
  Ip6Address ip;
  if (!args.read_mp("IPADDR", ip).complete()) return Status::failed();
  ip.copy_to(address.b);
  return {};
}

void SetIP6Address::add_handlers(Handlers& handlers) {
  handlers.read("addr", [this] { return Ip6Address::from_bytes(address.b).unparse(); });
  handlers.write("addr", [this](const std::string& value, Errors& errors) {
    Ip6Address ip;
    if (!parse_argument(value, ip, ArgContext(nullptr, &errors))) return errors.error("expected IP6 address");
    ip.copy_to(address.b);
    return Status();
  });
}

}  // namespace headrace
