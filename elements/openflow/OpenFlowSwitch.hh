#pragma once
#include <headrace/compound.hh>

namespace headrace {

/// An OpenFlow switch, versions 1.0 and 1.3.
///
///     OpenFlowSwitch(DPID [, keyword CONTROLLER, LISTEN, FAIL, FLOWS, LOCAL, VERSIONS, PRIVATE_KEY, CERTIFICATE,
///         CA_CERTIFICATE, PROBE, MAX_BACKOFF, LOST_AFTER, AUXILIARY, DESCRIPTION])
///
/// Input and output i, push: Ethernet frames from and to port i + 1 of the switch.
struct OpenFlowSwitch {
  static constexpr Ports kPorts{"1-/="};

  static Status expand(Args& args, std::string& body);
};

HEADRACE_COMPOUND(OpenFlowSwitch)

}  // namespace headrace
