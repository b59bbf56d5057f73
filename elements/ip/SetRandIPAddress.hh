#pragma once
#include <headrace/element.hh>
#include <vector>

#include "headrace/random_numbers.hh"

namespace headrace {

/// Sets the destination address annotation to random addresses.
///
///     SetRandIPAddress(PREFIX [, LIMIT])
///
/// PREFIX: the network that the addresses are from.
/// LIMIT: maximum number of different addresses, drawn when the element is configured.
class SetRandIPAddress final : public SimpleElement {
 public:
  static constexpr Ports kPorts{"1/1"};

  Status configure(Args& args) override;
  std::vector<RegionInfo> annotations() const override { return declared(Write{anno::dst_ip}); }
  Packet* act(Packet* p, Emitter& emit) override;

 private:
  IpAddress draw();

  IpPrefix prefix_;
  std::vector<IpAddress> addresses_;
  RandomNumbers random_;
};

HEADRACE_ELEMENT(SetRandIPAddress)

}  // namespace headrace
