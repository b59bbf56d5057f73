#pragma once
#include <headrace/shader.hh>

#include "tables/openflow/port_set_view.hh"
#include "tables/openflow/walk_view.hh"

namespace headrace {

class OpenFlowOwner;
namespace openflow {
class PortCounters;
}

/// Sends Ethernet frames where the tables of an OpenFlow switch want them. OpenFlowSwitch makes the switch,
/// and puts these tables behind its inputs.
///
///     OpenFlowTables(NAME [, keyword LOCAL, BYTES, ROOM, EDITS])
///
/// NAME: the switch. The PAINT annotation says where a frame came in: port 1 has paint 0. Output i leads to port i + 1.
/// A frame that an entry drops, or no entry matches, is dropped and counted; so is one that is shorter than an Ethernet
/// header.
///
/// LOCAL true: the last output, and the paint of that number, is the switch's port LOCAL. Default false.
/// BYTES: bytes of a frame that a device gets, up to 120; a frame with longer headers is processed on the CPU. Default 80,
/// which is enough for TCP over IPv6 with a VLAN tag; 48 are enough for ports over IPv4 without one.
/// ROOM: bytes in front of it that come with them, for tags that entries push: 0 to 8. Default 8.
/// EDITS: frames usually come back from a device changed. If not, their bytes do not come back with their rows, which is
/// faster, and those of a frame that has changed come back apart, which is slower. Default: whether an entry or a group
/// changes frames when the tables are set up; true if there are no entries.
struct OpenFlowTables : Shader<OpenFlowTables> {
  static constexpr Ports kPorts{"1/-"};
  static constexpr Processing kProcessing{"h/h"};
  static constexpr int kMostRoom = 8;
  static constexpr int kMostBytes = 120;
  static constexpr auto kRegions =
      regions(ReadWrite{Span<Anchor::kData, -kMostRoom, kMostRoom + kMostBytes>{}}, ReadWrite{meta::data},
              ReadWrite{meta::length}, Write{meta::mac_header}, Read{anno::paint});
  enum { kShort, kNoEntry, kDropped, kNoPort, kNoRoom, kFragment, kMetered, kNoBuffer, kTooDeep, kInvalidTtl, kClosed };
  static constexpr auto kCounters =
      counters(reason("shorter than an Ethernet header"), reason("no entry matches"), reason("no action sends it"),
               reason("no such port"), reason("no room in front"), reason("a fragment"), reason("above a meter's rate"),
               reason("no buffer for a copy"), reason("groups or tables nested too deep"), reason("TTL not valid"),
               reason("the port is down"));
  using Owner = OpenFlowOwner;
  using Result = openflow::Visits;

  openflow::OpenFlowView view;
  openflow::ClosedPorts closed;
  uint32_t ports = 0;  // real ones, which come before LOCAL
  bool local = false;
  bool edits = true;
  bool drops_fragments = false;
  bool alone = false;  // without controllers: all goes to NORMAL
  int16_t bytes = 80;
  int16_t room = kMostRoom;

  Status configure(Args& args, Owner& owner);
  Status initialize(Errors& errors, Owner& owner);
  void refresh(const Owner& owner);
  void mirror(Mirror& mirror, const Owner& owner);
  Extent extent(Anchor anchor) const { return anchor == Anchor::kData ? Extent{-room, bytes} : Extent{0, 0}; }
  Extent usually_written(Anchor anchor) const { return edits ? extent(anchor) : Extent{0, 0}; }
  void move(Offsets& at) const { at.mac = at.data; }
  void shade_batch(Packet* const* packets, int n, Next* nexts, uint64_t* events, Result* results) const;
  Next escape(Packet*& p, Emitter& emit, Owner& owner) const;
  void release(Packet* const* packets, Results<Result> results, int n, Owner& owner) const;

  HEADRACE_SHADER Next shade(auto& p) const {
    const uint32_t length = p.length();
    if (length < 14) {
      p.count(kShort);
      return kDrop;
    }
    const uint32_t paint = p.get(anno::paint);
    RowFrame frame{p, bytes};
    if (closed.keeps_out(frame, openflow::port_place(in_port(paint)))) {
      p.count(kClosed);
      return kDrop;
    }
    if (alone) return kEscape;
    PacketKeyContext context;
    context.in_port = context.in_phy_port = in_port(paint);
    PacketKey key;
    if (!parse_usual_frame(frame, static_cast<int32_t>(length), context.in_port, key_word::kCount, key.w))
      key = parse_frame(frame, static_cast<int32_t>(length), context);
    if (frame.beyond) return kEscape;
    const AclMatch match = view.find(0, key.w);
    int event = 0;
    Next next = kDrop;
    openflow::Visits visits;
    visits.set_length(length);
    if (!drops_fragments && ends_at_once(match, context.in_port, visits, next, event)) {
      p.set_result(visits);
      if (next == kDrop) {
        p.count(event);
        return kDrop;
      }
      p.set_mac_header();
      return next;
    }
    openflow::Walk walk;
    walk.key = key;
    walk.begin(length);
    if (drops_fragments) {
      walk.edits.locate(frame, static_cast<int32_t>(length));
      if (walk.edits.layout().fragment && !frame.beyond) {
        p.count(kFragment);
        return kDrop;
      }
    }
    walk.step(view, frame, match);
    while (walk.state == openflow::WalkState::kLookup && !frame.beyond)
      walk.step(view, frame, view.find(walk.table, walk.key.w));
    if (frame.beyond || walk.state == openflow::WalkState::kHost) return kEscape;
    next = end_walk(walk, frame, event);
    if (frame.beyond) return kEscape;
    p.set_result(walk.visits);
    if (next == kDrop) {
      p.count(event);
      return kDrop;
    }
    p.set_mac_header();
    return next;
  }

 private:
  /// The bytes of a row.
  template <typename View>
  struct RowFrame {
    View& packet;
    int32_t bytes;
    int32_t origin = 0;  // of what was byte 0
    mutable bool beyond = false;

    HEADRACE_SHADER bool has(int32_t at, int32_t n) const {
      if (at + n > bytes) beyond = true;
      return !beyond;
    }
    HEADRACE_SHADER uint32_t byte(int32_t at) const { return has(at, 1) ? packet.load8(Anchor::kData, at) : 0; }
    HEADRACE_SHADER uint32_t half(int32_t at) const { return has(at, 2) ? packet.load16(Anchor::kData, at) : 0; }
    HEADRACE_SHADER uint32_t word(int32_t at) const { return has(at, 4) ? packet.load32(Anchor::kData, at) : 0; }
    HEADRACE_SHADER void set_byte(int32_t at, uint32_t value) {
      packet.store8(Anchor::kData, at + origin, static_cast<uint8_t>(value));
    }
    HEADRACE_SHADER void set_half(int32_t at, uint32_t value) {
      packet.store16(Anchor::kData, at + origin, static_cast<uint16_t>(value));
    }
    HEADRACE_SHADER void set_word(int32_t at, uint32_t value) { packet.store32(Anchor::kData, at + origin, value); }
    HEADRACE_SHADER bool complete() const { return !beyond; }
    HEADRACE_SHADER bool move(int32_t n) {
      origin += n;
      return n > 0 ? packet.push(static_cast<uint32_t>(n)) : packet.pull(static_cast<uint32_t>(-n));
    }
  };
  template <typename View>
  RowFrame(View&, int16_t) -> RowFrame<View>;

  PacketKey key_of(const Packet& packet) const;
  /// What release() does about ports for a packet that is not usual.
  void count_at_ports(Packet& packet, const openflow::Visits& visits, const openflow::ClosedPorts& now_closed,
                      openflow::PortCounters& ports) const;
  HEADRACE_SHADER uint32_t in_port(uint32_t paint) const {
    return local && paint == ports ? openflow::reserved_port::kLocal : paint + 1;
  }
  /// kDrop: the port does not exist.
  HEADRACE_SHADER Next output_of(uint32_t port) const {
    if (port - 1 < ports) return static_cast<Next>(port - 1);
    return local && port == openflow::reserved_port::kLocal ? static_cast<Next>(ports) : kDrop;
  }
  /// The output for a port by which a packet may leave. kDrop: `event` says why.
  HEADRACE_SHADER Next output_for(uint32_t port, openflow::Visits& visits, int& event) const {
    const Next next = output_of(port);
    if (next == kDrop) {
      event = kNoPort;
      return kDrop;
    }
    const uint32_t place = openflow::port_place(port);
    if (!closed.keeps_in(place)) return next;
    visits.set_output(place);  // to be counted there
    event = kClosed;
    return kDrop;
  }
  /// Ends most walks: the entry found in table 0 sends the packet to a port, as it is. False: this walk is longer.
  HEADRACE_SHADER bool ends_at_once(const AclMatch& match, uint32_t in_port, openflow::Visits& visits, Next& next,
                                    int& event) const {
    uint32_t to;
    if (match.number == AclMatch::kNone || !openflow::Walk::only_sends(view.program(match.data), to)) return false;
    visits.set_entry(0, match.number);
    const uint32_t port = openflow::Walk::leaves_by(to, in_port);
    event = kDropped;
    next = port == 0 ? kDrop : output_for(port, visits, event);
    if (next != kDrop) visits.set_output(openflow::port_place(port));
    return true;
  }
  /// The same for an entry that routes (program_flag::kRoutes). \param usual parse_usual_frame() has taken the frame
  bool routes_at_once(Packet& packet, bool usual, const AclMatch& match, uint32_t in_port, openflow::Visits& visits,
                      Next& next, int& event) const;
  /// Writes the edits of a walk that is over. kDrop: `event` says why.
  template <typename Frame>
  HEADRACE_SHADER Next end_walk(openflow::Walk& walk, Frame& frame, int& event) const {
    if (walk.state != openflow::WalkState::kOutput) {
      event = walk.state == openflow::WalkState::kMissed ? kNoEntry : kDropped;
      return kDrop;
    }
    const Next next = output_for(walk.port, walk.visits, event);
    if (next == kDrop) return kDrop;
    if (walk.edits.any() && !walk.edits.write(frame, walk.key)) {
      event = kNoRoom;
      return kDrop;
    }
    walk.visits.set_output(openflow::port_place(walk.port));
    return next;
  }
};

}  // namespace headrace
