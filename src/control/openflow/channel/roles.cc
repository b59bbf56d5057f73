#include "control/openflow/channel/roles.hh"

namespace headrace::openflow {

namespace {

template <typename Reason>
constexpr uint32_t bit(Reason reason) {
  return 1u << static_cast<unsigned>(reason);
}

}  // namespace

AsyncConfig default_async() {
  AsyncConfig config;
  config.packet_in = {bit(PacketInReason::kNoMatch) | bit(PacketInReason::kAction), 0};
  const uint32_t all_ports = bit(PortReason::kAdd) | bit(PortReason::kDelete) | bit(PortReason::kModify);
  config.port_status = {all_ports, all_ports};
  config.flow_removed = {bit(FlowRemovedReason::kIdleTimeout) | bit(FlowRemovedReason::kHardTimeout) |
                             bit(FlowRemovedReason::kDelete) | bit(FlowRemovedReason::kGroupDelete),
                         0};
  return config;
}

bool passes(const AsyncConfig& config, Role role, const Body& body) {
  const size_t column = role == Role::kSlave ? 1 : 0;
  if (const auto* in = std::get_if<PacketIn>(&body)) return (config.packet_in[column] & bit(in->reason)) != 0;
  if (const auto* removed = std::get_if<FlowRemoved>(&body))
    return (config.flow_removed[column] & bit(removed->reason)) != 0;
  if (const auto* port = std::get_if<PortStatus>(&body)) return (config.port_status[column] & bit(port->reason)) != 0;
  return false;
}

bool modifies(const Body& body) {
  if (const auto* request = std::get_if<MultipartRequest>(&body)) {
    const auto* tables = std::get_if<std::vector<TableFeatures>>(&request->body);
    return tables != nullptr && !tables->empty();
  }
  return std::holds_alternative<PacketOut>(body) || std::holds_alternative<FlowMod>(body) ||
         std::holds_alternative<GroupMod>(body) || std::holds_alternative<PortMod>(body) ||
         std::holds_alternative<TableMod>(body) || std::holds_alternative<MeterMod>(body);
}

}  // namespace headrace::openflow
