#pragma once
#include <headrace/element.hh>
#include <vector>

namespace headrace {

/// Answers neighbor solicitations for IPv6 addresses (RFC 4861, 7.2.4), also for others (proxy).
///
///     IP6NDAdvertiser(IP6/LENGTH [IP6/LENGTH ...] ETH, IP6/LENGTH ETH, ...)
///
/// Input: neighbor solicitations with their Ethernet headers. Output 0: for each solicitation of an address in one of
/// the networks, an advertisement with that network's ETH; of several networks the smallest counts. Everything else,
/// and solicitations with a wrong checksum or a hop limit other than 255, is dropped and counted. A solicitation from
/// the unspecified address (duplicate address detection) is answered to all nodes.
///
/// An address without a length stands for itself.
///
/// Handlers: `table` (r) one network a line.
class IP6NDAdvertiser final : public SimpleElement {
 public:
  static constexpr Ports kPorts{"1/1"};

  Status configure(Args& args) override;
  bool can_live_reconfigure() const override { return true; }
  void add_handlers(Handlers& handlers) override;
  Packet* act(Packet* p, Emitter& emit) override;

 private:
  struct Entry {
    Ip6Prefix network;
    EtherAddress ether;
  };
  Status add(std::vector<Entry>& table, const std::string& argument, size_t index, Args& args) const;
  const EtherAddress* lookup(const Ip6Address& address) const;

  std::vector<Entry> table_;  // longest prefix first
};

HEADRACE_ELEMENT(IP6NDAdvertiser)

}  // namespace headrace
