#include "SetIPTTL.hh"

namespace headrace {

Status SetIPTTL::configure(Args& args) { return args.read_mp("TTL", ttl, Between{1, 255}).complete(); }

}  // namespace headrace
