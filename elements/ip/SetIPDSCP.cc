#include "elements/ip/SetIPDSCP.hh"

namespace headrace {

Status SetIPDSCP::configure(Args& args) { return args.read_mp("DSCP", dscp, Between{0, 63}).complete(); }

void SetIPDSCP::add_handlers(Handlers& handlers) { handlers.argument("dscp", "DSCP", 0, true); }

}  // namespace headrace
