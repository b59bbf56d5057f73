#include "elements/ethernet/EtherEncap.hh"

namespace headrace {

Status EtherEncap::configure(Args& args) {
  EtherAddress source, destination;
  if (!args.read_mp("ETHERTYPE", type).read_mp("SRC", source).read_mp("DST", destination).complete())
    return Status::failed();
  source.copy_to(src.b);
  destination.copy_to(dst.b);
  return {};
}

void EtherEncap::add_handlers(Handlers& handlers) {
  handlers.argument("ethertype", "ETHERTYPE", 0, true);
  handlers.argument("etht", "ETHERTYPE", 0, true);
  handlers.argument("src", "SRC", 1, true);
  handlers.argument("dst", "DST", 2, true);
  // Read what is in effect, not how the argument was written.
  for (const char* name : {"ethertype", "etht"}) handlers.read(name, [this] { return std::to_string(type); });
  handlers.read("src", [this] { return EtherAddress::from_bytes(src.b).unparse(); });
  handlers.read("dst", [this] { return EtherAddress::from_bytes(dst.b).unparse(); });
}

}  // namespace headrace
