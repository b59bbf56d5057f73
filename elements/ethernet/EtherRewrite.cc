#include "elements/ethernet/EtherRewrite.hh"

namespace headrace {

Status EtherRewrite::configure(Args& args) {
  EtherAddress source, destination;
  if (!args.read_mp("SRC", source).read_mp("DST", destination).complete()) return Status::failed();
  destination.copy_to(addresses.b);
  source.copy_to(addresses.b + 6);
  return {};
}

void EtherRewrite::add_handlers(Handlers& handlers) {
  handlers.argument("src", "SRC", 0, true);
  handlers.argument("dst", "DST", 1, true);
  handlers.read("src", [this] { return EtherAddress::from_bytes(addresses.b + 6).unparse(); });
  handlers.read("dst", [this] { return EtherAddress::from_bytes(addresses.b).unparse(); });
}

}  // namespace headrace
