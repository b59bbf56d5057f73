#include "elements/ip/FixIPSrc.hh"

namespace headrace {

Status FixIPSrc::configure(Args& args) {
  IpAddress source;
  if (!args.read_mp("IPADDR", source).complete()) return Status::failed();
  address = source.host_order();
  return {};
}

}  // namespace headrace
