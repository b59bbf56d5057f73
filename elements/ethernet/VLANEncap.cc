#include "elements/ethernet/VLANEncap.hh"

#include "elements/ethernet/vlan_tag_args.hh"

namespace headrace {

Status VLANEncap::configure(Args& args) {
  VlanTagArgs tag_args;
  tag_args.read(args);
  if (!tag_args.read_native(args).read("ETHERTYPE", ethertype).complete()) return Status::failed();
  return tag_args.finish(args.errors(), tag);
}

void VLANEncap::add_handlers(Handlers& handlers) {
  add_vlan_handlers(handlers, tag, 0);
  add_native_vlan_handler(handlers, tag);
  handlers.argument("ethertype", "ETHERTYPE", -1, true);
  handlers.read("ethertype", [this] { return std::to_string(ethertype); });
}

}  // namespace headrace
