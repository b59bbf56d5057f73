#include "elements/ethernet/ARPQuerier.hh"

#include <limits>

#include "elements/ethernet/arp_packet.hh"
#include "elements/ip/address_values.hh"
#include "headrace/chatter.hh"

namespace headrace {

enum ARPQuerier::Reason : int { kNoAddress, kZeroDestination, kNoRoom, kNoBuffer, kSpoofed };

namespace {

constexpr int64_t kForever = std::numeric_limits<int64_t>::max();

size_t slot_of(uint32_t ip) { return (ip * uint32_t{0x9e3779b1}) >> 24; }

constexpr Timestamp kTendInterval = Timestamp::from_ms(500);

/// The group of an IP multicast address: its lower 23 bits (RFC 1112, 6.4).
EtherAddress multicast_group(IpAddress ip) {
  const uint32_t low = ip.host_order();
  return EtherAddress({0x01, 0x00, 0x5e, static_cast<uint8_t>(low >> 16 & 0x7f), static_cast<uint8_t>(low >> 8),
                       static_cast<uint8_t>(low)});
}

void push_out(const Port& port, Batch& out) {
  if (!out.empty()) port.push(out);
  out.clear();
}

void add(const Port& port, Batch& out, Packet* p) {
  if (out.full()) push_out(port, out);
  out.push_back(p);
}

}  // namespace

Status ARPQuerier::configure(Args& args) {
  ArpTable::Limits limits = own_table_.limits();
  ARPTable* shared_table = nullptr;
  std::optional<IpAddress> broadcast;
  Interval poll_timeout = poll_timeout_, wait = wait_;
  bool broadcast_poll = broadcast_poll_;
  ArpTable::read_limits(args, limits);
  if (!args.read("TABLE", shared_table)
           .read("BROADCAST", broadcast)
           .read("POLL_TIMEOUT", poll_timeout)
           .read("BROADCAST_POLL", broadcast_poll)
           .read("WAIT", wait)
           .consume())
    return Status::failed();

  IpPrefix ip;
  EtherAddress ether;
  if (args.remaining() == 1) {
    std::vector<std::string> name;
    if (!args.consume_rest(name).complete()) return Status::failed();
    const ArgContext context(args.scope());
    if (!PrefixOrAddress{}.parse(name[0], ip, context))
      return args.errors().error("IP: '{}' is no IP address", name[0]);
    if (!parse_argument(name[0], ether, context))
      return args.errors().error("ETH: '{}' is no Ethernet address", name[0]);
  } else if (!args.read_mp("IP", ip, PrefixOrAddress()).read_mp("ETH", ether).complete()) {
    return Status::failed();
  }
  if (!ArpTable::check_limits(limits, args.errors())) return Status::failed();

  if (ip.address != ip_ || ether != ether_) own_table_.clear();
  ip_ = ip.address;
  ether_ = ether;
  broadcast_ = broadcast.value_or(ip.broadcast() != ip.address ? ip.broadcast() : IpAddress::prefix_mask(32));
  poll_timeout_ = poll_timeout;
  broadcast_poll_ = broadcast_poll;
  wait_ = wait;
  shared_table_ = shared_table;
  table_ = shared_table ? &shared_table->table() : &own_table_;
  own_table_.set_limits(limits);
  count_reasons({"no address of its own", "destination 0.0.0.0", "no room for the Ethernet header", "no buffer",
                 "ARP reply with a false address"});
  forget_headers();
  return {};
}

Status ARPQuerier::initialize(Errors&) {
  timer_.initialize();
  if (own_table_.limits().timeout.ns) timer_.schedule_after(own_table_.limits().timeout.timestamp());
  tend_timer_.initialize();
  if (noutputs() > 2) tend_timer_.schedule_after(kTendInterval);
  return {};
}

void ARPQuerier::run_timer(Timer& timer) {
  own_table_.expire(clock::steady().ns);
  if (own_table_.limits().timeout.ns)
    timer.schedule_after(own_table_.limits().timeout.timestamp() + Timestamp::from_sec(1));
}

void ARPQuerier::tend(Timer& timer) {
  std::vector<ArpTable::Question> ask;
  std::vector<Packet*> unreachable;
  table_->tend(clock::steady().ns, wait_.ns, ask, unreachable);
  Batch out;
  for (const ArpTable::Question& question : ask) send_request(question, EtherAddress::broadcast(), out);
  for (Packet* p : unreachable) add(output(2), out, p);
  push_out(output(2), out);
  timer.schedule_after(kTendInterval);
}

void ARPQuerier::take_state(Element& old, Errors&) {
  auto& before = static_cast<ARPQuerier&>(old);
  if (shared_table_ || before.shared_table_ || ip_ != before.ip_ || ether_ != before.ether_) return;
  own_table_.take(before.own_table_);
}

/// Only while no worker runs.
void ARPQuerier::forget_headers() {
  for (int thread = 0; thread < caches_.size(); ++thread)
    for (Cache::Slot& slot : caches_[thread].slots) slot = {};
}

void ARPQuerier::keep(Cache::Slot& slot, IpAddress ip, EtherAddress to, int64_t good_until) const {
  slot.ip = ip.network_order();
  slot.good_until = good_until;
  auto& header = *reinterpret_cast<EtherHeader*>(slot.header);
  header.dst = to;
  header.src = ether_;
  header.type = eth::kTypeIp4;
}

void ARPQuerier::refuse(Packet* p, Reason reason) {
  counts_.add(kDrops, 1);
  drop(p, reason);
}

void ARPQuerier::push(int port, Batch& batch) {
  if (port == 0) return send(batch);
  Batch out;
  for (Packet* p : batch) receive(p, out);
  push_out(output(0), out);
}

void ARPQuerier::send(Batch& packets) {
  if (!ip_) {
    for (Packet* p : packets) refuse(p, kNoAddress);
    return;
  }
  Cache& cache = caches_.local();
  uint32_t generation = table_->generation();
  int64_t now = clock::steady().ns;
  Batch out;
  for (Packet* p : packets) {
    const uint32_t ip = p->anno_u32(anno_offset::kDstIp);
    Cache::Slot& slot = cache.slots[slot_of(ip)];
    if (slot.ip != ip || slot.generation != generation || now >= slot.good_until) [[unlikely]] {
      // The generation is read before the table, so that a change in between is not missed.
      generation = table_->generation();
      if (!resolve(p, IpAddress::from_network_order(ip), now, slot, out)) continue;
      slot.generation = generation;
    }
    if (encapsulate(p, slot)) add(output(0), out, p);
  }
  push_out(output(0), out);
}

bool ARPQuerier::encapsulate(Packet* p, const Cache::Slot& slot) {
  if (!p->push(sizeof(EtherHeader))) [[unlikely]] {
    refuse(p, kNoRoom);
    return false;
  }
  p->set_mac_header();
  std::memcpy(p->data(), slot.header, sizeof(EtherHeader));
  return true;
}

bool ARPQuerier::resolve(Packet* p, IpAddress ip, int64_t& now, Cache::Slot& slot, Batch& out) {
  for (;;) {
    if (const ArpTable::Answer answer = table_->lookup(ip, now, poll_timeout_.ns); answer.known) [[likely]] {
      // The request goes first: what it sets off may use the slot too.
      if (answer.poll) {
        const bool all = broadcast_poll_ || answer.unanswered;
        send_request({ip, *p}, all ? EtherAddress::broadcast() : answer.ether, out);
      }
      keep(slot, ip, answer.ether, answer.good_until);
      return true;
    }
    if (ip.is_broadcast() || ip == broadcast_) {
      keep(slot, ip, EtherAddress::broadcast(), kForever);
      return true;
    }
    if (ip.is_multicast()) {
      keep(slot, ip, multicast_group(ip), kForever);
      return true;
    }
    if (!ip) {
      if (!told_zero_.exchange(true, std::memory_order_relaxed))
        chatter("{}: would query for 0.0.0.0; missing dest IP addr annotation?", declaration());
      refuse(p, kZeroDestination);
      return false;
    }
    // Once it waits, the packet may leave by way of another thread at any time.
    const ArpTable::Question question(ip, *p);
    // What was sent before may have taken long.
    now = clock::steady().ns;
    switch (table_->append(ip, p, now)) {
      case ArpTable::Append::kKnown:
        continue;
      case ArpTable::Append::kRefused:
        p->kill();
        return false;
      case ArpTable::Append::kWaits:
        return false;
      case ArpTable::Append::kAsk:
        send_request(question, EtherAddress::broadcast(), out);
        return false;
    }
  }
}

void ARPQuerier::send_request(const ArpTable::Question& question, EtherAddress to, Batch& out) {
  Packet* request = make_arp_packet(ArpHeader::kRequest, ether_, ip_, EtherAddress(), question.ip, to);
  if (!request) {
    count_drops(1, kNoBuffer);
    return;
  }
  counts_.add(kQueries, 1);
  request->set_timestamp(question.timestamp);
  request->set_anno_u16(anno_offset::kVlanTci, question.vlan_tci);
  push_out(output(0), out);
  output(noutputs() > 1 ? 1 : 0).push(request);
}

void ARPQuerier::receive(Packet* reply, Batch& out) {
  if (reply->length() >= sizeof(EtherHeader) + sizeof(ArpHeader)) counts_.add(kResponses, 1);
  const ArpHeader* arp = arp_header(*reply);
  if (arp && arp->operation == ArpHeader::kReply) {
    if (EtherAddress(arp->sender_ether).is_group() || !is_host(arp->sender_ip)) {
      drop(reply, kSpoofed);
      return;
    }
    std::vector<Packet*> waiting;
    table_->insert(arp->sender_ip, arp->sender_ether, clock::steady().ns, &waiting);
    Cache::Slot slot;
    keep(slot, arp->sender_ip, arp->sender_ether, 0);
    for (Packet* p : waiting)
      if (encapsulate(p, slot)) add(output(0), out, p);
  }
  reply->kill();
}

/// Whether another host may say that this is its address.
bool ARPQuerier::is_host(IpAddress ip) const {
  return ip && ip != ip_ && ip != broadcast_ && !ip.is_broadcast() && !ip.is_multicast();
}

void ARPQuerier::add_handlers(Handlers& handlers) {
  read_value(handlers, "ipaddr", ip_);
  write_value(handlers, "ipaddr", ip_, [this] { forget_headers(); });
  read_value(handlers, "broadcast", broadcast_);
  write_value(handlers, "broadcast", broadcast_, [this] { forget_headers(); });
  handlers.read("table", [this] { return table_->unparse(clock::steady().ns); });
  handlers.read("stats", [this] {
    return fmt::format("{} packets killed\n{} ARP queries sent\n", counts_.sum(kDrops) + table_->drops(),
                       counts_.sum(kQueries));
  });
  handlers.read("count", [this] { return std::to_string(table_->count()); });
  handlers.read("length", [this] { return std::to_string(table_->waiting()); });
  handlers.read("queries", [this] { return std::to_string(counts_.sum(kQueries)); });
  handlers.read("responses", [this] { return std::to_string(counts_.sum(kResponses)); });
  handlers.read("drops", [this] { return std::to_string(counts_.sum(kDrops)); });
  // The table handlers of a TABLE act on that table.
  table_->add_entry_handlers(handlers, *this);
  handlers.button("clear", [this] {
    table_->clear();
    counts_.reset();
  });
}

std::vector<Element::DropCount> ARPQuerier::drop_counts() const {
  std::vector<DropCount> counts = Element::drop_counts();
  if (own_table_.drops()) counts.push_back({"no ARP reply in time", own_table_.drops()});
  return counts;
}

}  // namespace headrace
