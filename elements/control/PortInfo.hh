#pragma once
#include <headrace/element.hh>

namespace headrace {

/// Gives names to TCP and UDP ports.
///
///     PortInfo(NAME PORT[/PROTOCOL] [NAME...], ...)
///
/// Each argument names one port; without PROTOCOL (`tcp`, `udp`, or an IP protocol's name or number) the name holds for
/// TCP and UDP. Further names, and comments that begin with #, may follow, so a line of /etc/services is a valid
/// argument. Names are known in the compound element that the PortInfo is part of, and in those within it. A name that
/// is not defined is looked up among the well-known services.
class PortInfo final : public Element {
 public:
  static constexpr Ports kPorts{"0/0"};
  int configure_phase() const override { return kInfoPhase; }
  Status configure(Args& args) override;
};

HEADRACE_ELEMENT(PortInfo)

}  // namespace headrace
