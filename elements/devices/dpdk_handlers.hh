#pragma once
#include <headrace/element.hh>
#include <memory>
#include <string>
#include <vector>

#include "src/io/dpdk/port.hh"

namespace headrace {

/// "net_af_packet0,iface=veth1" is one argument for the user, but two for the configuration language: joins those
/// that are of the form key=value, without blanks, to the first.
inline std::vector<std::string> join_device_arguments(std::vector<std::string> arguments) {
  const auto is_pair = [](const std::string& s) {
    const size_t equals = s.find('=');
    if (equals == 0 || equals == std::string::npos) return false;
    return s.find_first_of(" \t\r\n\"'") == std::string::npos;
  };
  while (arguments.size() > 1 && is_pair(arguments[1])) {
    arguments[0] += "," + arguments[1];
    arguments.erase(arguments.begin() + 1);
  }
  return arguments;
}

/// What FromDPDKDevice and ToDPDKDevice tell about their port. `port` may be null, also later: then values are empty.
inline void add_port_handlers(Handlers& handlers, const std::shared_ptr<io::dpdk::Port>& port) {
  const auto read = [&](const char* name, std::string (*value)(const io::dpdk::Port&)) {
    handlers.read(name, [&port, value] { return port ? value(*port) : std::string(); });
  };
  read("port", [](const io::dpdk::Port& p) { return p.name(); });
  read("device", [](const io::dpdk::Port& p) { return p.info().device; });
  read("driver", [](const io::dpdk::Port& p) { return p.info().driver; });
  read("vendor", [](const io::dpdk::Port& p) { return p.info().vendor; });
  read("nb_rx_queues", [](const io::dpdk::Port& p) { return std::to_string(p.info().most_receive_queues); });
  read("nb_tx_queues", [](const io::dpdk::Port& p) { return std::to_string(p.info().most_transmit_queues); });
  read("nb_vf_pools", [](const io::dpdk::Port& p) { return std::to_string(p.info().virtual_pools); });
  read("rss_reta_size", [](const io::dpdk::Port& p) { return std::to_string(p.info().hash_table_size); });
  read("link", [](const io::dpdk::Port& p) { return std::string(p.link().up ? "up" : "down"); });
  read("carrier", [](const io::dpdk::Port& p) { return std::string(p.link().up ? "1" : "0"); });
  read("speed", [](const io::dpdk::Port& p) { return std::to_string(p.link().mbps); });
  read("duplex", [](const io::dpdk::Port& p) { return std::string(p.link().full_duplex ? "1" : "0"); });
  read("autoneg", [](const io::dpdk::Port& p) { return std::string(p.link().autonegotiated ? "1" : "0"); });
  read("mac", [](const io::dpdk::Port& p) { return p.mac().unparse(); });
  read("mtu", [](const io::dpdk::Port& p) { return std::to_string(p.mtu()); });
  handlers.read_with("xstats", [&port](const std::string& name, std::string& value, Errors& errors) {
    if (!port) return Status();
    if (name.empty()) {
      value = port->extended_stats();
      return Status();
    }
    const auto one = port->extended_stat(name);
    if (!one) return errors.error("{} counts no '{}'", port->name(), name);
    value = std::to_string(*one);
    return Status();
  });
}

}  // namespace headrace
