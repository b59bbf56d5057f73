#include "elements/ethernet/SetVLANAnno.hh"

#include "elements/ethernet/vlan_tag_args.hh"

namespace headrace {

static_assert(vlan::tci_anno.kOffset == anno_offset::kVlanTci);

Status SetVLANAnno::configure(Args& args) {
  VlanTagArgs tag_args(false);
  if (!tag_args.read(args).complete()) return Status::failed();
  return tag_args.finish(args.errors(), tag);
}

void SetVLANAnno::add_handlers(Handlers& handlers) { add_vlan_handlers(handlers, tag, 0); }

}  // namespace headrace
