#pragma once
#include <headrace/element.hh>
#include <vector>

namespace headrace {

/// Sets the destination address annotation to random addresses.
///
///     SetRandIPAddress(PREFIX [, LIMIT])
///
/// PREFIX: the network that the addresses are from.
/// LIMIT: takes at most so many different addresses, drawn when the element is configured.
class SetRandIPAddress final : public SimpleElement {
 public:
  static constexpr Ports kPorts{"1/1"};

  SetRandIPAddress();
  Status configure(Args& args) override;
  Packet* act(Packet* p, Emitter& emit) override;

 private:
  /// xorshift64* (S. Vigna, "An experimental exploration of Marsaglia's xorshift generators", 2016), one for each
  /// thread.
  struct Random {
    uint64_t state = 0;
    uint32_t next();
  };
  IpAddress draw(Random& random) const;

  IpPrefix prefix_;
  std::vector<IpAddress> addresses_;
  PerThread<Random> random_;
};

HEADRACE_ELEMENT(SetRandIPAddress)

}  // namespace headrace
