#include "src/io/linux/port.hh"

#include <pcap/dlt.h>

#include <algorithm>
#include <cctype>
#include <cerrno>

#include "src/io/linux/device_registry.hh"

namespace headrace::io {

namespace {

std::optional<Interface> find_interface(const std::string& name, Errors& errors) {
  std::optional<Interface> interface = Interface::find(name);
  if (!interface)
    (void)errors.error("{}: {}", name, explain_errno(errno));
  else if (!interface->up)
    (void)errors.error("{}: {}", name, explain_errno(ENETDOWN));
  else
    return interface;
  return std::nullopt;
}

/// What a request that leaves the choice open gets when AF_XDP is out of the question.
PortMethod method_without_xdp(const Interface& interface, const PortRequest& request) {
  const int wanted = request.link_type >= 0 ? request.link_type : interface.link_type;
  if (interface.link_type < 0 || wanted != interface.link_type) return PortMethod::kPcap;
  // The kernel takes VLAN tags off before a filter sees a frame. libpcap makes filters that know that.
  if (request.filter.find("vlan") != std::string::npos) return PortMethod::kPcap;
  return PortMethod::kAfPacket;
}

bool allows_xdp(const Interface& interface, const PortRequest& request) {
  return !request.sniffer && !request.outbound && request.filter.empty() && interface.link_type == DLT_EN10MB &&
         (request.link_type < 0 || request.link_type == DLT_EN10MB);
}

/// What PortChoice::refusal() says after the attempt to use AF_XDP ended with these errors.
std::string refusal_of(const Errors& tried, const std::string& device) {
  if (tried.lines().empty()) return {};
  std::string_view reason = tried.lines().back();
  for (const std::string& prefix : {device + ": ", std::string("AF_XDP: ")})
    if (reason.starts_with(prefix)) reason.remove_prefix(prefix.size());
  return ", not by af_xdp: " + std::string(reason);
}

/// Adds to a port what kept it from another method.
template <typename P>
std::unique_ptr<P> with_refusal(std::unique_ptr<P> port, std::string refusal) {
  if (port) port->set_refusal(std::move(refusal));
  return port;
}

std::unique_ptr<PortReceiver> open_new_receiver(const PortRequest& request, Errors& errors) {
  const std::optional<Interface> interface = find_interface(request.device, errors);
  if (!interface) return nullptr;
  std::optional<PortMethod> method = request.method;
  std::string refusal;
  if (method == PortMethod::kAfXdp || (!method && allows_xdp(*interface, request))) {
    Errors tried;
    if (auto port = open_xdp_receiver(*interface, request, method ? errors : tried)) return port;
    if (method) return nullptr;
    refusal = refusal_of(tried, request.device);
  }
  if (!method) method = method_without_xdp(*interface, request);
  if (method == PortMethod::kAfPacket)
    return with_refusal(open_packet_receiver(*interface, request, errors), std::move(refusal));
  return with_refusal(open_pcap_receiver(*interface, request, errors), std::move(refusal));
}

std::unique_ptr<PortSender> open_new_sender(const PortRequest& request, int ordinal, Errors& errors) {
  const std::optional<Interface> interface = find_interface(request.device, errors);
  if (!interface) return nullptr;
  const std::optional<PortMethod> method = request.method;
  std::string refusal;
  if (method == PortMethod::kAfXdp || (!method && interface->link_type == DLT_EN10MB)) {
    Errors tried;
    if (auto port = open_xdp_sender(*interface, ordinal, method ? errors : tried)) return port;
    if (method) return nullptr;
    refusal = refusal_of(tried, request.device);
  }
  if (method == PortMethod::kPcap) return open_pcap_sender(*interface, errors);
  return with_refusal(open_packet_sender(*interface, errors), std::move(refusal));
}

DeviceRegistry<PortReceiver>& receivers() {
  static DeviceRegistry<PortReceiver> registry;
  return registry;
}

}  // namespace

std::optional<PortMethod> parse_port_method(std::string word) {
  std::transform(word.begin(), word.end(), word.begin(), [](unsigned char c) { return std::toupper(c); });
  if (word == "AF_XDP") return PortMethod::kAfXdp;
  if (word == "AF_PACKET" || word == "LINUX") return PortMethod::kAfPacket;
  if (word == "PCAP") return PortMethod::kPcap;
  return std::nullopt;
}

const char* port_method_name(PortMethod method) {
  switch (method) {
    case PortMethod::kAfXdp:
      return "af_xdp";
    case PortMethod::kAfPacket:
      return "af_packet";
    case PortMethod::kPcap:
      break;
  }
  return "pcap";
}

bool is_received(const std::string& device) {
  return receivers().any(device, [](const PortReceiver& port) { return port.running(); });
}

std::shared_ptr<PortReceiver> open_receiver(const PortRequest& request, const void* user, Errors& errors) {
  return receivers().open(
      request.device, user,
      [&](const PortReceiver& port) {
        return !port.gone() && (!request.method || *request.method == port.method()) && port.fits(request);
      },
      [&](int) { return open_new_receiver(request, errors); });
}

std::shared_ptr<PortSender> open_sender(const PortRequest& request, const void* user, Errors& errors) {
  static DeviceRegistry<PortSender> registry;
  return registry.open(
      request.device, user, [&](const PortSender& port) { return !request.method || *request.method == port.method(); },
      [&](int ordinal) { return open_new_sender(request, ordinal, errors); });
}

}  // namespace headrace::io
