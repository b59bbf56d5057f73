#include "elements/ethernet/ARPResponder.hh"

#include <algorithm>

#include "elements/ethernet/arp_packet.hh"
#include "headrace/router.hh"

namespace headrace {

namespace {

bool same(const IpPrefix& a, const IpPrefix& b) { return a.address == b.address && a.mask == b.mask; }

/// True if `inner` is another network all of whose addresses are in `outer`.
bool contains(const IpPrefix& outer, const IpPrefix& inner) {
  return !same(outer, inner) && (inner.mask & outer.mask) == outer.mask && outer.contains(inner.address);
}

}  // namespace

void ARPResponder::insert(Table& table, const Entry& entry, bool warn, Errors& errors) {
  const auto equal =
      std::find_if(table.begin(), table.end(), [&](const Entry& e) { return same(e.network, entry.network); });
  if (equal != table.end()) {
    if (warn) errors.warning("multiple entries for {}", entry.network);
    equal->ether = entry.ether;
    return;
  }
  const auto outer =
      std::find_if(table.begin(), table.end(), [&](const Entry& e) { return contains(e.network, entry.network); });
  table.insert(outer, entry);
}

Status ARPResponder::add(Table& table, std::string_view argument, NameScope* scope, const std::string& context,
                         bool warn, Errors& errors) {
  const ArgContext quiet(scope);
  std::vector<std::string> words;
  (void)parse_argument(argument, words, quiet);
  std::vector<IpPrefix> networks;
  std::optional<EtherAddress> ether;
  for (const std::string& word : words) {
    IpPrefix network;
    EtherAddress address;
    if (PrefixOrAddress{}.parse(word, network, quiet)) {
      networks.push_back(network.normalized());
    } else if (!parse_argument(word, address, quiet)) {
      return errors.error("{}expected IP/MASK ETH", context);
    } else if (ether) {
      return errors.error("{}more than one ETH", context);
    } else {
      ether = address;
    }
  }
  // A name may stand for both.
  for (size_t i = 0; !ether && i < words.size(); ++i) {
    EtherAddress address;
    if (parse_argument(words[i], address, quiet)) ether = address;
  }
  if (networks.empty()) return errors.error("{}missing IP/MASK", context);
  if (!ether) return errors.error("{}missing ETH", context);
  for (const IpPrefix& network : networks) insert(table, {network, *ether}, warn, errors);
  return {};
}

Status ARPResponder::configure(Args& args) {
  std::vector<std::string> arguments;
  if (!args.consume_rest(arguments).complete()) return Status::failed();
  Table table;
  Status status;
  for (size_t i = 0; i < arguments.size(); ++i)
    status &= add(table, arguments[i], args.scope(), "argument " + std::to_string(i) + ": ", true, args.errors());
  if (!status.ok()) return status;
  table_ = std::move(table);
  count_reasons({"no request for a known address"});
  return {};
}

const EtherAddress* ARPResponder::lookup(IpAddress address) const {
  for (const Entry& entry : table_)
    if (entry.network.contains(address)) return &entry.ether;
  return nullptr;
}

Packet* ARPResponder::act(Packet* p, Emitter& emit) {
  const ArpHeader* request = arp_header(*p);
  const EtherAddress* ether =
      request && request->operation == ArpHeader::kRequest ? lookup(request->target_ip) : nullptr;
  Packet* reply =
      ether ? make_arp_packet(ArpHeader::kReply, *ether, request->target_ip, request->sender_ether, request->sender_ip)
            : nullptr;
  if (!reply) {
    emit(1, p);
    return nullptr;
  }
  reply->set_anno_u16(anno_offset::kVlanTci, p->anno_u16(anno_offset::kVlanTci));
  p->kill();
  return reply;
}

void ARPResponder::add_handlers(Handlers& handlers) {
  handlers.read("table", [this] {
    std::string text;
    for (const Entry& entry : table_) text += fmt::format("{} {}\n", entry.network, entry.ether);
    return text;
  });
  handlers.read_with("lookup", [this](const std::string& parameter, std::string& value, Errors& errors) {
    IpAddress address;
    if (!parse_argument(parameter, address, ArgContext(&router().scope(this))))
      return errors.error("expected IP address");
    const EtherAddress* ether = lookup(address);
    value = ether ? ether->unparse() : std::string();
    return Status();
  });
  handlers.write("add", [this](const std::string& value, Errors& errors) {
    Table table = table_;
    const Status status = add(table, value, &router().scope(this), "", false, errors);
    if (status.ok()) table_ = std::move(table);
    return status;
  });
  handlers.write("remove", [this](const std::string& value, Errors& errors) {
    IpPrefix network;
    if (!PrefixOrAddress{}.parse(value, network, ArgContext(&router().scope(this))))
      return errors.error("expected IP/MASK");
    network = network.normalized();
    const auto entry =
        std::find_if(table_.begin(), table_.end(), [&](const Entry& e) { return same(e.network, network); });
    if (entry == table_.end()) return errors.error("{} not found", network);
    table_.erase(entry);
    return Status();
  });
}

}  // namespace headrace
