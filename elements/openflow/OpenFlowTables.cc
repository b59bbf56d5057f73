#include "elements/openflow/OpenFlowTables.hh"

#include <headrace/element.hh>
#include <headrace/scratch.hh>

#include "elements/openflow/interpreter.hh"
#include "elements/openflow/openflow_owner.hh"
#include "elements/openflow/packet_frame.hh"
#include "elements/openflow/route_frame.hh"
#include "tables/acl/acl_batch.hh"

namespace headrace {

namespace {

using openflow::Visits;
using openflow::Walk;
using openflow::WalkState;

/// Packets that walk together: their state fits into the second-level cache.
constexpr int kWalkRun = 32;

/// A frame's bytes from `data` on.
struct WholeFrame {
  const uint8_t* data;

  uint32_t word(int32_t at) const {
    uint32_t word;
    std::memcpy(&word, data + at, sizeof word);
    return __builtin_bswap32(word);
  }
};

/// Looks packets up that stand before one table, all at a time.
void find_together(const openflow::OpenFlowView& view, uint32_t table, Walk* const* walks, AclMatch* matches, int n) {
  if (!view.has_table(table)) {
    for (int i = 0; i < n; ++i) matches[i] = AclMatch();
    return;
  }
  const AclView entries = view.table(table);
  const uint32_t words = entries.words();
  uint32_t keys[kWalkRun * key_word::kCount];
  for (int i = 0; i < n; ++i)
    std::memcpy(keys + static_cast<uint32_t>(i) * words, walks[i]->key.w, words * sizeof(uint32_t));
  acl_find_batch(entries, keys, matches, static_cast<size_t>(n));
}

/// Lets a few packets walk, table by table: no program goes back.
void walk_together(const openflow::OpenFlowView& view, Packet* const* packets, Walk* walks, int n) {
  Walk* here[kWalkRun];
  AclMatch matches[kWalkRun];
  for (uint32_t table = 0; table < openflow::kMostTables;) {
    int m = 0;
    uint32_t next = openflow::kMostTables;
    for (int i = 0; i < n; ++i) {
      if (walks[i].state != WalkState::kLookup) continue;
      if (walks[i].table == table) {
        here[m++] = &walks[i];
      } else if (walks[i].table < next) {
        next = walks[i].table;
      }
    }
    find_together(view, table, here, matches, m);
    for (int i = 0; i < m; ++i) {
      here[i]->step(view, openflow::PacketFrame(*packets[here[i] - walks]), matches[i]);
      if (here[i]->state == WalkState::kLookup && here[i]->table < next) next = here[i]->table;
    }
    table = next;
  }
}

/// Sends an interpreter's packets to an element's outputs.
class ElementSink final : public openflow::PacketSink {
 public:
  ElementSink(Emitter& emit, const OpenFlowTables& shader, openflow::Datapath& datapath)
      : emit_(emit), shader_(shader), closed_(datapath.closed_ports()), counters_(datapath.port_counters().mine()) {}

  void send(uint32_t port, Packet* packet) override {
    if (port - 1 >= shader_.ports && !(shader_.local && port == openflow::reserved_port::kLocal))
      return drop(OpenFlowTables::kNoPort, packet);
    const uint32_t place = openflow::port_place(port);
    if (closed_.keeps_in(place)) {
      counters_.not_sent(place);
      return drop(OpenFlowTables::kClosed, packet);
    }
    counters_.sent(place, packet->length());
    packet->set_mac_header();
    emit_(static_cast<Next>(std::min(port - 1, shader_.ports)), packet);
  }
  uint32_t ports() const override { return shader_.ports; }
  bool has_local() const override { return shader_.local; }
  void lose(Loss loss) override {
    switch (loss) {
      case Loss::kNoEntry:
        return count(OpenFlowTables::kNoEntry);
      case Loss::kNoAction:
        return count(OpenFlowTables::kDropped);
      case Loss::kNoRoom:
        return count(OpenFlowTables::kNoRoom);
      case Loss::kMetered:
        return count(OpenFlowTables::kMetered);
      case Loss::kNoBuffer:
        return count(OpenFlowTables::kNoBuffer);
      case Loss::kTooDeep:
        return count(OpenFlowTables::kTooDeep);
      case Loss::kInvalidTtl:
        return count(OpenFlowTables::kInvalidTtl);
    }
  }
  void count(int event) {
    static_cast<ShaderElementBase&>(emit_.element()).count_event(event);
    emit_.element().count_drops(1);
  }

 private:
  void drop(int event, Packet* packet) {
    count(event);
    packet->kill();
  }

  Emitter& emit_;
  const OpenFlowTables& shader_;  // of which only what configure() has set is current
  const openflow::ClosedPorts closed_;
  openflow::PortCounters::Mine counters_;
};

}  // namespace

Status OpenFlowTables::configure(Args& args, Owner& owner) {
  std::string name;
  args.read_mp("NAME", name)
      .read("LOCAL", local)
      .read("BYTES", bytes, Between{14, kMostBytes})
      .read("ROOM", room, Between{0, kMostRoom})
      .read_status("EDITS", edits, owner.knows_edits);
  if (!args.complete()) return Status::failed();
  ports = static_cast<uint32_t>(args.scope()->noutputs()) - (local ? 1 : 0);
  if (ports > openflow::kMostSwitchPorts)
    return args.errors().error("expected at most {} ports, {} are connected", openflow::kMostSwitchPorts, ports);
  const Status status = owner.attach(name, args.errors());
  if (!status.ok()) return status;
  refresh(owner);
  return {};
}

Status OpenFlowTables::initialize(Errors&, Owner& owner) {
  // OpenFlowControl, which comes first, has filled the tables.
  if (!owner.knows_edits) edits = owner.datapath().may_change_frames();
  return {};
}

void OpenFlowTables::refresh(const Owner& owner) {
  renew(view, owner.datapath().view());
  renew(drops_fragments, owner.datapath().drops_fragments());
  renew(alone, owner.datapath().stands_alone());
  renew(closed, owner.datapath().closed_ports());
}

void OpenFlowTables::mirror(Mirror& mirror, const Owner& owner) {
  refresh(owner);
  view = owner.datapath().mirror(mirror);
}

void OpenFlowTables::shade_batch(Packet* const* packets, int n, Next* nexts, uint64_t* events, Result* results) const {
  uint32_t keys[Batch::kCapacity * key_word::kCount];
  Scratch<AclMatch, Batch::kCapacity> matches;
  // Those that are looked up, and those of them that go on behind table 0.
  uint16_t looked_up[Batch::kCapacity], going_on[Batch::kCapacity];
  bool usual[Batch::kCapacity];
  int m = 0, left = 0;
  const bool has_entries = view.has_table(0);
  const uint32_t words = has_entries ? view.table(0).words() : key_word::kCount;
  for (int i = 0; i < n; ++i) {
    const Packet& p = *packets[i];
    results[i] = Visits();
    nexts[i] = kDrop;
    if (p.length() < 14) [[unlikely]] {
      ++events[kShort];
      continue;
    }
    const uint32_t paint = p.anno_u8(anno_offset::kPaint);
    if (closed.keeps_out(openflow::PacketFrame(*packets[i]), openflow::port_place(in_port(paint)))) [[unlikely]] {
      ++events[kClosed];
      continue;
    }
    if (alone) [[unlikely]] {
      nexts[i] = kEscape;
      continue;
    }
    if (drops_fragments) [[unlikely]] {
      const openflow::PacketFrame frame(*packets[i]);
      if (openflow::locate_headers(frame, frame.end()).fragment) {
        ++events[kFragment];
        continue;
      }
    }
    uint32_t* const key = keys + static_cast<uint32_t>(m) * words;
    usual[m] = parse_usual_frame(WholeFrame{p.data()}, static_cast<int32_t>(p.length()), in_port(paint), words, key);
    if (!usual[m]) std::memcpy(key, key_of(p).w, words * sizeof(uint32_t));
    looked_up[m++] = static_cast<uint16_t>(i);
  }
  if (has_entries) {
    acl_find_batch(view.table(0), keys, matches.data(), static_cast<size_t>(m));
  } else {
    std::fill_n(matches.data(), m, AclMatch());
  }
  for (int j = 0; j < m; ++j) {
    const int i = looked_up[j];
    int event = 0;
    Visits& visits = results[i];
    visits.set_length(packets[i]->length());
    const uint32_t from = in_port(packets[i]->anno_u8(anno_offset::kPaint));
    if (!ends_at_once(matches[j], from, visits, nexts[i], event) &&
        !routes_at_once(*packets[i], usual[j], matches[j], from, visits, nexts[i], event)) {
      matches[left] = matches[j];
      going_on[left++] = static_cast<uint16_t>(i);
    } else if (nexts[i] == kDrop) {
      ++events[event];
    } else {
      packets[i]->set_mac_header();
    }
  }
  for (int first = 0; first < left; first += kWalkRun) {
    const int some = std::min(left - first, kWalkRun);
    Walk walks[kWalkRun];
    Packet* of_walk[kWalkRun];
    for (int j = 0; j < some; ++j) {
      Packet* const p = of_walk[j] = packets[going_on[first + j]];
      walks[j].key = key_of(*p);
      walks[j].begin(p->length());
      walks[j].step(view, openflow::PacketFrame(*p), matches[first + j]);
    }
    walk_together(view, of_walk, walks, some);
    for (int j = 0; j < some; ++j) {
      const int i = going_on[first + j];
      if (walks[j].state == WalkState::kHost) {
        results[i] = Visits();
        nexts[i] = kEscape;
        continue;
      }
      openflow::PacketFrame frame(*of_walk[j]);
      int event = 0;
      nexts[i] = end_walk(walks[j], frame, event);
      results[i] = walks[j].visits;
      if (nexts[i] == kDrop) {
        ++events[event];
      } else {
        of_walk[j]->set_mac_header();
      }
    }
  }
}

bool OpenFlowTables::routes_at_once(Packet& packet, bool usual, const AclMatch& match, uint32_t in_port,
                                    openflow::Visits& visits, Next& next, int& event) const {
  if (!usual || match.number == AclMatch::kNone) return false;
  const openflow::ProgramView program = view.program(match.data);
  if (!program.has(openflow::program_flag::kRoutes) || !openflow::can_decrement_ttl(packet.data())) return false;
  visits.set_entry(0, match.number);
  const uint32_t port = openflow::Walk::leaves_by(program.only_port(), in_port);
  event = kDropped;
  next = port == 0 ? kDrop : output_for(port, visits, event);
  if (next == kDrop) return true;
  openflow::route_usual_frame(packet.data(), program);
  visits.set_output(openflow::port_place(port));
  return true;
}

PacketKey OpenFlowTables::key_of(const Packet& packet) const {
  PacketKey key;
  if (parse_usual_frame(WholeFrame{packet.data()}, static_cast<int32_t>(packet.length()),
                        in_port(packet.anno_u8(anno_offset::kPaint)), key_word::kCount, key.w))
    return key;
  PacketKeyContext context;
  context.in_port = context.in_phy_port = in_port(packet.anno_u8(anno_offset::kPaint));
  return openflow::parse_packet(packet, context);
}

Next OpenFlowTables::escape(Packet*& p, Emitter& emit, Owner& owner) const {
  ElementSink sink(emit, *this, owner.datapath());
  const uint32_t paint = p->anno_u8(anno_offset::kPaint), port = in_port(paint);
  owner.datapath().port_counters().mine().received(openflow::port_place(port), p->length());
  if (owner.datapath().drops_fragments()) {
    const openflow::PacketFrame frame(*p);
    if (openflow::locate_headers(frame, frame.end()).fragment) {
      sink.count(kFragment);
      p->kill();
      return kConsumed;
    }
  }
  openflow::Interpreter interpreter(owner.datapath(), sink);
  if (owner.datapath().stands_alone()) {
    interpreter.process_as_normal(p, port);
  } else {
    interpreter.process(p, port);
  }
  p = nullptr;
  return kConsumed;
}

void OpenFlowTables::release(Packet* const* packets, Results<Result> results, int n, Owner& owner) const {
  openflow::Datapath& datapath = owner.datapath();
  openflow::EntryCounters& entries = datapath.entry_counters();
  openflow::PortCounters& ports = datapath.port_counters();
  const openflow::PortCounters::Mine counters = ports.mine();
  const openflow::ClosedPorts now_closed = datapath.closed_ports();
  const bool any_closed = now_closed.any;
  const bool keeps_times = entries.keeps_times();
  const int64_t now = keeps_times ? datapath.now() : 0;
  const openflow::EntryCounters::Times times = entries.times();

  // Most have met one entry, and leave as they are. What else there is comes afterwards, so that this loop calls nothing.
  uint16_t met_more[Batch::kCapacity], at_ports[Batch::kCapacity];
  int more = 0, ported = 0;
  // Most come from the port of the packet before.
  uint32_t paint = 0;
  openflow::PortCounters::Sum received;
  openflow::PortCounters::Leaving leaving(ports);
  const auto count_received = [&] {
    if (received.packets() != 0)
      counters.received(openflow::port_place(in_port(paint)), received.bytes(), received.packets());
    received = openflow::PortCounters::Sum();
  };
  entries.visit_ahead(
      n, Visits::kNone,
      [&](int i) {
        const uint32_t entry = results[i].entry(0);
        if (keeps_times && entry != Visits::kNone) [[unlikely]]
          times.prefetch(entry);
        return entry;
      },
      [&](int i, openflow::Count* count) {
        const Visits& visits = results[i];
        const Packet& packet = *packets[i];
        const uint32_t came = visits.length(), leaves = packet.length();
        if (count != nullptr) {
          openflow::EntryCounters::add(*count, 1, came);
          if (keeps_times) [[unlikely]]
            times.set(visits.entry(0), now);
        }
        if (!visits.is_simple()) [[unlikely]]
          met_more[more++] = static_cast<uint16_t>(i);
        // What is dropped before it is looked up has no length.
        if (came == 0 || leaves < openflow::kShortestFrame || any_closed) [[unlikely]] {
          at_ports[ported++] = static_cast<uint16_t>(i);
          return;
        }
        const uint32_t from = packet.anno_u8(anno_offset::kPaint);
        if (from != paint) {
          count_received();
          paint = from;
        }
        received.add(came);
        leaving.add(visits.output() + 1, leaves);
      });
  count_received();
  leaving.count(counters);
  for (int k = 0; k < more; ++k) datapath.count_more(results[met_more[k]]);
  for (int k = 0; k < ported; ++k)
    count_at_ports(*packets[at_ports[k]], results[at_ports[k]], now_closed, datapath.port_counters());
}

void OpenFlowTables::count_at_ports(Packet& packet, const openflow::Visits& visits,
                                    const openflow::ClosedPorts& now_closed, openflow::PortCounters& ports) const {
  openflow::PortCounters::Mine counters = ports.mine();
  const uint32_t from = openflow::port_place(in_port(packet.anno_u8(anno_offset::kPaint)));
  if (visits.length() != 0) {
    counters.received(from, visits.length());
  } else if (packet.length() >= 14 && now_closed.any && now_closed.keeps_out(openflow::PacketFrame(packet), from)) {
    counters.not_received(from);
  } else {
    counters.received(from, packet.length());
  }
  const uint32_t output = visits.output();
  if (output == Visits::kNone) return;
  openflow::pad_to_shortest(packet, visits.length());
  if (now_closed.keeps_in(output)) {
    counters.not_sent(output);
  } else {
    counters.sent(output, packet.length());
  }
}

HEADRACE_ELEMENT(OpenFlowTables)

}  // namespace headrace
