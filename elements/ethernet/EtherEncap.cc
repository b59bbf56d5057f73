#include "elements/ethernet/EtherEncap.hh"

namespace headrace {

Status EtherEncap::configure(Args& args) {
  EtherAddress source, destination;
  uint16_t type = 0;
  if (!args.read_mp("ETHERTYPE", type).read_mp("SRC", source).read_mp("DST", destination).complete())
    return Status::failed();
  destination.copy_to(header.b);
  source.copy_to(header.b + 6);
  header.b[12] = static_cast<uint8_t>(type >> 8);
  header.b[13] = static_cast<uint8_t>(type);
  return {};
}

void EtherEncap::add_handlers(Handlers& handlers) {
  handlers.argument("ethertype", "ETHERTYPE", 0, true);
  handlers.argument("etht", "ETHERTYPE", 0, true);
  handlers.argument("src", "SRC", 1, true);
  handlers.argument("dst", "DST", 2, true);
  // Read what is in effect, not how the argument was written.
  for (const char* name : {"ethertype", "etht"})
    handlers.read(name, [this] { return std::to_string(header.b[12] << 8 | header.b[13]); });
  handlers.read("src", [this] { return EtherAddress::from_bytes(header.b + 6).unparse(); });
  handlers.read("dst", [this] { return EtherAddress::from_bytes(header.b).unparse(); });
}

}  // namespace headrace
