#include "elements/ip6/GetIP6Address.hh"

namespace headrace {

Status GetIP6Address::configure(Args& args) { return args.read_mp("OFFSET", offset, Between{0, 65520}).complete(); }

}  // namespace headrace
