#include "elements/ip6/IP6NDSolicitor.hh"

#include <limits>

#include "elements/ip6/nd_message.hh"

namespace headrace {

enum IP6NDSolicitor::Reason : int {
  kNoDestination,
  kNoHeadroom,
  kNoSolicitationBuffer,
  kBadAdvertisement,
  kFalseAdvertisement,
  kUnanswered
};

namespace {

constexpr int64_t kAlways = std::numeric_limits<int64_t>::max();
constexpr Timestamp kTendSolicitations = Timestamp::from_ms(500);

size_t slot_of(const Ip6Address& ip) {
  uint64_t words[2];
  ip.copy_to(words);
  return ((words[0] ^ words[1]) * uint64_t{0x9e3779b97f4a7c15}) >> 56;
}

void push_all(const Port& port, Batch& out) {
  if (!out.empty()) port.push(out);
  out.clear();
}

void push_later(const Port& port, Batch& out, Packet* p) {
  if (out.full()) push_all(port, out);
  out.push_back(p);
}

}  // namespace

IP6NDSolicitor::IP6NDSolicitor() {
  Table::Limits limits;
  limits.timeout = Interval::from_sec(120);
  limits.ask_interval = Interval::from_sec(1);  // RETRANS_TIMER
  table_.set_limits(limits);
}

Status IP6NDSolicitor::configure(Args& args) {
  Table::Limits limits = table_.limits();
  Interval poll_timeout = poll_timeout_, wait = wait_;
  Ip6Address ip;
  EtherAddress ether;
  Table::read_limits(args, limits);
  if (!args.read_mp("IP", ip).read_mp("ETH", ether).read("POLL_TIMEOUT", poll_timeout).read("WAIT", wait).complete() ||
      !Table::check_limits(limits, args.errors()))
    return Status::failed();
  if (!ip || ip.is_multicast()) return args.errors().error("IP: {} is no address of a host", ip);
  if (ip != ip_ || ether != ether_) table_.clear();
  ip_ = ip;
  ether_ = ether;
  poll_timeout_ = poll_timeout;
  wait_ = wait;
  table_.set_limits(limits);
  count_reasons({"destination ::", "no room for the Ethernet header", "no buffer", "no valid neighbor advertisement",
                 "neighbor advertisement with a false address", "no neighbor advertisement in time"});
  forget_headers();
  return {};
}

Status IP6NDSolicitor::initialize(Errors&) {
  timer_.initialize();
  if (table_.limits().timeout.ns) timer_.schedule_after(table_.limits().timeout.timestamp());
  tend_timer_.initialize();
  tend_timer_.schedule_after(kTendSolicitations);
  return {};
}

void IP6NDSolicitor::run_timer(Timer& timer) {
  table_.expire(clock::steady().ns);
  if (table_.limits().timeout.ns) timer.schedule_after(table_.limits().timeout.timestamp() + Timestamp::from_sec(1));
}

void IP6NDSolicitor::tend(Timer& timer) {
  std::vector<Table::Question> ask;
  std::vector<Packet*> unreachable;
  table_.tend(clock::steady().ns, wait_.ns, ask, unreachable);
  Batch out;
  for (const Table::Question& question : ask) solicit(question, nullptr, out);
  for (Packet* p : unreachable) {
    if (noutputs() > 2)
      push_later(output(2), out, p);
    else
      refuse(p, kUnanswered);
  }
  if (noutputs() > 2) push_all(output(2), out);
  timer.schedule_after(kTendSolicitations);
}

void IP6NDSolicitor::take_state(Element& old, Errors&) {
  auto& before = static_cast<IP6NDSolicitor&>(old);
  if (ip_ == before.ip_ && ether_ == before.ether_) table_.take(before.table_);
}

/// Call only while no worker runs.
void IP6NDSolicitor::forget_headers() {
  for (int thread = 0; thread < caches_.size(); ++thread)
    for (Cache::Slot& slot : caches_[thread].slots) slot = {};
}

void IP6NDSolicitor::keep(Cache::Slot& slot, const Ip6Address& ip, EtherAddress to, int64_t good_until) const {
  slot.ip = ip;
  slot.good_until = good_until;
  auto& header = *reinterpret_cast<EtherHeader*>(slot.header);
  header.dst = to;
  header.src = ether_;
  header.type = eth::kTypeIp6;
}

void IP6NDSolicitor::refuse(Packet* p, Reason reason) {
  counts_.add(kDrops, 1);
  drop(p, reason);
}

void IP6NDSolicitor::push(int port, Batch& batch) {
  if (port == 0) return send(batch);
  Batch out;
  for (Packet* p : batch) receive(p, out);
  push_all(output(0), out);
}

void IP6NDSolicitor::send(Batch& packets) {
  Cache& cache = caches_.local();
  uint32_t generation = table_.generation();
  int64_t now = clock::steady().ns;
  Batch out;
  for (Packet* p : packets) {
    const Ip6Address ip = Ip6Address::from_bytes(p->anno() + anno_offset::kDstIp6);
    Cache::Slot& slot = cache.slots[slot_of(ip)];
    if (slot.ip != ip || slot.generation != generation || now >= slot.good_until) [[unlikely]] {
      // Read the generation before the table, so that a change in between is not missed.
      generation = table_.generation();
      if (!resolve(p, ip, now, slot, out)) continue;
      slot.generation = generation;
    }
    if (encapsulate(p, slot)) push_later(output(0), out, p);
  }
  push_all(output(0), out);
}

bool IP6NDSolicitor::encapsulate(Packet* p, const Cache::Slot& slot) {
  if (!p->push(sizeof(EtherHeader))) [[unlikely]] {
    refuse(p, kNoHeadroom);
    return false;
  }
  p->set_mac_header();
  std::memcpy(p->data(), slot.header, sizeof(EtherHeader));
  return true;
}

bool IP6NDSolicitor::resolve(Packet* p, const Ip6Address& ip, int64_t& now, Cache::Slot& slot, Batch& out) {
  if (ip.is_multicast()) {
    keep(slot, ip, ip6_multicast_group(ip), kAlways);
    return true;
  }
  if (!ip) {
    refuse(p, kNoDestination);
    return false;
  }
  for (;;) {
    if (const Table::Answer answer = table_.lookup(ip, now, poll_timeout_.ns); answer.known) [[likely]] {
      // Send the solicitation first: processing it may use the slot too.
      if (answer.poll) solicit({ip, *p}, answer.unanswered ? nullptr : &answer.ether, out);
      keep(slot, ip, answer.ether, answer.good_until);
      return true;
    }
    // Once the packet is in the table, another thread may send it at any time.
    const Table::Question question(ip, *p);
    // Sending a solicitation may have taken a long time.
    now = clock::steady().ns;
    switch (table_.append(ip, p, now)) {
      case Table::Append::kKnown:
        continue;
      case Table::Append::kRefused:
        p->kill();
        return false;
      case Table::Append::kWaits:
        return false;
      case Table::Append::kAsk:
        solicit(question, nullptr, out);
        return false;
    }
  }
}

void IP6NDSolicitor::solicit(const Table::Question& question, const EtherAddress* to, Batch& out) {
  const Ip6Address group = solicited_node(question.ip);
  Packet* request = make_nd_message(NdMessage::kSolicitation, 0, ether_, ip_, to ? *to : ip6_multicast_group(group),
                                    to ? question.ip : group, question.ip, NdMessage::kSourceOption);
  if (!request) {
    count_drops(1, kNoSolicitationBuffer);
    return;
  }
  counts_.add(kQueries, 1);
  request->set_timestamp(question.timestamp);
  request->set_anno_u16(anno_offset::kVlanTci, question.vlan_tci);
  push_all(output(0), out);
  output(noutputs() > 1 ? 1 : 0).push(request);
}

void IP6NDSolicitor::receive(Packet* p, Batch& out) {
  const NdMessage* nd = nd_message(*p, NdMessage::kAdvertisement);
  const bool solicited = nd && nd->flags & NdMessage::kSolicitedFlag;
  if (!nd || (solicited && Ip6Address::from_bytes(nd->ip6.dst).is_multicast())) return refuse(p, kBadAdvertisement);
  counts_.add(kResponses, 1);
  Table::Claim claim;
  claim.ip = Ip6Address::from_bytes(nd->target);
  claim.ether = nd_ether(*nd, NdMessage::kTargetOption);
  claim.solicited = solicited;
  claim.override = nd->flags & NdMessage::kOverrideFlag;
  if (!claim.ip || claim.ip == ip_ || (claim.ether && claim.ether->is_group())) return refuse(p, kFalseAdvertisement);
  p->kill();
  std::vector<Packet*> waiting;
  table_.confirm(claim, clock::steady().ns, poll_timeout_.ns, waiting);
  if (waiting.empty()) return;
  Cache::Slot slot;
  keep(slot, claim.ip, *claim.ether, 0);
  for (Packet* waited : waiting)
    if (encapsulate(waited, slot)) push_later(output(0), out, waited);
}

void IP6NDSolicitor::add_handlers(Handlers& handlers) {
  handlers.read("table", [this] { return table_.unparse(clock::steady().ns); });
  handlers.read("stats", [this] {
    return fmt::format("{} packets killed\n{} ND Solicitation Message sent\n", counts_.sum(kDrops) + table_.drops(),
                       counts_.sum(kQueries));
  });
  handlers.read("count", [this] { return std::to_string(table_.count()); });
  handlers.read("length", [this] { return std::to_string(table_.waiting()); });
  handlers.read("queries", [this] { return std::to_string(counts_.sum(kQueries)); });
  handlers.read("responses", [this] { return std::to_string(counts_.sum(kResponses)); });
  handlers.read("drops", [this] { return std::to_string(counts_.sum(kDrops) + table_.drops()); });
  table_.add_entry_handlers(handlers, *this);
  handlers.button("clear", [this] {
    table_.clear();
    counts_.reset();
  });
}

std::vector<Element::DropCount> IP6NDSolicitor::drop_counts() const {
  std::vector<DropCount> counts = Element::drop_counts();
  if (table_.drops()) counts.push_back({"too many packets wait, or too long", table_.drops()});
  return counts;
}

}  // namespace headrace
