#include "elements/ip/SetIPAddress.hh"

#include "headrace/addresses.hh"

namespace headrace {

Status SetIPAddress::configure(Args& args) {
  IpAddress ip;
  AnnotationArg<4> anno{annotation};
  if (!args.read_mp("IPADDR", ip).read_p("ANNO", anno).complete()) return Status::failed();
  address = ip.host_order();
  annotation = anno;
  return {};
}

void SetIPAddress::add_handlers(Handlers& handlers) {
  handlers.read("addr", [this] { return IpAddress::from_host_order(address).unparse(); });
  handlers.write("addr", [this](const std::string& value, Errors& errors) {
    IpAddress ip;
    if (!parse_argument(value, ip, ArgContext(nullptr, &errors))) return errors.error("expected IP address");
    address = ip.host_order();
    return Status();
  });
}

}  // namespace headrace
