#pragma once
/// \file
/// Addresses of the host's network devices, which arguments may name: `eth0`, `eth0:ip`, `eth0:eth`, `eth0:gw`.
/// Every call asks the kernel, which takes time in proportion to the number of devices, unless the word cannot be the
/// name of a device or a DeviceSnapshot exists.

#include <optional>
#include <string_view>

#include "headrace/addresses.hh"

namespace headrace {

/// While one exists, this thread asks the kernel for addresses once and keeps the answer. A configuration with 280,000
/// routes names the same few devices again and again; a handler that is written later must see new addresses.
class DeviceSnapshot {
 public:
  DeviceSnapshot();
  ~DeviceSnapshot();
  DeviceSnapshot(const DeviceSnapshot&) = delete;
  DeviceSnapshot& operator=(const DeviceSnapshot&) = delete;
};

/// The first IPv4 address of a device with its mask.
std::optional<IpPrefix> find_device_prefix(std::string_view device);
/// The hardware address of an Ethernet or 802.11 device.
std::optional<EtherAddress> find_device_ether(std::string_view device);
/// The gateway of the IPv4 default route through a device.
std::optional<IpAddress> find_device_gateway(std::string_view device);

}  // namespace headrace
