/// \file
/// What only the host does with packets of an OpenFlow switch, action by action and as a whole.

#include "elements/openflow/interpreter.hh"

#include <random>

#include "elements/openflow/OpenFlowTables.hh"
#include "elements/openflow/frame_actions.hh"
#include "support/element_test.hh"
#include "support/openflow_switch.hh"

namespace headrace::testing {
namespace {

using openflow::Edited;
using openflow::GroupKind;
using openflow::Interpreter;
using openflow::Op;
using openflow::PacketSink;
namespace reserved_port = openflow::reserved_port;

struct ActionVector {
  OpenFlowOp op;
  const char* before;
  const char* after;
};

/// Both frames are Scapy's, which computes all checksums.
const ActionVector kActionVectors[] = {
    {op_set(12, 0xc0000205),
     "02000000000102000000000208004500002400010000401166c60a0000010a0000020005000600104c306865616472616365",
     "020000000001020000000002080045000024000100004011aec20a000001c0000205000500060010942c6865616472616365"},
    {op_set(11, 0xc0000205),
     "02000000000102000000000208004500003000010000400666c50a0000010a00000200050006000000000000000050022000dc3c00006865616472616365",
     "020000000001020000000002080045000030000100004006aec0c00002050a00000200050006000000000000000050022000243800006865616472616365"},
    {op_set(16, 4789),
     "02000000000102000000000208004500002400010000401166c60a0000010a00000200050006001000006865616472616365",
     "02000000000102000000000208004500002400010000401166c60a0000010a000002000512b5001000006865616472616365"},
    {op_set(8, 46),
     "0200000000010200000000028100600508004501002400010000400166d50a0000010a0000020800586f000000006865616472616365",
     "02000000000102000000000281006005080045b90024000100004001661d0a0000010a0000020800586f000000006865616472616365"},
    {op_set(19, 0),
     "02000000000102000000000208004500002400010000400166d60a0000010a0000020800586f000000006865616472616365",
     "02000000000102000000000208004500002400010000400166d60a0000010a0000020000606f000000006865616472616365"},
    {op_set(17, 9),
     "020000000001020000000002080045000038000100004084663f0a0000010a0000020005000600000007d4734bcf000000180000000000000000000000006865616472616365",
     "020000000001020000000002080045000038000100004084663f0a0000010a0000020009000600000007b1ec8943000000180000000000000000000000006865616472616365"},
    {op_set(27, 0x42, 0x20010db800000000),
     "02000000000102000000000286dd600000000018004020010db800000000000000000000000120010db8000000000000000000000002110001040000000000050006001004be6865616472616365",
     "02000000000102000000000286dd600000000018004020010db800000000000000000000000120010db80000000000000000000000421100010400000000000500060010047e6865616472616365"},
    {op_set(28, 0x12345),
     "02000000000102000000000286dd609000010014064020010db800000000000000000000000120010db80000000000000000000000020005000600000000000000005002200034630000",
     "02000000000102000000000286dd609123450014064020010db800000000000000000000000120010db80000000000000000000000020005000600000000000000005002200034630000"},
    {op_set(31, 0x7, 0x20010db800000000),
     "02000000000102000000000286dd6000000000203a4020010db800000000000000000000000120010db80000000000000000000000028700ec6a0000000020010db80000000000000000000000090101020000000002",
     "02000000000102000000000286dd6000000000203a4020010db800000000000000000000000120010db80000000000000000000000028700ec6c0000000020010db80000000000000000000000070101020000000002"},
    {op_set(32, 0x0a0b0c0d0e0f),
     "02000000000102000000000286dd6000000000203a4020010db800000000000000000000000120010db80000000000000000000000028700ec6a0000000020010db80000000000000000000000090101020000000002",
     "02000000000102000000000286dd6000000000203a4020010db800000000000000000000000120010db80000000000000000000000028700ca450000000020010db800000000000000000000000901010a0b0c0d0e0f"},
    {op_set(33, 0x0a0b0c0d0e0f),
     "02000000000102000000000286dd6000000000203a4020010db800000000000000000000000120010db800000000000000000000000288004a6aa000000020010db80000000000000000000000090201020000000002",
     "02000000000102000000000286dd6000000000203a4020010db800000000000000000000000120010db800000000000000000000000288002845a000000020010db800000000000000000000000902010a0b0c0d0e0f"},
    {op_set(24, 0x0a0b0c0d0e0f), "020000000001020000000002080600010800060400010200000000020a0000010000000000000a000002",
     "020000000001020000000002080600010800060400010a0b0c0d0e0f0a0000010000000000000a000002"},
    {op_set(5, 0x88b5), "02000000000102000000000290006865616472616365", "02000000000102000000000288b56865616472616365"},
    {op_set(10, 47),
     "02000000000102000000000208004500003000010000400666c50a0000010a00000200050006000000000000000050022000dc3c00006865616472616365",
     "02000000000102000000000208004500003000010000402f669c0a0000010a00000200050006000000000000000050022000dc1300006865616472616365"},
    {op_plain(Op::kDecNwTtl),
     "020000000001020000000002080045000024000100000211a4c60a0000010a0000020005000600104c306865616472616365",
     "020000000001020000000002080045000024000100000111a5c60a0000010a0000020005000600104c306865616472616365"},
    {op_plain(Op::kPushVlan, 0x88a8),
     "0200000000010200000000028100600508004500002400010000401166c60a0000010a0000020035003500104bd16865616472616365",
     "02000000000102000000000288a860058100600508004500002400010000401166c60a0000010a0000020035003500104bd16865616472616365"},
    {op_plain(Op::kPopVlan),
     "0200000000010200000000028100600508004500002400010000401166c60a0000010a0000020035003500104bd16865616472616365",
     "02000000000102000000000208004500002400010000401166c60a0000010a0000020035003500104bd16865616472616365"},
    {op_plain(Op::kPushMpls, 0x8847),
     "020000000001020000000002810000050800450000240001000009119dc60a0000010a0000020035003500104bd16865616472616365",
     "02000000000102000000000281000005884700000109450000240001000009119dc60a0000010a0000020035003500104bd16865616472616365"},
    {op_plain(Op::kPushMpls, 0x8848),
     "02000000000102000000000288470004d5084500002400010000401166c60a0000010a0000020035003500104bd16865616472616365",
     "02000000000102000000000288480004d4080004d5084500002400010000401166c60a0000010a0000020035003500104bd16865616472616365"},
    {op_plain(Op::kPopMpls, 0x0800),
     "02000000000102000000000288470004d5084500002400010000401166c60a0000010a0000020035003500104bd16865616472616365",
     "02000000000102000000000208004500002400010000401166c60a0000010a0000020035003500104bd16865616472616365"},
    {op_plain(Op::kDecMplsTtl),
     "02000000000102000000000288470004d5084500002400010000401166c60a0000010a0000020035003500104bd16865616472616365",
     "02000000000102000000000288470004d5074500002400010000401166c60a0000010a0000020035003500104bd16865616472616365"},
    {op_set(34, 99),
     "02000000000102000000000288470004d5084500002400010000401166c60a0000010a0000020035003500104bd16865616472616365",
     "0200000000010200000000028847000635084500002400010000401166c60a0000010a0000020035003500104bd16865616472616365"},
    {op_set(36, 0),
     "02000000000102000000000288470004d5084500002400010000401166c60a0000010a0000020035003500104bd16865616472616365",
     "02000000000102000000000288470004d4084500002400010000401166c60a0000010a0000020035003500104bd16865616472616365"},
    {op_plain(Op::kCopyTtlIn),
     "02000000000102000000000288470004d50845000024000100003c116ac60a0000010a0000020035003500104bd16865616472616365",
     "02000000000102000000000288470004d508450000240001000008119ec60a0000010a0000020035003500104bd16865616472616365"},
    {op_plain(Op::kCopyTtlOut),
     "02000000000102000000000288470004d508600000000010114020010db800000000000000000000000120010db8000000000000000000000002003500350010045f6865616472616365",
     "02000000000102000000000288470004d540600000000010114020010db800000000000000000000000120010db8000000000000000000000002003500350010045f6865616472616365"},
    {op_plain(Op::kPushPbb, 0x88e7),
     "0200000000010200000000028100600508004500002400010000401166c60a0000010a0000020035003500104bd16865616472616365",
     "02000000000102000000000288e7600000000200000000010200000000028100600508004500002400010000401166c60a0000010a0000020035003500104bd16865616472616365"},
    {op_plain(Op::kPopPbb),
     "02000000000102000000000288e7600000090200000000010200000000028100600508004500002400010000401166c60a0000010a0000020035003500104bd16865616472616365",
     "0200000000010200000000028100600508004500002400010000401166c60a0000010a0000020035003500104bd16865616472616365"},
    {op_set(37, 0x123456),
     "02000000000102000000000288e7600000090200000000010200000000028100600508004500002400010000401166c60a0000010a0000020035003500104bd16865616472616365",
     "02000000000102000000000288e7601234560200000000010200000000028100600508004500002400010000401166c60a0000010a0000020035003500104bd16865616472616365"},
};

std::string act_on(const OpenFlowOp& op, std::string_view hex, Edited expected = Edited::kDone) {
  const std::string bytes = from_hex(hex);
  Packet* const p = Packet::make(bytes.data(), static_cast<uint32_t>(bytes.size()));
  PacketKeyContext context;
  EXPECT_EQ(openflow::act_on_frame(*p, op.data(), context), expected);
  const std::string result = to_hex({reinterpret_cast<const char*>(p->data()), p->length()});
  p->kill();
  return result;
}

TEST(OpenFlowActions, AgreeWithProgramsOnWhatADeviceCanSet) {
  for (uint32_t field = 0; field < 64; ++field)
    EXPECT_EQ((openflow::kDeviceFields >> field & 1) != 0, openflow::stays_on_device(field)) << field;
}

TEST(OpenFlowActions, ChangeFramesAsScapyMakesThem) {
  TestRouter pool("Idle -> Discard;");
  for (const ActionVector& v : kActionVectors)
    EXPECT_EQ(act_on(v.op, v.before), v.after)
        << "operation " << (v.op[0] & 0xff) << " field " << openflow::op_byte(v.op[0]);
}

TEST(OpenFlowActions, LeaveFramesThatEndEarly) {
  TestRouter pool("Idle -> Discard;");
  for (const ActionVector& v : kActionVectors) {
    const std::string whole = v.before;
    for (size_t bytes = 0; bytes * 2 < whole.size(); ++bytes) {
      const std::string cut = whole.substr(0, bytes * 2);
      const std::string result = act_on(v.op, cut);
      if (bytes < 14) {
        EXPECT_EQ(result, cut);
      }
    }
  }
}

/// Bytes in memory that count accesses outside.
class CheckedFrame {
 public:
  explicit CheckedFrame(const std::string& bytes) : room_(8, '\0'), bytes_(bytes) {}

  uint32_t byte(int32_t at) const { return at >= 0 && at < end() ? static_cast<uint8_t>(bytes_[at]) : bad(); }
  uint32_t half(int32_t at) const { return byte(at) << 8 | byte(at + 1); }
  uint32_t word(int32_t at) const { return half(at) << 16 | half(at + 2); }
  void set_byte(int32_t at, uint32_t value) {
    if (at < -moved_ || at >= end()) {
      bad();
    } else {
      (at < 0 ? room_[8 + at] : bytes_[at]) = static_cast<char>(value);
    }
  }
  void set_half(int32_t at, uint32_t value) {
    set_byte(at, value >> 8);
    set_byte(at + 1, value & 0xff);
  }
  void set_word(int32_t at, uint32_t value) {
    set_half(at, value >> 16);
    set_half(at + 2, value & 0xffff);
  }
  bool complete() const { return true; }
  bool move(int32_t n) {
    moved_ += n;
    return true;
  }
  int32_t end() const { return static_cast<int32_t>(bytes_.size()); }
  int bad_accesses() const { return bad_; }

 private:
  uint32_t bad() const {
    ++bad_;
    return 0;
  }

  std::string room_, bytes_;
  int32_t moved_ = 0;
  mutable int bad_ = 0;
};

/// Every action on every kind of frame, cut anywhere.
TEST(OpenFlowActions, StayWithinTheFrame) {
  int changed = 0;
  for (const ActionVector& frame_of : kActionVectors) {
    const std::string whole = from_hex(frame_of.before);
    for (size_t length = 0; length <= whole.size(); ++length) {
      const std::string cut = whole.substr(0, length);
      for (const ActionVector& v : kActionVectors) {
        CheckedFrame frame(cut);
        PacketKey key = parse_frame(frame, frame.end(), {});
        openflow::FrameEdits<> edits;
        edits.locate(frame, frame.end());
        if (openflow::op_of(v.op[0]) == Op::kSetField) {
          edits.set_field(openflow::SetField(v.op.data()), key);
        } else if (openflow::op_of(v.op[0]) == Op::kDecNwTtl) {
          edits.decrement_ttl(frame);
        } else if (openflow::op_of(v.op[0]) == Op::kPushVlan) {
          edits.push_vlan(0x8100, key);
        } else if (openflow::op_of(v.op[0]) == Op::kPopVlan) {
          edits.pop_vlan(frame, key);
        }
        if (edits.any()) edits.write(frame, key);
        changed += edits.any() ? 1 : 0;
        ASSERT_EQ(frame.bad_accesses(), 0)
            << frame_of.before << " cut at " << length << " field " << openflow::op_byte(v.op[0]);
      }
    }
  }
  EXPECT_GT(changed, 5000);
}

TEST(OpenFlowActions, RefuseTtlsThatAreNotValid) {
  TestRouter pool("Idle -> Discard;");
  const std::string frame =
      "020000000001 020000000002 0800 4500001c00000000 0111 0000 0a000001 0a000002 0001000200080000";
  const std::string plain = plain_hex(frame);
  EXPECT_EQ(act_on(op_plain(Op::kDecNwTtl), frame, Edited::kInvalidTtl), plain);
  const std::string labeled = "020000000001 020000000002 8847 00010101 00000000";
  EXPECT_EQ(act_on(op_plain(Op::kDecMplsTtl), labeled, Edited::kInvalidTtl), plain_hex(labeled));
}

class NotingSink final : public PacketSink {
 public:
  void send(uint32_t port, Packet* packet) override {
    ports_seen.push_back(port);
    dscp = packet->data()[15] >> 2;
    packet->kill();
  }
  uint32_t ports() const override { return 4; }
  bool has_local() const override { return true; }
  void lose(Loss loss) override { losses.push_back(loss); }

  std::vector<uint32_t> ports_seen;
  std::vector<Loss> losses;
  int dscp = -1;
};
using Loss = PacketSink::Loss;
using Ports = std::vector<uint32_t>;
using Losses = std::vector<Loss>;

/// UDP with DSCP AF11.
Packet* some_frame(int ttl = 64) {
  OpenFlowFrame f;
  f.network = OpenFlowFrame::Network::kIp4;
  f.type = 0x0800;
  f.protocol = 17;
  f.tos = 10 << 2;
  f.ttl = static_cast<uint8_t>(ttl);
  const std::string bytes = f.bytes();
  return Packet::make(bytes.data(), static_cast<uint32_t>(bytes.size()));
}

OpenFlowRules rules_of(const std::vector<OpenFlowOp>& apply) {
  OpenFlowRules rules;
  rules.entries.emplace_back();
  rules.entries[0].program.apply = apply;
  return rules;
}

Ports ports_of(uint32_t to, TestDatapath* changed = nullptr) {
  TestDatapath plain(rules_of({op_output(to)}));
  TestDatapath& datapath = changed != nullptr ? *changed : plain;
  NotingSink sink;
  Interpreter(datapath, sink).process(some_frame(), 2);
  return sink.ports_seen;
}

TEST(OpenFlowInterpreter, KnowsReservedPorts) {
  TestRouter pool("Idle -> Discard;");
  const uint32_t local = reserved_port::kLocal;
  EXPECT_EQ(ports_of(reserved_port::kAll), (Ports{1, 3, 4, local}));
  EXPECT_EQ(ports_of(reserved_port::kInPort), Ports{2});
  EXPECT_EQ(ports_of(2), Ports{});
  EXPECT_EQ(ports_of(local), Ports{local});
  TestDatapath flood(rules_of({op_output(reserved_port::kFlood)}));
  flood.quiet_port = 3;
  EXPECT_EQ(ports_of(0, &flood), (Ports{1, 4, local}));
  TestDatapath normal(rules_of({op_output(reserved_port::kNormal)}));
  EXPECT_EQ(ports_of(0, &normal), Ports{});
  normal.normal_port = 4;
  EXPECT_EQ(ports_of(0, &normal), Ports{4});
  normal.normal_port = reserved_port::kFlood;
  EXPECT_EQ(ports_of(0, &normal), (Ports{1, 3, 4, local}));
}

TEST(OpenFlowInterpreter, TellsControllers) {
  TestRouter pool("Idle -> Discard;");
  NotingSink sink;
  TestDatapath datapath(rules_of({op_output(reserved_port::kController, 20), op_output(1)}));
  Interpreter(datapath, sink).process(some_frame(), 2);
  OpenFlowEvents events = datapath.take_events();
  ASSERT_EQ(events.packet_ins.size(), 1u);
  EXPECT_EQ(events.packet_ins[0].bytes.size(), 20u);
  EXPECT_EQ(events.packet_ins[0].entry, 0u);
  EXPECT_EQ(sink.ports_seen, Ports{1});

  TestDatapath expired(rules_of({op_plain(Op::kDecNwTtl), op_output(1)}));
  Interpreter(expired, sink).process(some_frame(1), 2);
  EXPECT_EQ(expired.take_events().packet_ins.size(), 0u);
  expired.invalid_ttl = true;
  Interpreter(expired, sink).process(some_frame(1), 2);
  events = expired.take_events();
  ASSERT_EQ(events.packet_ins.size(), 1u);
  EXPECT_EQ(events.packet_ins[0].reason, 2);
  EXPECT_EQ(sink.losses, (Losses{Loss::kInvalidTtl, Loss::kInvalidTtl}));
  EXPECT_EQ(sink.ports_seen, Ports{1});
}

/// What an entry for table misses sends itself has missed (ONF TS-023, section 5.4); what a group sends has not.
TEST(OpenFlowInterpreter, TellsMissesFromActions) {
  TestRouter pool("Idle -> Discard;");
  OpenFlowRules rules = rules_of({op_output(reserved_port::kController), op_group(0)});
  rules.groups.push_back({GroupKind::kIndirect, {{{op_output(reserved_port::kController)}}}});
  const auto reasons = [&] {
    NotingSink sink;
    TestDatapath datapath(rules);
    Interpreter(datapath, sink).process(some_frame(), 2);
    std::vector<int> seen;
    for (const OpenFlowEvents::In& in : datapath.take_events().packet_ins) seen.push_back(in.reason);
    return seen;
  };
  EXPECT_EQ(reasons(), (std::vector<int>{1, 1}));
  rules.entries[0].program.table_miss = true;
  EXPECT_EQ(reasons(), (std::vector<int>{0, 1}));
}

TEST(OpenFlowInterpreter, ObeysMeters) {
  TestRouter pool("Idle -> Discard;");
  OpenFlowRules rules = rules_of({op_output(1)});
  rules.entries[0].program.meter = 8;
  TestDatapath datapath(rules);
  NotingSink sink;
  datapath.verdicts[7] = {};
  Interpreter(datapath, sink).process(some_frame(), 2);
  EXPECT_EQ(sink.dscp, 10);
  datapath.verdicts[7].drop_precedence = 1;
  Interpreter(datapath, sink).process(some_frame(), 2);
  EXPECT_EQ(sink.dscp, 12);
  datapath.verdicts[7].drop = true;
  Interpreter(datapath, sink).process(some_frame(), 2);
  EXPECT_EQ(sink.ports_seen, (Ports{1, 1}));
  EXPECT_EQ(sink.losses, Losses{Loss::kMetered});
}

TEST(OpenFlowInterpreter, SendsPacketOutsThroughTheTables) {
  TestRouter pool("Idle -> Discard;");
  TestDatapath datapath(rules_of({op_output(3)}));
  NotingSink sink;
  std::vector<uint32_t> ops;
  for (const OpenFlowOp& op : {op_output(1), op_output(reserved_port::kTable)})
    ops.insert(ops.end(), op.begin(), op.end());
  Interpreter(datapath, sink)
      .act(some_frame(), reserved_port::kController, {ops.data(), static_cast<uint32_t>(ops.size())});
  EXPECT_EQ(sink.ports_seen, (Ports{1, 3}));
  EXPECT_EQ(datapath.take_events().entries.at(0).first, 1u);
}

/// Groups and tables that lead back to themselves, which flow-mods and group-mods refuse, end all the same.
TEST(OpenFlowInterpreter, EndsLoops) {
  TestRouter pool("Idle -> Discard;");
  OpenFlowRules rules = rules_of({op_group(0)});
  rules.groups.push_back({GroupKind::kIndirect, {{{op_group(0)}}}});
  TestDatapath groups(rules);
  NotingSink sink;
  Interpreter(groups, sink).process(some_frame(), 2);
  EXPECT_EQ(sink.losses, (Losses{Loss::kTooDeep, Loss::kNoAction}));
  TestDatapath tables(rules_of({op_output(reserved_port::kTable)}));
  sink.losses.clear();
  Interpreter(tables, sink).process(some_frame(), 2);
  ASSERT_FALSE(sink.losses.empty());
  EXPECT_EQ(sink.losses[0], Loss::kTooDeep);
  EXPECT_EQ(sink.ports_seen, Ports{});
}

TEST(OpenFlowInterpreter, CountsCopiesForWhichThereIsNoBuffer) {
  TestRouter pool("Idle -> Discard;");
  TestDatapath datapath(rules_of({op_output(1), op_output(3)}));
  Packet* const packet = some_frame();
  Packet* rest = nullptr;
  while (Packet* const p = Packet::make(64)) {
    p->set_next(rest, 0);
    rest = p;
  }
  NotingSink sink;
  Interpreter(datapath, sink).process(packet, 2);
  EXPECT_EQ(sink.losses, Losses{Loss::kNoBuffer});
  EXPECT_EQ(sink.ports_seen, Ports{3});
  while (rest != nullptr) {
    Packet* const next = rest->next();
    rest->kill();
    rest = next;
  }
}

/// Flows that differ in one kind of field only spread over buckets by their weights.
TEST(OpenFlowSelect, SpreadsFlowsByWeight) {
  std::mt19937 random(3);
  uint32_t record[openflow::group_word::kHead + 4 * openflow::bucket_word::kCount] = {1 | 4 << 16, 10};
  uint32_t up_to = 0;
  for (uint32_t i = 0; i < 4; ++i) {
    uint32_t* const bucket = record + openflow::group_word::kHead + i * openflow::bucket_word::kCount;
    up_to += i + 1;
    bucket[openflow::bucket_word::kUpTo] = up_to;
    bucket[openflow::bucket_word::kWatch] = openflow::LiveView::kAlways;
    bucket[openflow::bucket_word::kWatchGroup] = openflow::LiveView::kNever;
  }
  const openflow::GroupView group(record, openflow::LiveView());
  // Words of a key that hold MACs, addresses (ARP has them, too), ports, the VLAN, and parts of IPv6 addresses.
  for (const uint32_t word : {5u, 6u, 7u, 0u, 1u, 2u, 16u, 19u, 20u, 23u}) {
    int counts[4] = {};
    PacketKey key{};
    key.w[key_word::kTypes] = 0x08000600;
    for (uint32_t i = 0; i < 40000; ++i) {
      key.w[word] = i;  // one after the other, as testers number them
      ++counts[group.choose(openflow::select_hash(key))];
    }
    for (int i = 0; i < 4; ++i)
      EXPECT_NEAR(counts[i], 4000 * (i + 1), 400 * (i + 1)) << "word " << word << " bucket " << i;
  }
}

}  // namespace
}  // namespace headrace::testing
