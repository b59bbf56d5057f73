#pragma once
/// \file
/// What all IP lookup elements share on the host: the routes, their next hops and the handlers.

#include <algorithm>
#include <headrace/element.hh>
#include <map>
#include <mutex>
#include <string>

#include "elements/ip/ip_lookup.hh"
#include "tables/file_stamp.hh"
#include "tables/lpm4/huge_array.hh"
#include "tables/lpm4/lpm4.hh"

namespace headrace {

/// The routes of one lookup element. Changes may come from any thread, one at a time; readers never wait.
class IPRouteTable {
 public:
  IPRouteTable();

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

  Lpm4View view() const { return table_.view(); }
  /// Indexed by what the table answers. It never moves.
  const IpNextHop* hops() const { return hops_.data(); }
  /// The same two on a device.
  void mirror(Mirror& mirror, Lpm4View& view, const IpNextHop*& hops) const {
    const std::lock_guard guard(lock_);
    view = table_.mirror(mirror);
    hops = mirror.array(hops_.data(), hop_indices_.size() + 1);
  }

 private:
  struct Line {
    IpPrefix prefix;
    IpAddress gateway;
    int port = -1;  // -1: not given (only for removal)
  };
  enum class Command { kAdd, kSet, kRemove };
  /// Most distinct pairs of gateway and output.
  static constexpr size_t kMaxHops = size_t{1} << 24;

  bool parse(std::string_view text, const ArgContext& context, bool for_removal, Line& line) const;
  /// The index of a next hop, made if need be; kMiss when there are too many.
  uint32_t hop_index(IpAddress gateway, int port);
  Status load_file(const std::string& path, int spread, std::vector<Lpm4::Route>& routes, Errors& errors);
  Status run(Command command, std::string_view text, const ArgContext& context, Errors& errors);
  /// A group of commands, one a line: all or nothing.
  Status control(const std::string& text, const ArgContext& context, Errors& errors);
  std::string unparse(const Lpm4::Route& route, bool tabs) const;
  /// Takes note of when a route was added.
  void remember(uint32_t prefix, int length) {
    if (in_order_ && added_.try_emplace({prefix, length}, next_added_).second) ++next_added_;
  }
  std::string list() const;
  std::string lookup(IpAddress address) const;

  mutable std::mutex lock_;  // among those who change or list the table
  Lpm4 table_;
  HugeArray<IpNextHop> hops_{kMaxHops};
  std::map<std::pair<uint32_t, int>, uint32_t> hop_indices_;
  std::vector<std::pair<FileStamp, size_t>> files_;  // and how many routes each had
  int outputs_ = 0;
  bool in_order_ = false;
  std::map<std::pair<uint32_t, int>, uint64_t> added_;  // by prefix and length: a number that rises
  uint64_t next_added_ = 0;
};

// --- The shader's part on the host
// ------------------------------------------------------------------------------------

template <typename Self>
Status IPLookupShader<Self>::configure(Args& args, Owner& owner) {
  return owner.configure(args);
}

template <typename Self>
void IPLookupShader<Self>::add_handlers(Handlers& handlers, Owner& owner, Element& element) {
  owner.add_handlers(handlers, element);
}

template <typename Self>
auto IPLookupShader<Self>::note(const Owner& owner) const {
  return owner.note();
}

template <typename Self>
void IPLookupShader<Self>::refresh(const Owner& owner) {
  table = owner.view();
  hops = owner.hops();
}

template <typename Self>
void IPLookupShader<Self>::mirror(Mirror& mirror, const Owner& owner) {
  owner.mirror(mirror, table, hops);
}

template <typename Self>
void IPLookupShader<Self>::shade_batch(Packet* const* packets, int n, Next* nexts, uint64_t* events) const {
  uint32_t addresses[Batch::kCapacity];
  uint32_t indices[Batch::kCapacity];
  for (int i = 0; i < n; ++i) addresses[i] = __builtin_bswap32(packets[i]->anno_u32(anno_offset::kDstIp));
  table.lookup_batch(addresses, indices, static_cast<size_t>(n));
  for (int i = 0; i < n; ++i) {
    if (indices[i] == Lpm4View::kMiss) [[unlikely]] {
      ++events[kNoRoute];
      nexts[i] = kDrop;
      continue;
    }
    const IpNextHop hop = hops[indices[i]];
    if (hop.gateway) packets[i]->set_anno_u32(anno_offset::kDstIp, __builtin_bswap32(hop.gateway));
    nexts[i] = hop.port;
  }
}

}  // namespace headrace
