#include "elements/ip/StoreIPAddress.hh"

#include "headrace/addresses.hh"

namespace headrace {

Status StoreIPAddress::configure(Args& args) {
  IpAddress ip;
  std::string place;
  from_annotation = args.remaining() < 2;
  if (!from_annotation) args.read_mp("ADDR", ip);
  if (!args.read_mp("OFFSET", place, WordArg()).complete()) return Status::failed();
  address = ip.host_order();
  for (char& c : place)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  where = place == "src" ? Where::kSource : place == "dst" ? Where::kDestination : Where::kOffset;
  if (where == Where::kOffset && !Between{0, 65532}.parse(place, offset, ArgContext()))
    return args.errors().error("type mismatch: OFFSET requires integer");
  return {};
}

}  // namespace headrace
