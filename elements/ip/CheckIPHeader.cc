#include "elements/ip/CheckIPHeader.hh"

#include <algorithm>
#include <bit>

#include "elements/ip/check_ip_header_owner.hh"

namespace headrace {

namespace {

/// Addresses with prefixes; one without is a network of its own.
struct InterfacesArg {
  bool parse(std::string_view text, std::vector<IpPrefix>& out, const ArgContext& context) const {
    std::vector<std::string> words;
    if (!parse_argument(text, words, context)) return false;
    for (const std::string& word : words)
      if (!PrefixOrAddress{}.parse(word, out.emplace_back(), context)) return false;
    return true;
  }
};

void add(std::vector<uint32_t>& list, IpAddress address) {
  if (std::find(list.begin(), list.end(), address.network_order()) == list.end())
    list.push_back(address.network_order());
}

AddressList view_of(const std::vector<uint32_t>& addresses) {
  AddressList list{};
  const int n = static_cast<int>(addresses.size());
  const int kept = std::min(n, AddressList::kInline);
  for (const uint32_t address : addresses) {
    const uint32_t h = AddressList::hash(address);
    list.filter[0] |= uint64_t{1} << (h >> 26);
    list.filter[1] |= uint64_t{1} << (h >> 20 & 63);
    list.absent &= ~(address + AddressList::kOne);
  }
  // Few bits would be a branch that nobody can predict.
  constexpr int kFewest = 4;
  if (std::popcount(list.absent) < kFewest) list.absent = 0;
  std::copy_n(addresses.begin(), kept, list.words);
  list.count = kept;
  list.more_count = n - kept;
  list.more = addresses.data() + kept;
  return list;
}

}  // namespace

Status CheckIPHeader::configure(Args& args, CheckIPHeaderOwner& owner) {
  std::vector<IpPrefix> interfaces;
  std::vector<IpAddress> bad, good;
  std::vector<std::string> rest;
  bool checksum = ignored_sum == 0;
  if (!args.read("INTERFACES", interfaces, InterfacesArg())
           .read("BADSRC", bad)
           .read("GOODDST", good)
           .read("OFFSET", offset, Between{0, 65535})
           .read("CHECKSUM", checksum)
           .read("VERBOSE", owner.verbose)
           .read("DETAILS", owner.details)
           .consume_rest(rest)
           .complete())
    return Status::failed();
  ignored_sum = checksum ? 0 : ~uint32_t{0};

  bool limited_broadcast = !interfaces.empty();
  if (!rest.empty() && !(rest.size() == 1 && Between{0, 65535}.parse(rest[0], offset, ArgContext()))) {
    std::vector<IpAddress> old_bad;
    Args old_form(std::move(rest), args.scope(), args.errors());
    if (!old_form.read_mp("BADSRC", old_bad).read_p("OFFSET", offset, Between{0, 65535}).complete())
      return Status::failed();
    bad.insert(bad.end(), old_bad.begin(), old_bad.end());
    limited_broadcast = true;
  }

  owner.bad_sources.clear();
  owner.good_destinations.clear();
  for (const IpPrefix& interface : interfaces) {
    add(owner.bad_sources, interface.broadcast());
    add(owner.good_destinations, interface.address);
  }
  for (const IpAddress address : bad) add(owner.bad_sources, address);
  if (limited_broadcast) {
    add(owner.bad_sources, IpAddress());
    add(owner.bad_sources, IpAddress::prefix_mask(32));
  }
  for (const IpAddress address : good) add(owner.good_destinations, address);
  bad_sources = view_of(owner.bad_sources);
  good_destinations = view_of(owner.good_destinations);
  return {};
}

void CheckIPHeader::add_handlers(Handlers& handlers, CheckIPHeaderOwner& owner, ShaderElementBase& element) {
  add_header_check_handlers(handlers, owner, element, kCounters.info, kCounters.kCount);
}

ShaderCode CheckIPHeader::specialize(const CheckIPHeaderOwner&) const {
  return known_members({{"offset", offset}, {"ignored_sum", ignored_sum}, {"bad_sources.absent", bad_sources.absent}});
}

void CheckIPHeader::refresh(const CheckIPHeaderOwner& owner) { renew(tells, owner.tells()); }

void CheckIPHeader::mirror(Mirror& mirror, const CheckIPHeaderOwner& owner) {
  refresh(owner);
  for (AddressList* list : {&bad_sources, &good_destinations})
    list->more = mirror.array(list->more, static_cast<size_t>(list->more_count));
}

Next CheckIPHeader::escape(Packet*& p, Emitter& emit, CheckIPHeaderOwner& owner) const {
  CpuView<CheckIPHeader> view(p, nullptr);
  owner.tell(emit.element(), "IP", kCounters.info[check(view)].name);
  return 1;
}

HEADRACE_ELEMENT(CheckIPHeader)

}  // namespace headrace
