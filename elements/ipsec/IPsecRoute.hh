#pragma once
#include <array>
#include <headrace/element.hh>
#include <vector>

#include "elements/ipsec/IPsecDatabase.hh"
#include "tables/lpm4/lpm4.hh"
#include "tables/lpm6/lpm6.hh"

namespace headrace {

/// Sends IP packets to the ports of an ipsec-secgw file, in Ethernet frames.
///
///     IPsecRoute(DATABASE, ETH0 [, ETH1, ...])
///
/// Input: IPv4 and IPv6 packets with a network header. Output n: Ethernet frames for port n of the file. The longest
/// `rt` line that contains the destination gives the port, the port's `neigh` line the neighbor's Ethernet address, and
/// ETHn is the gateway's own there. What lies in front of the network header is gone.
///
/// Dropped and counted: packets that no `rt` line routes, that have no room for the header, or that are not IP.
///
/// All `rt` and `neigh` lines of the IPsecDatabase's files count. A route to a port that has no ETHn, or no neighbor, is
/// an error of the configuration, and so are two routes of one prefix.
///
/// DATABASE: an IPsecDatabase. ETHn: an Ethernet address for each output.
///
/// Handlers: `table` (r) a line `PREFIX port N NEIGHBOR` for each route.
class IPsecRoute : public Element {
 public:
  static constexpr Ports kPorts{"1/1-"};
  static constexpr Processing kProcessing{"h/h"};

  Status configure(Args& args) override;
  void add_handlers(Handlers& handlers) override;
  std::string note() const override;
  void push(int port, Batch& batch) override;

 private:
  enum { kNoRoute, kNoRoom, kNotIp };
  using Header = std::array<uint8_t, 14>;
  struct Hop {
    EtherAddress own, neighbor;
    int neighbor_line = 0;  // 0: none
    Header header4, header6;
  };
  Status take_neighbors(Errors& errors);
  Status take_routes(Errors& errors);

  IPsecDatabase* database_ = nullptr;
  std::vector<Hop> hops_;
  Lpm4 routes4_;
  Lpm6 routes6_;
};

}  // namespace headrace
