#pragma once
/// \file
/// What all IP lookup elements share: the routes, their next hops, the handlers, and the shader.

#include <headrace/element.hh>
#include <headrace/shader.hh>
#include <map>
#include <mutex>
#include <string>

#include "tables/lpm4/huge_array.hh"
#include "tables/lpm4/lpm4.hh"

namespace headrace {

/// Where packets of a route go. Gateway in host order, 0: the destination is on the link.
struct IpNextHop {
  uint32_t gateway;
  uint16_t port;
  uint16_t unused;
};

/// The routes of one lookup element. Changes may come from any thread, one at a time; readers never wait.
class IPRouteTable {
 public:
  IPRouteTable();

  /// Reads `ADDR/MASK [GW] OUT` arguments and the routes of a FILE.
  Status configure(Args& args);
  void add_handlers(Handlers& handlers, Element& element);
  std::string note() const;

  Lpm4View view() const { return table_.view(); }
  /// Indexed by what the table answers. It never moves.
  const IpNextHop* hops() const { return hops_.data(); }

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
  std::string list() const;
  std::string lookup(IpAddress address) const;

  mutable std::mutex lock_;  // among those who change or list the table
  Lpm4 table_;
  HugeArray<IpNextHop> hops_{kMaxHops};
  std::map<std::pair<uint32_t, int>, uint32_t> hop_indices_;
  std::vector<std::pair<std::string, size_t>> files_;  // and how many routes each had
  int outputs_ = 0;
};

/// The shader of every IP lookup element: the destination annotation decides the output and becomes the gateway.
template <typename Self>
struct IPLookupShader : Shader<Self> {
  static constexpr Ports kPorts{"1/-"};
  static constexpr Processing kProcessing{"h/h"};
  static constexpr auto kRegions = regions(ReadWrite{anno::dst_ip});
  enum { kNoRoute };
  static constexpr auto kCounters = counters(reason("no route"));
  using Owner = IPRouteTable;

  Lpm4View table;
  const IpNextHop* hops = nullptr;

  Status configure(Args& args, Owner& owner) { return owner.configure(args); }
  void add_handlers(Handlers& handlers, Owner& owner, Element& element) { owner.add_handlers(handlers, element); }
  std::string note(const Owner& owner) const { return owner.note(); }
  void refresh(const Owner& owner) {
    table = owner.view();
    hops = owner.hops();
  }

  HEADRACE_SHADER Next shade(auto& p) const {
    const uint32_t index = table.lookup(p.get(anno::dst_ip));
    if (index == Lpm4View::kMiss) {
      p.count(kNoRoute);
      return kDrop;
    }
    const IpNextHop hop = hops[index];
    if (hop.gateway) p.set(anno::dst_ip, hop.gateway);
    return hop.port;
  }

  /// The same with all lookups of a batch under way together: they wait for memory, not for each other.
  void shade_batch(Packet* const* packets, int n, Next* nexts, uint64_t* events) const {
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
};

}  // namespace headrace
