#pragma once
/// \file
/// The routes of an IPv6 lookup element, their next hops and the handlers.

#include <algorithm>
#include <headrace/element.hh>
#include <map>
#include <mutex>
#include <string>

#include "elements/ip6/LookupIP6Route.hh"
#include "tables/file_stamp.hh"
#include "tables/lpm4/huge_array.hh"
#include "tables/lpm6/lpm6.hh"

namespace headrace {

/// The routes of one lookup element. Changes may come from any thread, one at a time; readers never wait.
class IP6RouteTable {
 public:
  /// Reads `ADDR/MASK [GW] OUT` arguments and the routes of a FILE.
  Status configure(Args& args);
  void add_handlers(Handlers& handlers, Element& element);
  std::string note() const;
  /// The files that routes came from have not changed since.
  bool current() const {
    return std::all_of(files_.begin(), files_.end(), [](const auto& file) { return file.first.unchanged(); });
  }

  Lpm6View view() const { return table_.view(); }
  /// Indexed by what the table answers. It never moves.
  const Ip6NextHop* hops() const { return hops_.data(); }
  /// The same two on a device.
  void mirror(Mirror& mirror, Lpm6View& view, const Ip6NextHop*& hops) const {
    const std::lock_guard guard(lock_);
    view = table_.mirror(mirror);
    hops = mirror.array(hops_.data(), hop_indices_.size() + 1);
  }

 private:
  struct Line {
    Ip6Prefix prefix;
    Ip6Address gateway;
    int port = -1;  // -1: not given (only for removal)
  };
  enum class Command { kAdd, kSet, kRemove };
  /// Most distinct pairs of gateway and output.
  static constexpr size_t kMaxHops = size_t{1} << 22;

  bool parse(std::string_view text, const ArgContext& context, bool for_removal, Line& line) const;
  /// The index of a next hop, made if need be; kMiss when there are too many.
  uint32_t hop_index(const Ip6Address& gateway, int port);
  /// The index of a next hop, kMiss if there is none.
  uint32_t find_hop(const Ip6Address& gateway, int port) const;
  Status load_file(const std::string& path, int spread, std::vector<Lpm6::Route>& routes, Errors& errors);
  Status run(Command command, std::string_view text, const ArgContext& context, Errors& errors);
  /// A group of commands, one a line: all or nothing.
  Status control(const std::string& text, const ArgContext& context, Errors& errors);
  std::string unparse(const Lpm6::Route& route, bool tabs) const;
  std::string list() const;
  std::string lookup(const Ip6Address& address) const;

  mutable std::mutex lock_;  // among those who change or list the table
  Lpm6 table_;
  HugeArray<Ip6NextHop> hops_{kMaxHops};
  std::map<std::pair<Ip6Address, int>, uint32_t> hop_indices_;
  std::vector<std::pair<FileStamp, size_t>> files_;  // and how many routes each had
  int outputs_ = 0;
};

}  // namespace headrace
