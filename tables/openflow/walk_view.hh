#pragma once
/// \file
/// How a packet walks through the tables of an OpenFlow switch, for both processors, as long as it needs no copy, no
/// controller and nothing else that only a host has. Includes no standard header.

#include "tables/openflow/frame_edit_view.hh"
#include "tables/openflow/openflow_view.hh"

namespace headrace::openflow {

/// Ports that are none (enum ofp_port_no).
namespace reserved_port {
inline constexpr uint32_t kInPort = 0xfffffff8, kTable = 0xfffffff9, kNormal = 0xfffffffa, kFlood = 0xfffffffb,
                          kAll = 0xfffffffc, kController = 0xfffffffd, kLocal = 0xfffffffe, kAny = 0xffffffff;
}  // namespace reserved_port

/// What a packet has met on its walk: to be counted. All that a Visits{} has met is nothing. It is small, for it comes back from
/// a device with each packet.
class Visits {
 public:
  /// Entries, in the order in which they were met; fewer if there is a group, too.
  static constexpr uint32_t kMost = 6, kMostBesideGroup = 4;
  static constexpr uint32_t kNone = AclMatch::kNone;

  /// The number of the i-th entry; kNone: no more.
  HEADRACE_SHADER uint32_t entry(uint32_t i) const {
    return has_group() && i >= kMostBesideGroup ? kNone : number_in(words_[i]);
  }
  HEADRACE_SHADER void set_entry(uint32_t i, uint32_t number) {
    put_number(words_[i], number);
    if (i != 0) words_[5] |= kMore;
  }
  /// Slot of a group, and the number of a bucket (bucket_word::kCounter); kNone: none. Not beside more than kMostBesideGroup
  /// entries.
  HEADRACE_SHADER void set_group(uint32_t slot, uint32_t bucket) {
    words_[4] |= kHasGroup;
    put_number(words_[4], slot);
    put_number(words_[5], bucket);
    words_[5] |= kMore;
  }
  HEADRACE_SHADER uint32_t group() const { return has_group() ? number_in(words_[4]) : kNone; }
  HEADRACE_SHADER uint32_t bucket() const { return has_group() ? number_in(words_[5]) : kNone; }
  /// Length of the packet when it came, below 2^18. Once.
  HEADRACE_SHADER void set_length(uint32_t length) {
    words_[0] |= (length & kAbove) << kNumberBits;
    words_[1] |= (length >> kAboveBits) << kNumberBits;
  }
  HEADRACE_SHADER uint32_t length() const { return words_[0] >> kNumberBits | words_[1] >> kNumberBits << kAboveBits; }
  /// port_place() of the port by which it leaves; kNone: none. Once.
  HEADRACE_SHADER void set_output(uint32_t place) { words_[2] |= (place + 1) << kNumberBits; }
  HEADRACE_SHADER uint32_t output() const { return (words_[2] >> kNumberBits) - 1; }
  /// The table in which nothing was found; kNone: none. Once.
  HEADRACE_SHADER void set_missed(uint32_t table) {
    words_[3] |= (table + 1) << kNumberBits;
    words_[5] |= kMore;
  }
  HEADRACE_SHADER uint32_t missed() const { return (words_[3] >> kNumberBits) - 1; }
  /// It has met one entry at most, and nothing else that counts.
  HEADRACE_SHADER bool is_simple() const { return (words_[5] & kMore) == 0; }

 private:
  // A word has a number + 1 in its lower bits, 0 for none. Above are: the length (words 0 and 1), the output (2) and the
  // table (3), both + 1, whether the last two numbers are a group's and a bucket's (4), and whether there is more than the
  // first number (5).
  static constexpr uint32_t kNumberBits = 23, kAboveBits = 32 - kNumberBits;
  static constexpr uint32_t kNumber = (1u << kNumberBits) - 1, kAbove = (1u << kAboveBits) - 1;
  static constexpr uint32_t kHasGroup = 1u << kNumberBits, kMore = 1u << kNumberBits;

  HEADRACE_SHADER static uint32_t number_in(uint32_t word) { return (word & kNumber) - 1; }
  HEADRACE_SHADER static void put_number(uint32_t& word, uint32_t number) {
    word = (word & ~kNumber) | ((number + 1) & kNumber);
  }
  HEADRACE_SHADER bool has_group() const { return (words_[4] & kHasGroup) != 0; }

  uint32_t words_[kMost] = {};
};

/// The hash that chooses a bucket of a select group: of addresses, types and ports of all that has some, as a key has them.
/// It leaves out what says nothing of the flow, or changes on the way: DSCP, ECN, the port of entry and metadata.
HEADRACE_SHADER uint32_t select_hash(const PacketKey& key) {
  const auto pair = [&key](uint32_t i) { return uint64_t{key.w[i]} << 32 | key.w[i + 1]; };
  const uint64_t types = uint64_t{key.w[key_word::kPorts]} << 32 | (key.w[key_word::kTypes] & 0xffffff00);
  uint64_t h = fold_multiply(pair(key_word::kIp4Src) ^ 0x9e3779b97f4a7c15ull, types ^ 0xe7037ed1a0b428dbull);
  h = fold_multiply(
      pair(key_word::kMac) ^ h,
      (uint64_t{key.w[key_word::kMac + 2]} << 32 | (key.w[key_word::kVlan] >> 16 & 0xfff)) ^ 0x8ebc6af09c88c6e3ull);
  h = fold_multiply(pair(key_word::kIp6Src) ^ h, pair(key_word::kIp6Src + 2) ^ 0x589965cc75374cc3ull);
  h = fold_multiply(pair(key_word::kIp6Dst) ^ h, pair(key_word::kIp6Dst + 2) ^ 0x1d8e4e27c47d124full);
  return static_cast<uint32_t>(h ^ h >> 32);
}

/// Ranks of actions are below this.
inline constexpr uint32_t kSetRanks = 128;

/// The order in which an action set runs (ONF TS-012, section 5.10), different for each type of action. Groups come before
/// outputs.
HEADRACE_SHADER uint32_t set_rank(const uint32_t* op) {
  switch (op_of(op_word(op))) {
    case Op::kCopyTtlIn:
      return 0;
    case Op::kPopVlan:
      return 1;
    case Op::kPopMpls:
      return 2;
    case Op::kPopPbb:
      return 3;
    case Op::kPushMpls:
      return 4;
    case Op::kPushPbb:
      return 5;
    case Op::kPushVlan:
      return 6;
    case Op::kCopyTtlOut:
      return 7;
    case Op::kDecMplsTtl:
      return 8;
    case Op::kDecNwTtl:
      return 9;
    case Op::kSetVlanVid:
      return 10;
    case Op::kSetVlanPcp:
      return 11;
    case Op::kSetPort:
      return 12 + (op_byte(op_word(op)) & 1);
    case Op::kSetMplsTtl:
      return 14;
    case Op::kSetNwTtl:
      return 15;
    case Op::kSetField:
      return 16 + op_byte(op_word(op));
    case Op::kGroup:
      return 126;
    case Op::kOutput:
      return 127;
  }
  return 0;
}

/// The action set of a packet: the write-actions of the programs that it has met since it was emptied. Of two actions of one
/// type the later one stays.
/// \tparam kMost programs that can write to it
template <uint32_t kMost>
class ActionSet {
 public:
  HEADRACE_SHADER void clear() { count_ = 0; }
  HEADRACE_SHADER bool empty() const { return count_ == 0; }
  /// False: too many programs.
  HEADRACE_SHADER bool write(const OpRange& ops) {
    if (ops.empty()) return true;
    if (count_ == kMost) return false;
    begin_[count_] = ops.begin();
    end_[count_++] = ops.end();
    return true;
  }
  /// The action that runs after those whose rank is below `rank`, which becomes the one after its own; null: there is none.
  HEADRACE_SHADER const uint32_t* next(uint32_t& rank) const {
    const uint32_t* best = nullptr;
    uint32_t lowest = kSetRanks;
    for (uint32_t i = 0; i < count_; ++i)
      for (const uint32_t* op = begin_[i]; op != end_[i]; op += op_words(op_word(op))) {
        const uint32_t r = set_rank(op);
        if (r < rank || r > lowest) continue;
        lowest = r;
        best = op;
      }
    // A set with a group has no output.
    rank = best != nullptr && op_of(op_word(best)) == Op::kGroup ? kSetRanks : lowest + 1;
    return best;
  }
  HEADRACE_SHADER bool goes_somewhere() const {
    for (uint32_t i = 0; i < count_; ++i)
      for (const uint32_t* op = begin_[i]; op != end_[i]; op += op_words(op_word(op)))
        if (op_of(op_word(op)) == Op::kOutput || op_of(op_word(op)) == Op::kGroup) return true;
    return false;
  }

 private:
  const uint32_t* begin_[kMost];
  const uint32_t* end_[kMost];
  uint32_t count_ = 0;
};

/// Where a walk stands.
enum class WalkState : uint8_t {
  kLookup,   ///< look the key up in the table
  kOutput,   ///< done: write the edits, and send the packet to the port
  kMissed,   ///< dropped, since nothing was found
  kDropped,  ///< dropped, since no action sends it anywhere
  kHost      ///< a host must walk with the packet, from the beginning: nothing has changed
};

/// A packet's walk. The packet changes only at its end, so that it can be given up at any time.
class Walk {
 public:
  PacketKey key;
  FrameEdits<kDeviceFields> edits;
  Visits visits;
  uint32_t table = 0;
  uint32_t port = 0;  ///< if kOutput: a real port or LOCAL
  WalkState state = WalkState::kLookup;

  Walk() = default;
  /// After the packet has been parsed into `key`. \param length the packet's
  HEADRACE_SHADER void begin(uint32_t length) {
    in_port_ = key.w[key_word::kInPort];
    visits.set_length(length);
  }

  /// Whether an entry's program does no more than send the packet somewhere, and where.
  HEADRACE_SHADER static bool only_sends(const ProgramView& program, uint32_t& to) {
    const uint32_t flags = program.flags();
    to = program.only_port();
    return (flags & (program_flag::kNeedsHost | program_flag::kOnlyOutput)) == program_flag::kOnlyOutput;
  }
  /// The port by which a packet leaves that an action sends to a port or to IN_PORT; 0: none, for it came from there.
  HEADRACE_SHADER static uint32_t leaves_by(uint32_t to, uint32_t in_port) {
    return to == reserved_port::kInPort ? in_port : to == in_port ? 0 : to;
  }

  /// Goes on with what was found for `key` in `table`.
  template <typename Frame>
  HEADRACE_SHADER void step(const OpenFlowView& view, const Frame& frame, const AclMatch& match) {
    if (match.number == AclMatch::kNone) {
      visits.set_missed(table);
      state = view.miss_to_controller() ? WalkState::kHost : WalkState::kMissed;
      return;
    }
    if (visited_ == Visits::kMost) {
      state = WalkState::kHost;
      return;
    }
    visits.set_entry(visited_++, match.number);
    const ProgramView program = view.program(match.data);
    uint32_t to;
    if (program.has(program_flag::kNeedsHost)) {
      state = WalkState::kHost;
    } else if (only_sends(program, to) && set_.empty()) {
      send(to);
    } else {
      run(view, frame, program);
    }
  }

 private:
  enum class Phase : uint8_t { kApply, kSet, kBucket };

  /// Ends the walk with an output.
  HEADRACE_SHADER void send(uint32_t to) {
    port = leaves_by(to, in_port_);
    state = port == 0 ? WalkState::kDropped : WalkState::kOutput;
  }
  HEADRACE_SHADER bool give_up() {
    state = WalkState::kHost;
    return false;
  }
  /// Does what a program says and, if it is the last one, what follows: the action set and the bucket of a group. One loop for
  /// all operations, since each place that makes edits is a lot of code for a device.
  template <typename Frame>
  HEADRACE_SHADER void run(const OpenFlowView& view, const Frame& frame, const ProgramView& program) {
    Phase phase = Phase::kApply;
    uint32_t rank = 0;
    const uint32_t* op = program.apply_actions().begin();
    const uint32_t* end = program.apply_actions().end();
    for (;;) {
      const uint32_t* now = nullptr;
      if (phase == Phase::kSet) {
        now = set_.next(rank);
      } else if (op != end) {
        now = op;
        op += op_words(op_word(op));
      }
      if (now != nullptr) {
        if (!edit(now, frame)) return;
        continue;
      }
      if (phase == Phase::kApply) {
        if (program.has(program_flag::kClears)) set_.clear();
        const bool room = set_.write(program.write_actions());
        program.write_metadata(key.w + key_word::kMetadata);
        if (program.has(program_flag::kGoto) && room) {
          table = program.goto_table();
          return;
        }
        // If the packet has left already, the action set only matters if it sends another one.
        if (!room || (sent_ && set_.goes_somewhere())) {
          state = WalkState::kHost;
          return;
        }
        if (!sent_) {
          phase = Phase::kSet;
          continue;
        }
      }
      if (!sent_ || group_ == 0) {
        if (sent_) {
          send(port);
        } else {
          state = WalkState::kDropped;
        }
        return;
      }
      const GroupView group = view.group(group_ - 1);
      const uint32_t bucket = phase == Phase::kBucket || !group.exists() || group.needs_host()
                                  ? GroupView::kNoBucket
                                  : group.choose(select_hash(key));
      if (bucket == GroupView::kNoBucket || visited_ > Visits::kMostBesideGroup) {
        state = WalkState::kHost;
        return;
      }
      visits.set_group(group_ - 1, group.counter(bucket));
      const OpRange actions = view.program(group.program(bucket)).apply_actions();
      op = actions.begin();
      end = actions.end();
      phase = Phase::kBucket;
      sent_ = false;
      group_ = 0;
    }
  }
  /// Makes a change, or notes where the packet goes. False: the host must do it, and the state says so.
  template <typename Frame>
  HEADRACE_SHADER bool edit(const uint32_t* op, const Frame& frame) {
    const Op what = op_of(op_word(op));
    if (what == Op::kOutput || what == Op::kGroup) {
      if (sent_) return give_up();
      sent_ = true;
      if (what == Op::kOutput) {
        port = op_port(op);
        return true;
      }
      group_ = op_slot(op_word(op)) + 1;
      return true;
    }
    edits.locate(frame, static_cast<int32_t>(visits.length()));
    switch (what) {
      case Op::kSetField:
        edits.set_field(SetField(op), key);
        return true;
      case Op::kSetNwTtl:
        edits.set_ttl(op_byte(op_word(op)));
        return true;
      case Op::kDecNwTtl:
        return edits.decrement_ttl(frame) || give_up();
      case Op::kPushVlan:
        return edits.push_vlan(op_half(op_word(op)), key) || give_up();
      case Op::kPopVlan:
        edits.pop_vlan(frame, key);
        return true;
      case Op::kSetVlanVid:
        return edits.set_tag(op_half(op_word(op)), 0xfff, key) || give_up();
      case Op::kSetVlanPcp:
        return edits.set_tag(op_half(op_word(op)) << 13, 0xe000, key) || give_up();
      case Op::kSetPort:
        edits.set_port((op_byte(op_word(op)) & 1) != 0, op_half(op_word(op)), key);
        return true;
      default:
        return give_up();
    }
  }
  ActionSet<Visits::kMost> set_;
  uint32_t in_port_ = 0;
  uint32_t visited_ = 0;
  uint32_t group_ = 0;  // slot + 1
  bool sent_ = false;
};

}  // namespace headrace::openflow
