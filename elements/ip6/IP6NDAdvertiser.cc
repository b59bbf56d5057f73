#include "elements/ip6/IP6NDAdvertiser.hh"

#include <algorithm>
#include <array>

#include "elements/ip6/nd_message.hh"

namespace headrace {

namespace {

enum AdvertiserReason { kNoSolicitation, kUnknownTarget, kNoAdvertisementBuffer };

/// ff02::1 (RFC 4291, 2.7.1), and its Ethernet group.
constexpr Ip6Address kAllNodes(std::array<uint8_t, 16>{0xff, 0x02, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1});
constexpr EtherAddress kAllNodesEther({0x33, 0x33, 0, 0, 0, 1});

}  // namespace

Status IP6NDAdvertiser::add(std::vector<Entry>& table, const std::string& argument, size_t index, Args& args) const {
  const ArgContext quiet(args.scope());
  std::vector<std::string> words;
  (void)parse_argument(argument, words, quiet);
  std::vector<Ip6Prefix> networks;
  std::optional<EtherAddress> ether;
  for (const std::string& word : words) {
    Ip6Prefix network;
    EtherAddress address;
    if (PrefixOrAddress{}.parse(word, network, quiet)) {
      networks.push_back({network.network(), network.length});
    } else if (!parse_argument(word, address, quiet)) {
      return args.errors().error("argument {}: expected IP6/LENGTH ETH", index);
    } else if (ether) {
      return args.errors().error("argument {}: more than one ETH", index);
    } else {
      ether = address;
    }
  }
  if (networks.empty()) return args.errors().error("argument {}: missing IP6/LENGTH", index);
  if (!ether) return args.errors().error("argument {}: missing ETH", index);
  for (const Ip6Prefix& network : networks) table.push_back({network, *ether});
  return {};
}

Status IP6NDAdvertiser::configure(Args& args) {
  std::vector<std::string> arguments;
  if (!args.consume_rest(arguments).complete()) return Status::failed();
  std::vector<Entry> table;
  Status status;
  for (size_t i = 0; i < arguments.size(); ++i) status &= add(table, arguments[i], i, args);
  if (!status.ok()) return status;
  std::stable_sort(table.begin(), table.end(),
                   [](const Entry& a, const Entry& b) { return a.network.length > b.network.length; });
  table_ = std::move(table);
  count_reasons({"no valid neighbor solicitation", "not for a known address", "no buffer"});
  return {};
}

const EtherAddress* IP6NDAdvertiser::lookup(const Ip6Address& address) const {
  for (const Entry& entry : table_)
    if (entry.network.contains(address)) return &entry.ether;
  return nullptr;
}

Packet* IP6NDAdvertiser::act(Packet* p, Emitter&) {
  const NdMessage* nd = nd_message(*p, NdMessage::kSolicitation);
  if (!nd) {
    drop(p, kNoSolicitation);
    return nullptr;
  }
  const Ip6Address target = Ip6Address::from_bytes(nd->target);
  const EtherAddress* ether = lookup(target);
  if (!ether) {
    drop(p, kUnknownTarget);
    return nullptr;
  }
  const Ip6Address asker = Ip6Address::from_bytes(nd->ip6.src);
  constexpr uint8_t kFlags = NdMessage::kRouterFlag;
  Packet* answer = asker ? make_nd_message(NdMessage::kAdvertisement, kFlags | NdMessage::kSolicitedFlag, *ether,
                                           target, nd->ether.src, asker, target, NdMessage::kTargetOption)
                         : make_nd_message(NdMessage::kAdvertisement, kFlags, *ether, target, kAllNodesEther, kAllNodes,
                                           target, NdMessage::kTargetOption);
  if (!answer) {
    drop(p, kNoAdvertisementBuffer);
    return nullptr;
  }
  p->kill();
  return answer;
}

void IP6NDAdvertiser::add_handlers(Handlers& handlers) {
  handlers.read("table", [this] {
    std::string text;
    for (const Entry& entry : table_) text += fmt::format("{} {}\n", entry.network, entry.ether);
    return text;
  });
}

}  // namespace headrace
