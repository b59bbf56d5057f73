#include "elements/ip6/CheckIP6Header.hh"

#include <algorithm>

#include "elements/ip6/check_ip6_header_owner.hh"

namespace headrace {

Status CheckIP6Header::configure(Args& args, CheckIP6HeaderOwner& owner) {
  std::vector<Ip6Address> bad, more;
  if (!args.read_p("BADADDRS", bad)
           .read_p("OFFSET", offset, Between{0, 65535})
           .read("BADSRC", more)
           .read("VERBOSE", owner.verbose)
           .read("DETAILS", owner.details)
           .complete())
    return Status::failed();
  bad.insert(bad.end(), more.begin(), more.end());
  std::sort(bad.begin(), bad.end());
  bad.erase(std::unique(bad.begin(), bad.end()), bad.end());

  owner.bad_sources.clear();
  bad_sources = {};
  for (const Ip6Address& address : bad) {
    ip6::Words words;
    std::memcpy(&words, address.data(), sizeof words);
    owner.bad_sources.push_back(words);
    bad_sources.filter |= Address6List::bit_of(words);
  }
  const int n = static_cast<int>(bad.size());
  const int kept = std::min(n, Address6List::kInline);
  std::copy_n(owner.bad_sources.begin(), kept, bad_sources.words);
  bad_sources.count = kept;
  bad_sources.more_count = n - kept;
  bad_sources.more = owner.bad_sources.data() + kept;
  return {};
}

void CheckIP6Header::add_handlers(Handlers& handlers, CheckIP6HeaderOwner& owner, ShaderElementBase& element) {
  add_header_check_handlers(handlers, owner, element, kCounters.info, kCounters.kCount);
}

ShaderCode CheckIP6Header::specialize(const CheckIP6HeaderOwner&) const { return known_members({{"offset", offset}}); }

void CheckIP6Header::refresh(const CheckIP6HeaderOwner& owner) { renew(tells, owner.tells()); }

void CheckIP6Header::mirror(Mirror& mirror, const CheckIP6HeaderOwner& owner) {
  refresh(owner);
  bad_sources.more = mirror.array(bad_sources.more, static_cast<size_t>(bad_sources.more_count));
}

Next CheckIP6Header::escape(Packet*& p, Emitter& emit, CheckIP6HeaderOwner& owner) const {
  CpuView<CheckIP6Header> view(p, nullptr);
  owner.tell(emit.element(), "IP6", kCounters.info[check(view)].name);
  return 1;
}

HEADRACE_ELEMENT(CheckIP6Header)

}  // namespace headrace
