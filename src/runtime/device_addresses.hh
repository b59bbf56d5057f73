#pragma once
/// \file
/// Addresses of the host's network devices, which arguments may name: `eth0`, `eth0:ip`, `eth0:eth`, `eth0:gw`.
/// The system is asked on every call: arguments are read rarely, and addresses change.

#include <optional>
#include <string_view>

#include "headrace/addresses.hh"

namespace headrace {

/// The first IPv4 address of a device with its mask.
std::optional<IpPrefix> find_device_prefix(std::string_view device);
/// The hardware address of an Ethernet or 802.11 device.
std::optional<EtherAddress> find_device_ether(std::string_view device);
/// The gateway of the IPv4 default route through a device.
std::optional<IpAddress> find_device_gateway(std::string_view device);

}  // namespace headrace
