#include "elements/ip/IPInputCombo.hh"

#include "elements/ip/check_ip_header_owner.hh"

namespace headrace {

Status IPInputCombo::configure(Args& args, CheckIPHeaderOwner& owner) {
  if (!args.read_mp("COLOR", color).consume() || !check.configure(args, owner)) return Status::failed();
  if (check.offset != 0 || owner.verbose || owner.details)
    return args.errors().error("OFFSET, VERBOSE and DETAILS are arguments of CheckIPHeader only");
  return {};
}

void IPInputCombo::add_handlers(Handlers& handlers, CheckIPHeaderOwner& owner, ShaderElementBase& element) {
  add_header_check_handlers(handlers, owner, element, kCounters.info, kCounters.kCount);
}

HEADRACE_ELEMENT(IPInputCombo)

}  // namespace headrace
