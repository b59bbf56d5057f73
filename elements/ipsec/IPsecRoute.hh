#pragma once
#include <array>
#include <atomic>
#include <headrace/element.hh>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <tuple>
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
/// Handlers, with workers running: `add` (w) lines `rt` and `neigh` as in a file; `set` (w) the same, but a route of the
/// prefix, or a neighbor of the port, is replaced; `remove` (w) such lines, where the port of an `rt` line does not
/// matter. If a line is wrong, none counts. `table` (r) a line `PREFIX port N NEIGHBOR` for each route.
class IPsecRoute : public Element {
 public:
  static constexpr Ports kPorts{"1/1-"};
  static constexpr Processing kProcessing{"h/h"};

  ~IPsecRoute() override;
  Status configure(Args& args) override;
  void add_handlers(Handlers& handlers) override;
  std::string note() const override;
  void push(int port, Batch& batch) override;

 private:
  enum { kNoRoute, kNoRoom, kNotIp };
  enum class Change { kAdd, kSet, kRemove };
  /// The headers of frames to a neighbor.
  struct Frames {
    Frames(EtherAddress own, EtherAddress neighbor);

    using Header = std::array<uint8_t, 14>;
    Header header4, header6;
  };
  struct Hop {
    EtherAddress own;
    std::atomic<const Frames*> frames{nullptr};  // null: no neighbor
  };
  /// Orders routes by family, prefix and length.
  using Prefix = std::tuple<bool, Ip6Address, int>;
  /// What the lines say.
  struct Lines {
    std::map<Prefix, IPsecDatabase::RouteLine> routes;
    std::vector<std::optional<IPsecDatabase::NeighborLine>> neighbors;  // by port
  };

  Status take(Change change, const std::string& handler, const std::string& text, Errors& errors);
  Status add_neighbor(Change change, const IPsecDatabase::NeighborLine& line, Lines& lines, Errors& errors) const;
  Status add_route(Change change, const IPsecDatabase::RouteLine& line, Lines& lines, Errors& errors) const;
  static Status remove_neighbor(const IPsecDatabase::NeighborLine& line, Lines& lines, Errors& errors);
  static Status remove_route(const IPsecDatabase::RouteLine& line, Lines& lines, Errors& errors);
  Status check_port(uint32_t port, const Landmark& where, Errors& errors) const;
  /// Makes the tables what `lines` say.
  void apply(Lines lines);
  void set_neighbor(uint32_t port, std::unique_ptr<const Frames> frames);

  IPsecDatabase* database_ = nullptr;
  std::vector<Hop> hops_;
  Lpm4 routes4_;
  Lpm6 routes6_;
  mutable std::mutex mutex_;  // for all that changes the tables
  Lines lines_;
};

}  // namespace headrace
