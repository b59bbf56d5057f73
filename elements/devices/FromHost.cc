#include "elements/devices/FromHost.hh"

namespace headrace {

Status FromHost::configure(Args& args) {
  std::vector<std::string> reasons = host_reasons();
  reasons.push_back("ring to its worker full");
  count_reasons(std::move(reasons));
  IpPrefix address;
  Ip6Prefix address6;
  EtherAddress ether;
  bool address_given = false, address6_given = false, ether_given = false;
  args.read_mp("DEVNAME", options_.name).read_p_status("DST", address, address_given);
  args.read("GATEWAY", options_.gateway)
      .read_status("ETHER", ether, ether_given)
      .read_status("DST6", address6, address6_given);
  args.read("HEADROOM", headroom_, Between{0, 1024}).read("BURST", burst_, Between{1, Batch::kCapacity});
  args.read("MTU", options_.mtu, Between{68, 65535}).read("MTU_OUT", options_.mtu, Between{68, 65535});
  if (!args.complete()) return Status::failed();
  if (options_.name.empty()) return args.errors().error("DEVNAME must be a device's name");
  if (address_given && address.address) options_.address = address;
  if (address6_given) options_.address6 = address6;
  if (ether_given) options_.ether = ether;
  return check_common(args);
}

}  // namespace headrace
