// What handlers ask of a port.

#include <fmt/format.h>
#include <rte_bus.h>
#include <rte_dev.h>
#include <rte_errno.h>
#include <rte_ethdev.h>

#include <cstring>

#include "io/dpdk/eal.hh"
#include "io/dpdk/port.hh"
#include "io/dpdk/transmit_queue.hh"

namespace headrace::io::dpdk {

namespace {

struct SpeedBit {
  uint32_t bit, mbps;
  bool full_duplex = true;
};
constexpr SpeedBit kSpeedBits[] = {
    {RTE_ETH_LINK_SPEED_10M_HD, 10, false},
    {RTE_ETH_LINK_SPEED_10M, 10},
    {RTE_ETH_LINK_SPEED_100M_HD, 100, false},
    {RTE_ETH_LINK_SPEED_100M, 100},
    {RTE_ETH_LINK_SPEED_1G, 1000},
    {RTE_ETH_LINK_SPEED_2_5G, 2500},
    {RTE_ETH_LINK_SPEED_5G, 5000},
    {RTE_ETH_LINK_SPEED_10G, 10'000},
    {RTE_ETH_LINK_SPEED_20G, 20'000},
    {RTE_ETH_LINK_SPEED_25G, 25'000},
    {RTE_ETH_LINK_SPEED_40G, 40'000},
    {RTE_ETH_LINK_SPEED_50G, 50'000},
    {RTE_ETH_LINK_SPEED_56G, 56'000},
    {RTE_ETH_LINK_SPEED_100G, 100'000},
    {RTE_ETH_LINK_SPEED_200G, 200'000},
};

rte_ether_addr to_dpdk(const EtherAddress& address) {
  rte_ether_addr a;
  address.copy_to(a.addr_bytes);
  return a;
}

std::vector<rte_eth_xstat_name> stat_names(uint16_t id) {
  std::vector<rte_eth_xstat_name> names(static_cast<size_t>(std::max(rte_eth_xstats_get_names(id, nullptr, 0), 0)));
  const int n = rte_eth_xstats_get_names(id, names.data(), static_cast<unsigned>(names.size()));
  names.resize(static_cast<size_t>(std::clamp(n, 0, static_cast<int>(names.size()))));
  return names;
}

/// Calls `change`; its failure is an error named after what was to be set.
template <typename Change>
Status try_to(const std::string& port, const char* what, Errors& errors, Change&& change) {
  attach_thread();
  LogCapture capture;
  const int e = change();
  if (e == 0) return {};
  const std::string said = capture.text();
  return errors.error("{}: {}: {}{}{}", port, what, rte_strerror(-e), said.empty() ? "" : ": ", said);
}

}  // namespace

PortStats Port::stats() const {
  std::lock_guard guard(control_lock_);
  PortStats s = before_;
  rte_eth_stats now{};
  if (!started_ || rte_eth_stats_get(id_, &now) != 0) return s;
  s.received += now.ipackets;
  s.received_bytes += now.ibytes;
  s.missed += now.imissed;
  s.receive_errors += now.ierrors;
  s.no_buffers += now.rx_nombuf;
  s.sent += now.opackets;
  s.sent_bytes += now.obytes;
  s.send_errors += now.oerrors;
  return s;
}

PortLink Port::link() const {
  std::lock_guard guard(control_lock_);
  rte_eth_link link{};
  if (!started_ || rte_eth_link_get_nowait(id_, &link) != 0) return {};
  PortLink l;
  l.up = link.link_status == RTE_ETH_LINK_UP && usable();
  l.mbps = link.link_speed == RTE_ETH_SPEED_NUM_UNKNOWN ? 0 : link.link_speed;
  l.full_duplex = link.link_duplex == RTE_ETH_LINK_FULL_DUPLEX;
  l.autonegotiated = link.link_autoneg == RTE_ETH_LINK_AUTONEG;
  return l;
}

std::optional<DeviceState> Port::device_state() const {
  if (!usable()) return std::nullopt;
  const PortLink now = link();
  DeviceState state;
  state.name = name();
  state.address = mac();
  state.carrier = link_up();
  state.mtu = mtu();
  state.speed = state.most_speed = now.mbps;
  state.current =
      link_mode::of_speed(now.mbps, now.full_duplex) | (now.autonegotiated ? link_mode::kAutonegotiation : 0);
  const std::lock_guard guard(control_lock_);
  rte_eth_dev_info info;
  if (rte_eth_dev_info_get(id_, &info) != 0) return state;
  for (const SpeedBit& speed : kSpeedBits)
    if ((info.speed_capa & speed.bit) != 0) {
      state.supported |= link_mode::of_speed(speed.mbps, speed.full_duplex);
      state.most_speed = std::max(state.most_speed, speed.mbps);
    }
  return state;
}

PortInfo Port::info() const {
  std::lock_guard guard(control_lock_);
  PortInfo i;
  rte_eth_dev_info info;
  if (rte_eth_dev_info_get(id_, &info) != 0) return i;
  if (info.device) {
    i.device = rte_dev_name(info.device);
    const rte_bus* bus = rte_dev_bus(info.device);
    i.bus = bus ? rte_bus_name(bus) : "";
    const char* const about = rte_dev_bus_info(info.device);
    i.vendor = about ? about : "";
  }
  i.driver = info.driver_name ? info.driver_name : "";
  i.socket = rte_eth_dev_socket_id(id_);
  i.most_receive_queues = info.max_rx_queues;
  i.most_transmit_queues = info.max_tx_queues;
  i.receive_descriptors = receive_descriptors_;
  i.transmit_descriptors = transmit_descriptors_;
  i.hash_table_size = info.reta_size;
  i.virtual_pools = info.max_vmdq_pools;
  i.distributes = info.flow_type_rss_offloads != 0;
  return i;
}

EtherAddress Port::mac() const {
  rte_ether_addr address{};
  if (rte_eth_macaddr_get(id_, &address) != 0) return {};
  return EtherAddress::from_bytes(address.addr_bytes);
}

void Port::note_address() {
  uint64_t address = 0;
  mac().copy_to(&address);
  address_.store(address, std::memory_order_relaxed);
}

int Port::mtu() const {
  uint16_t mtu = 0;
  return rte_eth_dev_get_mtu(id_, &mtu) == 0 ? mtu : 0;
}

bool Port::promiscuous() const { return rte_eth_promiscuous_get(id_) == 1; }

Status Port::set_promiscuous(bool on, Errors& errors) {
  std::lock_guard guard(control_lock_);
  const Status status = try_to(name_, "PROMISC", errors,
                               [&] { return on ? rte_eth_promiscuous_enable(id_) : rte_eth_promiscuous_disable(id_); });
  if (status) settings_.promiscuous = on;
  return status;
}

Status Port::set_mac(EtherAddress address, Errors& errors) {
  std::lock_guard guard(control_lock_);
  rte_ether_addr a = to_dpdk(address);
  const Status status = try_to(name_, "MAC", errors, [&] { return rte_eth_dev_default_mac_addr_set(id_, &a); });
  if (status) settings_.mac = address;
  note_address();
  return status;
}

Status Port::add_mac(EtherAddress address, Errors& errors) {
  std::lock_guard guard(control_lock_);
  rte_ether_addr a = to_dpdk(address);
  return try_to(name_, "add_mac", errors, [&] { return rte_eth_dev_mac_addr_add(id_, &a, 0); });
}

Status Port::remove_mac(EtherAddress address, Errors& errors) {
  std::lock_guard guard(control_lock_);
  rte_ether_addr a = to_dpdk(address);
  return try_to(name_, "remove_mac", errors, [&] { return rte_eth_dev_mac_addr_remove(id_, &a); });
}

Status Port::set_mtu(int mtu, Errors& errors) {
  std::lock_guard guard(control_lock_);
  // Room for longer frames is part of how the queues were set up.
  if (static_cast<uint32_t>(mtu) + 22 > longest_frame_)
    return errors.error("{}: the port was started for an MTU of at most {}", name_, longest_frame_ - 22);
  return try_to(name_, "MTU", errors, [&] { return rte_eth_dev_set_mtu(id_, static_cast<uint16_t>(mtu)); });
}

std::string Port::extended_stats() const {
  std::lock_guard guard(control_lock_);
  const std::vector<rte_eth_xstat_name> names = stat_names(id_);
  std::vector<rte_eth_xstat> values(names.size());
  const int n = rte_eth_xstats_get(id_, values.data(), static_cast<unsigned>(values.size()));
  std::string s;
  for (int i = 0; i < n && i < static_cast<int>(names.size()); ++i)
    if (values[i].id < names.size()) s += fmt::format("{}: {}\n", names[values[i].id].name, values[i].value);
  return s;
}

std::optional<uint64_t> Port::extended_stat(const std::string& name) const {
  std::lock_guard guard(control_lock_);
  uint64_t id, value;
  if (rte_eth_xstats_get_id_by_name(id_, name.c_str(), &id) != 0) return std::nullopt;
  if (rte_eth_xstats_get_by_id(id_, &id, &value, 1) != 1) return std::nullopt;
  return value;
}

void Port::reset_stats() {
  std::lock_guard guard(control_lock_);
  before_ = {};
  rte_eth_stats_reset(id_);
  rte_eth_xstats_reset(id_);
}

int Port::receive_queue_fill(int queue) const {
  return usable() ? rte_eth_rx_queue_count(id_, static_cast<uint16_t>(queue)) : -1;
}

}  // namespace headrace::io::dpdk
