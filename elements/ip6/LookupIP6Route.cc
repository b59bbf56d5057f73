#include "elements/ip6/LookupIP6Route.hh"

#include "elements/ip6/ip6_routes.hh"
#include "headrace/scratch.hh"

namespace headrace {

Status LookupIP6Route::configure(Args& args, Owner& owner) { return owner.configure(args); }

void LookupIP6Route::add_handlers(Handlers& handlers, Owner& owner, Element& element) {
  owner.add_handlers(handlers, element);
}

auto LookupIP6Route::note(const Owner& owner) const { return owner.note(); }

void LookupIP6Route::refresh(const Owner& owner) {
  renew(table, owner.view());
  renew(hops, owner.hops());
}

void LookupIP6Route::mirror(Mirror& mirror, const Owner& owner) { owner.mirror(mirror, table, hops); }

void LookupIP6Route::shade_batch(Packet* const* packets, int n, Next* nexts, uint64_t* events) const {
  Scratch<Lpm6Key, Batch::kCapacity> keys;
  uint32_t indices[Batch::kCapacity];
  for (int i = 0; i < n; ++i) {
    keys[i] = {__builtin_bswap64(packets[i]->anno_u64(anno_offset::kDstIp6)),
               __builtin_bswap64(packets[i]->anno_u64(anno_offset::kDstIp6 + 8))};
  }
  table.lookup_batch(keys.data(), indices, static_cast<size_t>(n));
  for (int i = 0; i < n; ++i) {
    if (indices[i] == Lpm6View::kMiss) [[unlikely]] {
      ++events[kNoRoute];
      nexts[i] = kDrop;
      continue;
    }
    const Ip6NextHop& hop = hops[indices[i]];
    if (load_shared(&hop.has_gateway)) {
      const uint64_t halves[] = {load_shared(ip6_words(hop.gateway)), load_shared(ip6_words(hop.gateway) + 1)};
      std::memcpy(packets[i]->anno() + anno_offset::kDstIp6, halves, sizeof halves);
    }
    nexts[i] = static_cast<Next>(load_shared(&hop.port));
  }
}

HEADRACE_ELEMENT(LookupIP6Route)

}  // namespace headrace
