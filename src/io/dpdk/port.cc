// Ports: which there are, and how one is opened, started and stopped. packets.cc has what moves packets.

#include "io/dpdk/port.hh"

#include <fmt/format.h>
#include <net/if.h>
#include <rte_bus.h>
#include <rte_dev.h>
#include <rte_errno.h>
#include <rte_ethdev.h>

#include <algorithm>
#include <cctype>
#include <cstring>

#include "io/dpdk/eal.hh"
#include "io/dpdk/mbuf.hh"
#include "io/dpdk/transmit_queue.hh"
#include "io/dpdk/watch.hh"

namespace headrace::io::dpdk {

namespace {

/// Header, check sequence and two VLAN tags come on top of an MTU.
constexpr uint32_t kFrameOverhead = 14 + 8;
constexpr uint32_t kCheckSequence = 4;
constexpr uint32_t kBufferRoom = PacketPool::kCapacity - Packet::kDefaultHeadroom;

/// What an error number of DPDK (negative or not) means, and what DPDK said besides.
std::string because(int error, const LogCapture& capture) {
  const std::string said = capture.text();
  // Many a driver's -1 is no EPERM.
  if (error == -1 && !said.empty()) return said;
  const std::string text = rte_strerror(error < 0 ? -error : error);
  return said.empty() ? text : fmt::format("{} ({})", text, said);
}

bool all_digits(std::string_view s) {
  return !s.empty() && std::all_of(s.begin(), s.end(), [](char c) { return c >= '0' && c <= '9'; });
}

/// "3:00.0" and "0000:03:00.0" are PCI addresses, which DPDK names in the longer form.
std::optional<std::string> pci_name(const std::string& text) {
  unsigned domain = 0, bus, device, function;
  int end = 0;
  if (std::sscanf(text.c_str(), "%x:%x:%x.%x%n", &domain, &bus, &device, &function, &end) != 4 ||
      (text[end] != '\0' && text[end] != ',')) {
    domain = 0;
    if (std::sscanf(text.c_str(), "%x:%x.%x%n", &bus, &device, &function, &end) != 3 ||
        (text[end] != '\0' && text[end] != ','))
      return std::nullopt;
  }
  return fmt::format("{:04x}:{:02x}:{:02x}.{:x}", domain, bus, device, function);
}

std::string name_of(uint16_t id) {
  char name[RTE_ETH_NAME_MAX_LEN];
  return rte_eth_dev_get_name_by_port(id, name) == 0 ? name : fmt::format("port {}", id);
}

std::optional<uint16_t> find_port(const std::string& name) {
  uint16_t id;
  if (rte_eth_dev_get_port_by_name(name.c_str(), &id) == 0) return id;
  // Some drivers give their ports other names than the device has.
  RTE_ETH_FOREACH_DEV(id) {
    rte_eth_dev_info info;
    if (rte_eth_dev_info_get(id, &info) == 0 && info.device && name == rte_dev_name(info.device)) return id;
  }
  return std::nullopt;
}

std::string bus_of(const rte_device* device) {
  const rte_bus* bus = device ? rte_dev_bus(device) : nullptr;
  return bus ? rte_bus_name(bus) : "";
}

struct OpenPorts {
  std::mutex lock;
  std::vector<std::weak_ptr<Port>> ports;
};
OpenPorts& open_ports() {
  static OpenPorts* ports = new OpenPorts;
  return *ports;
}

int removed(uint16_t, rte_eth_event_type, void* flag, void*) {
  static_cast<std::atomic<bool>*>(flag)->store(true);
  return 0;
}

}  // namespace

std::string list_ports() {
  std::string s;
  uint16_t id;
  RTE_ETH_FOREACH_DEV(id) {
    rte_eth_dev_info info;
    const bool known = rte_eth_dev_info_get(id, &info) == 0;
    s += fmt::format("{}{} ({}, driver {})", s.empty() ? "" : ", ", id, name_of(id), known ? info.driver_name : "?");
  }
  return s.empty() ? "none" : s;
}

std::shared_ptr<Port> Port::open(const std::string& text, Errors& errors) {
  std::lock_guard guard(open_ports().lock);
  std::erase_if(open_ports().ports, [](const std::weak_ptr<Port>& p) { return p.expired(); });
  return open_locked(text, errors);
}

std::shared_ptr<Port> Port::open_locked(const std::string& text, Errors& errors) {
  const std::string device = pci_name(text).value_or(text.substr(0, text.find(',')));
  const bool with_arguments = text.find(',') != std::string::npos;
  std::optional<uint16_t> id;
  std::string made;
  if (all_digits(text)) {
    const unsigned long number = std::strtoul(text.c_str(), nullptr, 10);
    if (number >= RTE_MAX_ETHPORTS || !rte_eth_dev_is_valid_port(static_cast<uint16_t>(number))) {
      (void)errors.error("no DPDK port {}; ports: {}", text, list_ports());
      return nullptr;
    }
    id = static_cast<uint16_t>(number);
  } else {
    for (const auto& weak : open_ports().ports) {
      const std::shared_ptr<Port> port = weak.lock();
      if (!port || port->name_ != device) continue;
      if (!with_arguments || text == port->device_arguments_) return port;
      (void)errors.error("{} runs with other arguments: {}", device,
                         port->device_arguments_.empty() ? "none" : port->device_arguments_);
      return nullptr;
    }
    id = find_port(device);
    if (!id) {
      LogCapture capture;
      const int result = rte_dev_probe(text.c_str());
      id = find_port(device);
      if (!id) {
        (void)errors.error("no DPDK port '{}': {}{}; ports: {}", text,
                           result < 0 ? because(result, capture) : "its driver makes no port of it",
                           pci_name(text) ? "; a card must be bound to vfio-pci when the router starts" : "",
                           list_ports());
        return nullptr;
      }
      made = text;
    }
  }
  for (const auto& weak : open_ports().ports)
    if (const std::shared_ptr<Port> port = weak.lock(); port && port->id_ == *id) return port;
  std::shared_ptr<Port> port(new Port(*id, name_of(*id), made));
  open_ports().ports.push_back(port);
  return port;
}

Port::Port(uint16_t id, std::string name, std::string device_arguments)
    : id_(id), name_(std::move(name)), device_arguments_(std::move(device_arguments)) {}

Port::~Port() {
  attach_thread();
  Watch::instance().remove(this);
  stop();
}

void Port::empty_rings() {
  rte_mbuf* burst[64];
  for (int q = 0; q < settings_.receive_queues; ++q)
    while (const uint16_t n = rte_eth_rx_burst(id_, static_cast<uint16_t>(q), burst, 64))
      rte_pktmbuf_free_bulk(burst, n);
}

/// The port's device is left as it was found: one that we made goes, others are stopped.
void Port::stop() {
  usable_ = false;
  LogCapture capture;
  if (!rte_eth_dev_is_valid_port(id_)) return;
  rte_eth_dev_callback_unregister(id_, RTE_ETH_EVENT_INTR_RMV, &removed, &removed_);
  rte_eth_dev_info info{};
  rte_device* device = rte_eth_dev_info_get(id_, &info) == 0 ? info.device : nullptr;
  // A ring outlives its port, with what is in it.
  if (started_ && info.driver_name && std::string_view(info.driver_name) == "net_ring") empty_rings();
  if (started_) rte_eth_dev_stop(id_);
  started_ = false;
  if (device_arguments_.empty()) return;
  rte_eth_dev_close(id_);
  if (device) rte_dev_remove(device);
  id_ = RTE_MAX_ETHPORTS;
}

Status Port::compare(const PortSettings& wanted, Errors& errors) const {
  const PortSettings& is = settings_;
  const int before = errors.error_count();
  const auto differs = [&](const char* what, auto runs, auto asked) {
    (void)errors.error("{} runs with {} {}, this configuration asks for {}: stop the router to change that", name_,
                       runs, what, asked);
  };
  if (wanted.receive_queues != is.receive_queues) differs("receive queue(s)", is.receive_queues, wanted.receive_queues);
  if (wanted.receive_descriptors && wanted.receive_descriptors != receive_descriptors_)
    differs("receive descriptors", receive_descriptors_, wanted.receive_descriptors);
  if (wanted.transmit_descriptors && wanted.transmit_descriptors != transmit_descriptors_)
    differs("transmit descriptors", transmit_descriptors_, wanted.transmit_descriptors);
  if (wanted.mtu && wanted.mtu != mtu()) differs("bytes as its MTU", mtu(), wanted.mtu);
  if (wanted.backlog > is.backlog) differs("packets as its IQUEUE", is.backlog, wanted.backlog);
  if (wanted.verify_checksums && !is.verify_checksums)
    differs("checksum verification", std::string("no"), std::string("it"));
  if ((wanted.ip_checksums && !is.ip_checksums) || (wanted.l4_checksums && !is.l4_checksums) ||
      (is.ip_checksums && !wanted.ip_checksums) || (is.l4_checksums && !wanted.l4_checksums))
    differs("checksum offload", std::string("another"), std::string("it"));
  return errors.error_count() == before ? Status() : Status::failed();
}

Status Port::start(const PortSettings& settings, const std::shared_ptr<LinkWatch>& links, Errors& errors) {
  if (started_) return compare(settings, errors);
  std::unique_lock guard(control_lock_);
  settings_ = settings;
  const std::string failure = configure_and_start();
  guard.unlock();
  if (!failure.empty()) return errors.error("{}: {}", name_, failure);
  Watch::instance().add(this, links);
  return {};
}

std::string Port::configure_and_start() {
  LogCapture capture;
  rte_eth_dev_info info;
  if (const int error = rte_eth_dev_info_get(id_, &info); error != 0) return because(error, capture);
  if (settings_.receive_queues > info.max_rx_queues)
    return fmt::format("{} receive queues are asked for, the port has at most {}", settings_.receive_queues,
                       info.max_rx_queues);
  settings_.transmit_queues = std::clamp<int>(settings_.transmit_queues, 1, std::max<int>(info.max_tx_queues, 1));

  rte_eth_conf conf{};
  if (info.flow_type_rss_offloads != 0 && settings_.receive_queues > 1) {
    conf.rxmode.mq_mode = RTE_ETH_MQ_RX_RSS;
    conf.rx_adv_conf.rss_conf.rss_hf =
        (RTE_ETH_RSS_IP | RTE_ETH_RSS_TCP | RTE_ETH_RSS_UDP) & info.flow_type_rss_offloads;
  }
  uint16_t mtu = static_cast<uint16_t>(settings_.mtu);
  if (mtu == 0 && rte_eth_dev_get_mtu(id_, &mtu) != 0) mtu = RTE_ETHER_MTU;
  if (settings_.mtu && (mtu < info.min_mtu || mtu > info.max_mtu))
    return fmt::format("MTU {} is out of range, the port takes {} to {}", mtu, info.min_mtu, info.max_mtu);
  if (settings_.mtu) conf.rxmode.mtu = mtu;
  longest_frame_ = mtu + kFrameOverhead;
  const bool large = longest_frame_ + kCheckSequence > kBufferRoom;

  uint64_t receive = info.rx_offload_capa & (conf.rxmode.mq_mode ? RTE_ETH_RX_OFFLOAD_RSS_HASH : 0);
  if (large) receive |= info.rx_offload_capa & RTE_ETH_RX_OFFLOAD_SCATTER;
  if (settings_.verify_checksums) {
    const uint64_t checksums = info.rx_offload_capa & RTE_ETH_RX_OFFLOAD_CHECKSUM;
    if (checksums == 0) return "the port cannot verify checksums (CHECKSUM)";
    receive |= checksums;
  }
  uint64_t transmit = 0;
  if (settings_.ip_checksums) transmit |= RTE_ETH_TX_OFFLOAD_IPV4_CKSUM;
  if (settings_.l4_checksums) transmit |= RTE_ETH_TX_OFFLOAD_TCP_CKSUM | RTE_ETH_TX_OFFLOAD_UDP_CKSUM;
  transmit &= info.tx_offload_capa;
  hardware_checksums_ = transmit;
  sets_checksums_ = settings_.ip_checksums || settings_.l4_checksums;
  // All mbufs come from one mempool and are counted once, so a driver may return them without a look, unless frames
  // have several.
  segments_ = large && (info.tx_offload_capa & RTE_ETH_TX_OFFLOAD_MULTI_SEGS);
  transmit |= info.tx_offload_capa & (segments_ ? RTE_ETH_TX_OFFLOAD_MULTI_SEGS : RTE_ETH_TX_OFFLOAD_MBUF_FAST_FREE);
  conf.rxmode.offloads = receive;
  conf.txmode.offloads = transmit;

  const auto configure = [&] {
    return rte_eth_dev_configure(id_, static_cast<uint16_t>(settings_.receive_queues),
                                 static_cast<uint16_t>(settings_.transmit_queues), &conf);
  };
  int e = configure();
  if (e != 0 && settings_.transmit_queues > settings_.receive_queues) {
    // Some drivers (net_tap) want as many of one as of the other.
    settings_.transmit_queues = settings_.receive_queues;
    e = configure();
  }
  if (e != 0)
    return fmt::format("{} receive and {} transmit queues: {}", settings_.receive_queues, settings_.transmit_queues,
                       because(e, capture));
  if (settings_.mtu)
    if (e = rte_eth_dev_set_mtu(id_, mtu); e != 0 && e != -ENOTSUP)
      return fmt::format("MTU {}: {}", mtu, because(e, capture));
  if (const std::string failure = map_packet_memory(); !failure.empty()) return failure;
  if (const std::string failure = set_up_queues(receive, transmit); !failure.empty()) return failure;
  if (settings_.mac) {
    rte_ether_addr address;
    std::memcpy(address.addr_bytes, settings_.mac->bytes().data(), sizeof address.addr_bytes);
    if (e = rte_eth_dev_default_mac_addr_set(id_, &address); e != 0)
      return fmt::format("MAC {}: {}", settings_.mac->unparse(), because(e, capture));
  }
  if (e = rte_eth_dev_start(id_); e != 0) return because(e, capture);
  started_ = true;
  if (settings_.promiscuous) {
    e = *settings_.promiscuous ? rte_eth_promiscuous_enable(id_) : rte_eth_promiscuous_disable(id_);
    if (e != 0 && *settings_.promiscuous && e != -ENOTSUP) return fmt::format("PROMISC: {}", because(e, capture));
  }
  removed_ = false;
  rte_eth_dev_callback_register(id_, RTE_ETH_EVENT_INTR_RMV, &removed, &removed_);
  note_address();
  // Only a device that we made can be made again, and only of virtual ones is the interface all there is.
  interface_ = device_arguments_.empty() ? 0 : info.if_index;
  char name[IF_NAMESIZE];
  interface_name_ = interface_ && if_indextoname(interface_, name) ? name : "";
  usable_.store(true, std::memory_order_release);
  return {};
}

std::string Port::set_up_queues(uint64_t receive_offloads, uint64_t transmit_offloads) {
  LogCapture capture;
  rte_eth_dev_info info;
  if (const int e = rte_eth_dev_info_get(id_, &info); e != 0) return because(e, capture);
  constexpr uint16_t kDescriptors = 1024;
  const auto wanted = [](int asked, uint16_t preferred) {
    return static_cast<uint16_t>(asked ? asked : preferred ? preferred : kDescriptors);
  };
  uint16_t rx = wanted(settings_.receive_descriptors, info.default_rxportconf.ring_size);
  uint16_t tx = wanted(settings_.transmit_descriptors, info.default_txportconf.ring_size);
  if (const int e = rte_eth_dev_adjust_nb_rx_tx_desc(id_, &rx, &tx); e != 0)
    return fmt::format("NDESC {}: {}", rx, because(e, capture));
  receive_descriptors_ = rx;
  transmit_descriptors_ = tx;
  const int socket = rte_eth_dev_socket_id(id_);
  for (int q = 0; q < settings_.receive_queues; ++q) {
    rte_eth_rxconf conf = info.default_rxconf;
    conf.offloads = receive_offloads;
    if (const int e = rte_eth_rx_queue_setup(id_, static_cast<uint16_t>(q), rx, static_cast<unsigned>(socket), &conf,
                                             packet_mempool());
        e != 0)
      return fmt::format("receive queue {} with {} descriptors: {}", q, rx, because(e, capture));
  }
  for (int q = 0; q < settings_.transmit_queues; ++q) {
    rte_eth_txconf conf = info.default_txconf;
    conf.offloads = transmit_offloads;
    if (const int e = rte_eth_tx_queue_setup(id_, static_cast<uint16_t>(q), tx, static_cast<unsigned>(socket), &conf);
        e != 0)
      return fmt::format("transmit queue {} with {} descriptors: {}", q, tx, because(e, capture));
  }
  while (static_cast<int>(transmit_queues_.size()) < settings_.transmit_queues)
    transmit_queues_.push_back(
        std::make_unique<TransmitQueue>(static_cast<uint16_t>(transmit_queues_.size()), settings_.backlog));
  return {};
}

/// A device with a memory management unit of its own sees packet memory only when it was mapped.
std::string Port::map_packet_memory() {
  rte_eth_dev_info info;
  if (rte_eth_dev_info_get(id_, &info) != 0 || bus_of(info.device) == "vdev") return {};
  LogCapture capture;
  const PacketPool& pool = PacketPool::instance();
  void* base = const_cast<void*>(pool.base());
  if (rte_dev_dma_map(info.device, base, reinterpret_cast<uintptr_t>(base), pool.bytes()) == 0) return {};
  // Mapped already for a device of the same IOMMU domain, or a driver that does without.
  if (rte_errno == EEXIST || rte_errno == ENOTSUP) return {};
  return fmt::format("packet memory cannot be mapped for the device: {}", because(rte_errno, capture));
}

void Port::apply(const PortSettings& settings) {
  Errors errors(Errors::Output::kStderr);
  // Some virtual devices are promiscuous and cannot be otherwise.
  if (settings.promiscuous && *settings.promiscuous != promiscuous()) {
    Errors refused;
    (void)set_promiscuous(*settings.promiscuous, *settings.promiscuous ? errors : refused);
  }
  if (settings.mac && *settings.mac != mac()) (void)set_mac(*settings.mac, errors);
}

}  // namespace headrace::io::dpdk
