#include "elements/openflow/OpenFlowTables.hh"

#include <headrace/element.hh>

#include "elements/openflow/interpreter.hh"
#include "elements/openflow/openflow_owner.hh"
#include "elements/openflow/packet_frame.hh"
#include "tables/acl/acl_batch.hh"

namespace headrace {

namespace {

using openflow::Visits;
using openflow::Walk;
using openflow::WalkState;

/// Packets that walk together: their state fits into the second-level cache.
constexpr int kWalkRun = 32;

uint32_t big_endian32(const uint8_t* at) {
  uint32_t word;
  std::memcpy(&word, at, sizeof word);
  return __builtin_bswap32(word);
}

/// The key of what most frames are: TCP or UDP over IPv4, whole, without tags and options. False: another one. As
/// parse_frame() makes it; `key` is zero before.
[[gnu::always_inline]] inline bool parse_usual_frame(const Packet& p, PacketKey& key) {
  if (p.length() < 38) return false;
  const uint8_t* const f = p.data();
  const uint32_t type_and_version = big_endian32(f + 12), length_word = big_endian32(f + 16);
  const uint32_t protocol = f[23];
  if (type_and_version >> 8 != 0x080045 || length_word >> 16 < 24 || (big_endian32(f + 18) & 0x3fff) != 0 ||
      (protocol != ip_protocol::kTcp && protocol != ip_protocol::kUdp))
    return false;
  key.w[key_word::kIp4Src] = big_endian32(f + 26);
  key.w[key_word::kIp4Dst] = big_endian32(f + 30);
  key.w[key_word::kPorts] = big_endian32(f + 34);
  key.w[key_word::kTypes] = 0x08000000 | protocol << 8 | (type_and_version & 0xff);
  for (uint32_t i = 0; i < 3; ++i) key.w[key_word::kMac + i] = big_endian32(f + i * 4);
  return true;
}

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
  ElementSink(Emitter& emit, uint32_t ports, bool local) : emit_(emit), ports_(ports), local_(local) {}

  void send(uint32_t port, Packet* packet) override {
    if (port - 1 >= ports_ && !(local_ && port == openflow::reserved_port::kLocal)) {
      count(OpenFlowTables::kNoPort);
      packet->kill();
      return;
    }
    packet->set_mac_header();
    emit_(static_cast<Next>(port - 1 < ports_ ? port - 1 : ports_), packet);
  }
  uint32_t ports() const override { return ports_; }
  bool has_local() const override { return local_; }
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
  void count(int event) { static_cast<ShaderElementBase&>(emit_.element()).count_event(event); }

 private:
  Emitter& emit_;
  uint32_t ports_;
  bool local_;
};

}  // namespace

Status OpenFlowTables::configure(Args& args, Owner& owner) {
  std::string name;
  args.read_mp("NAME", name)
      .read("LOCAL", local)
      .read("BYTES", bytes, Between{14, kMostBytes})
      .read("ROOM", room, Between{0, kMostRoom});
  if (!args.complete()) return Status::failed();
  ports = static_cast<uint32_t>(args.scope()->noutputs()) - (local ? 1 : 0);
  const Status status = owner.attach(name, args.errors());
  if (status.ok()) refresh(owner);
  return status;
}

void OpenFlowTables::refresh(const Owner& owner) {
  renew(view, owner.datapath().view());
  renew(drops_fragments, owner.datapath().drops_fragments());
}

void OpenFlowTables::mirror(Mirror& mirror, const Owner& owner) {
  view = owner.datapath().mirror(mirror);
  drops_fragments = owner.datapath().drops_fragments();
}

void OpenFlowTables::shade_batch(Packet* const* packets, int n, Next* nexts, uint64_t* events, Result* results) const {
  for (int first = 0; first < n; first += kWalkRun) {
    const int m = std::min(n - first, kWalkRun);
    Walk walks[kWalkRun];
    for (int i = 0; i < m; ++i) {
      const Packet& p = *packets[first + i];
      Walk& walk = walks[i];
      if (p.length() < 14) [[unlikely]] {
        ++events[kShort];
        walk.state = WalkState::kDropped;
        continue;
      }
      PacketKeyContext context;
      context.in_port = context.in_phy_port = in_port(p.anno_u8(anno_offset::kPaint));
      walk.key = PacketKey{};
      if (parse_usual_frame(p, walk.key)) {
        walk.key.w[key_word::kInPort] = walk.key.w[key_word::kInPhyPort] = context.in_port;
      } else {
        walk.key = openflow::parse_packet(p, context);
      }
      walk.begin(p.length());
      if (drops_fragments) [[unlikely]] {
        walk.edits.locate(openflow::PacketFrame(*packets[first + i]), static_cast<int32_t>(p.length()));
        if (!walk.edits.layout().fragment) continue;
        ++events[kFragment];
        walk = Walk();
        walk.state = WalkState::kDropped;
      }
    }
    walk_together(view, packets + first, walks, m);
    for (int i = 0; i < m; ++i) {
      Next& next = nexts[first + i];
      Walk& walk = walks[i];
      results[first + i] = walk.visits;
      if (walk.visits.length() == 0) [[unlikely]] {  // never looked up, and counted
        next = kDrop;
        continue;
      }
      if (walk.state == WalkState::kHost) {
        next = kEscape;
        continue;
      }
      openflow::PacketFrame frame(*packets[first + i]);
      int event = 0;
      next = end_walk(walk, frame, event);
      if (next == kDrop) {
        ++events[event];
      } else {
        packets[first + i]->set_mac_header();
      }
    }
  }
}

Next OpenFlowTables::escape(Packet*& p, Emitter& emit, Owner& owner) const {
  ElementSink sink(emit, ports, local);
  const uint32_t port = in_port(p->anno_u8(anno_offset::kPaint));
  if (owner.datapath().drops_fragments()) {
    const openflow::PacketFrame frame(*p);
    if (openflow::locate_headers(frame, frame.end()).fragment) {
      sink.count(kFragment);
      p->kill();
      return kConsumed;
    }
  }
  openflow::Interpreter(owner.datapath(), sink).process(p, port);
  p = nullptr;
  return kConsumed;
}

void OpenFlowTables::release(Packet* const*, const Result* results, int n, Owner& owner) const {
  owner.datapath().count(results, n);
}

HEADRACE_ELEMENT(OpenFlowTables)

}  // namespace headrace
