#pragma once
#include <headrace/element.hh>
#include <memory>
#include <string>
#include <vector>

#include "src/io/dpdk/port.hh"

namespace headrace {

/// "net_af_packet0,iface=veth1" is one argument to whoever writes it, two to the configuration language: joins those
/// that are of the form key=value, without blanks, to the first.
std::vector<std::string> join_device_arguments(std::vector<std::string> arguments);

/// What FromDPDKDevice and ToDPDKDevice tell about their port. `port` may be null later: then values are empty.
void add_port_handlers(Handlers& handlers, const std::shared_ptr<io::dpdk::Port>& port);

}  // namespace headrace
