#include "elements/ethernet/EtherVLANEncap.hh"

#include "elements/ethernet/vlan_tag_args.hh"

namespace headrace {

Status EtherVLANEncap::configure(Args& args) {
  EtherAddress source, destination;
  uint16_t type = 0;
  VlanTagArgs tag_args;
  args.read_mp("ETHERTYPE", type).read_mp("SRC", source).read_mp("DST", destination);
  tag_args.read(args);
  if (!tag_args.read_native(args).complete()) return Status::failed();
  destination.copy_to(header.b);
  source.copy_to(header.b + 6);
  header.b[12] = static_cast<uint8_t>(type >> 8);
  header.b[13] = static_cast<uint8_t>(type);
  return tag_args.finish(args.errors(), tag);
}

void EtherVLANEncap::add_handlers(Handlers& handlers) {
  handlers.argument("ethertype", "ETHERTYPE", 0, true);
  handlers.argument("src", "SRC", 1, true);
  handlers.argument("dst", "DST", 2, true);
  handlers.read("ethertype", [this] { return std::to_string(header.b[12] << 8 | header.b[13]); });
  handlers.read("src", [this] { return EtherAddress::from_bytes(header.b + 6).unparse(); });
  handlers.read("dst", [this] { return EtherAddress::from_bytes(header.b).unparse(); });
  add_vlan_handlers(handlers, tag, 3);
  add_native_vlan_handler(handlers, tag);
}

}  // namespace headrace
