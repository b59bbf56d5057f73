#pragma once
/// \file
/// What all lookup elements of a family (IPv4, IPv6) share on the host: the routes, their next hops and the handlers.

#include <algorithm>
#include <headrace/element.hh>
#include <headrace/mirror.hh>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "tables/files/file_stamp.hh"
#include "tables/memory/huge_array.hh"

namespace headrace {

/// The routes of one lookup element. Changes may come from any thread, one at a time; readers never wait.
///
/// `Family` says what addresses, tables and next hops are: see Ip4Family in elements/ip/ip4_routes.hh.
template <typename Family>
class RouteTable {
 public:
  using Address = typename Family::Address;
  using Table = typename Family::Table;
  using View = typename Family::View;
  using Hop = typename Family::Hop;

  RouteTable() { hops_[0] = Family::no_hop(); }

  /// Routes are listed in the order in which they were added, not by prefix. Before configure().
  void list_in_order() { in_order_ = true; }
  /// Reads `ADDR/MASK [GW] OUT` arguments and the routes of a FILE.
  Status configure(Args& args);
  void add_handlers(Handlers& handlers, Element& element);
  std::string note() const;
  /// The files that routes came from have not changed since.
  bool current() const {
    return std::all_of(files_.begin(), files_.end(), [](const auto& file) { return file.first.unchanged(); });
  }

  View view() const { return table_.view(); }
  /// Indexed by what the table answers. It never moves. In front of the first one is Family::no_hop().
  const Hop* hops() const { return hops_.data() + 1; }
  /// The same two on a device.
  void mirror(Mirror& mirror, View& view, const Hop*& hops) const {
    const std::lock_guard guard(lock_);
    view = table_.mirror(mirror);
    hops = mirror.array(hops_.data(), hop_indices_.size() + 2) + 1;
  }

 private:
  using Key = typename Family::Key;
  using Route = typename Table::Route;
  struct Line {
    Key prefix{};  // host bits are clear
    int length = 0;
    Address gateway;
    int port = -1;  // -1: not given (only for removal)
  };
  /// What stood for a prefix before a command of a group.
  struct Before {
    Route route;
    bool existed;
  };
  enum class Command { kAdd, kSet, kRemove };

  bool parse(std::string_view text, const ArgContext& context, bool for_removal, Line& line) const;
  Hop& hop(uint32_t index) { return hops_[size_t{index} + 1]; }
  const Hop& hop(uint32_t index) const { return hops_[size_t{index} + 1]; }
  /// The index of a next hop, made if need be; kMiss when there are too many.
  uint32_t hop_index(const Address& gateway, int port);
  Status load_file(const std::string& path, int spread, std::vector<Route>& routes, Errors& errors);
  Status run(Command command, std::string_view text, const ArgContext& context, Errors& errors);
  /// A group of commands, one a line: all or nothing.
  Status control(std::string_view text, const ArgContext& context, Errors& errors);
  void put_back(const Before& before);
  std::string unparse(const Route& route, bool tabs) const;
  std::string list() const;
  std::string lookup(const Address& address) const;

  /// A prefix in an order of its own, for maps.
  static auto order_of(const Key& prefix, int length) { return std::pair(Family::address(prefix), length); }
  using Order = decltype(order_of(Key{}, 0));
  /// Takes note of when a route was added.
  void remember(const Key& prefix, int length) {
    if (in_order_ && added_.try_emplace(order_of(prefix, length), next_added_).second) ++next_added_;
  }

  mutable std::mutex lock_;  // among those who change or list the table
  Table table_;
  HugeArray<Hop> hops_{Family::kMaxHops + 1};  // as in hops()
  std::map<std::pair<Address, int>, uint32_t> hop_indices_;
  std::vector<std::pair<FileStamp, size_t>> files_;  // and how many routes each had
  int outputs_ = 0;
  bool in_order_ = false;
  std::map<Order, uint64_t> added_;  // a number that rises
  uint64_t next_added_ = 0;
};

}  // namespace headrace
