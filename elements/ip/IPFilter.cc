#include "elements/ip/IPFilter.hh"

#include "elements/ip/ip_program_host.hh"

namespace headrace {

Status IPFilter::configure(Args& args, Owner& owner) {
  std::vector<std::string> rules;
  if (!read_patterns(args, rules)) return Status::failed();
  return compile_ip_filter(rules, args.scope()->noutputs(), args.scope(), args.errors(), owner);
}

void IPFilter::add_handlers(Handlers& handlers, Owner& owner) {
  handlers.read("program", [&owner] { return owner.text(); });
}

HEADRACE_ELEMENT(IPFilter)

}  // namespace headrace
