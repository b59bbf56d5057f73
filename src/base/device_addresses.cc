#include "base/device_addresses.hh"

#include <ifaddrs.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <netinet/in.h>
#include <netpacket/packet.h>
#include <sys/socket.h>

#include <cstdio>
#include <memory>

namespace headrace {
namespace {

using AddressList = std::unique_ptr<ifaddrs, decltype(&freeifaddrs)>;

AddressList ask_kernel() {
  ifaddrs* list = nullptr;
  return {getifaddrs(&list) == 0 ? list : nullptr, freeifaddrs};
}

struct Kept {
  int snapshots = 0;
  bool asked = false;
  AddressList list{nullptr, freeifaddrs};
};
thread_local Kept t_kept;

/// False for numbers and for words that Linux does not accept as a name. An argument that is a number of one kind is
/// often tried as another kind first.
bool may_be_device(std::string_view word) {
  return !word.empty() && word.size() < IFNAMSIZ && word.find('/') == std::string_view::npos &&
         word.find_first_not_of("0123456789.:") != std::string_view::npos;
}

/// What `f` makes of the first entry of a device's addresses for which it gives something.
template <typename F>
auto first_of_device(std::string_view device, int family, F f) -> decltype(f(std::declval<const ifaddrs&>())) {
  if (!may_be_device(device)) return std::nullopt;
  AddressList own{nullptr, freeifaddrs};
  if (t_kept.snapshots == 0) {
    own = ask_kernel();
  } else if (!t_kept.asked) {
    t_kept.list = ask_kernel();
    t_kept.asked = true;
  }
  for (const ifaddrs* entry = own ? own.get() : t_kept.list.get(); entry; entry = entry->ifa_next)
    if (entry->ifa_addr && entry->ifa_addr->sa_family == family && device == entry->ifa_name)
      if (auto result = f(*entry)) return result;
  return std::nullopt;
}

IpAddress ip_of(const sockaddr* address) {
  return IpAddress::from_network_order(reinterpret_cast<const sockaddr_in*>(address)->sin_addr.s_addr);
}

}  // namespace

DeviceSnapshot::DeviceSnapshot() { ++t_kept.snapshots; }

DeviceSnapshot::~DeviceSnapshot() {
  if (--t_kept.snapshots == 0) t_kept = {};
}

std::optional<IpPrefix> find_device_prefix(std::string_view device) {
  return first_of_device(device, AF_INET, [](const ifaddrs& entry) -> std::optional<IpPrefix> {
    return IpPrefix{ip_of(entry.ifa_addr), entry.ifa_netmask ? ip_of(entry.ifa_netmask) : IpAddress::prefix_mask(32)};
  });
}

std::optional<EtherAddress> find_device_ether(std::string_view device) {
  return first_of_device(device, AF_PACKET, [](const ifaddrs& entry) -> std::optional<EtherAddress> {
    const auto* link = reinterpret_cast<const sockaddr_ll*>(entry.ifa_addr);
    const bool ethernet = link->sll_hatype == ARPHRD_ETHER || link->sll_hatype == ARPHRD_IEEE80211;
    if (!ethernet || link->sll_halen != 6) return std::nullopt;
    return EtherAddress::from_bytes(link->sll_addr);
  });
}

std::optional<IpAddress> find_device_gateway(std::string_view device) {
  if (!may_be_device(device)) return std::nullopt;
  const std::unique_ptr<FILE, decltype(&fclose)> routes(fopen("/proc/net/route", "re"), fclose);
  if (!routes) return std::nullopt;
  char line[256];
  while (fgets(line, sizeof line, routes.get())) {
    char name[64];
    unsigned destination, gateway, flags, mask;
    // Fields: Iface Destination Gateway Flags RefCnt Use Metric Mask ...; the addresses are in network order.
    if (sscanf(line, "%63s %x %x %x %*d %*d %*d %x", name, &destination, &gateway, &flags, &mask) != 5) continue;
    if (device == name && destination == 0 && mask == 0 && gateway != 0) return IpAddress::from_network_order(gateway);
  }
  return std::nullopt;
}

}  // namespace headrace
