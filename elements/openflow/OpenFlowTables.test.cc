#include "elements/openflow/OpenFlowTables.hh"

#include <fmt/format.h>

#include <algorithm>
#include <headrace/cpu_view.hh>
#include <random>

#include "elements/openflow/interpreter.hh"
#include "elements/openflow/packet_frame.hh"
#include "support/element_test.hh"
#include "support/openflow_random.hh"

namespace headrace::testing {
namespace {

using openflow::Op;
using Out = NaiveSwitch::Out;
namespace reserved_port = openflow::reserved_port;

constexpr uint32_t kSwitchPorts = 5;

class CollectingSink final : public openflow::PacketSink {
 public:
  void send(uint32_t port, Packet* packet) override {
    if (port <= kSwitchPorts)
      outs.push_back({port, std::string(reinterpret_cast<const char*>(packet->data()), packet->length())});
    packet->kill();
  }
  uint32_t ports() const override { return kSwitchPorts; }
  bool has_local() const override { return false; }
  void lose(Loss loss) override { losses.push_back(loss); }

  std::vector<Out> outs;
  std::vector<Loss> losses;
};

/// A frame as it comes into the switch.
struct Arrival {
  OpenFlowFrame frame;
  uint32_t in_port;
  std::string bytes = frame.bytes();

  Packet* packet() const {
    Packet* const p = Packet::make(bytes.data(), static_cast<uint32_t>(bytes.size()));
    p->set_anno_u8(anno_offset::kPaint, static_cast<uint8_t>(in_port - 1));
    return p;
  }
};

OpenFlowTables shader_of(const TestDatapath& datapath, int16_t bytes = OpenFlowTables::kMostBytes) {
  OpenFlowTables shader;
  shader.bytes = bytes;
  shader.view = datapath.view();
  shader.ports = kSwitchPorts;
  return shader;
}

/// How a packet is processed. kNarrow: as kSingle, with rows that do not hold all headers.
enum class Way { kBatch, kSingle, kNarrow, kHost };

std::vector<Out> process(const Arrival& arrival, TestDatapath& datapath, Way way, bool& escaped) {
  const OpenFlowTables shader = way == Way::kNarrow
                                    ? shader_of(datapath, static_cast<int16_t>(14 + arrival.bytes.size() % 70))
                                    : shader_of(datapath);
  Packet* p = arrival.packet();
  CollectingSink sink;
  Next next = kEscape;
  uint64_t events[OpenFlowTables::kCounters.kCount] = {};
  openflow::Visits visits;
  if (way == Way::kBatch) {
    shader.shade_batch(&p, 1, &next, events, &visits);
  } else if (way != Way::kHost) {
    CpuView<OpenFlowTables> view(p, events);
    next = shader.shade(view);
    visits = view.result();
  }
  escaped = next == kEscape;
  if (escaped) {
    openflow::Interpreter(datapath, sink).process(p, arrival.in_port);
  } else {
    datapath.count(visits);
    if (next == kDrop) {
      p->kill();
    } else {
      openflow::pad_to_shortest(*p, visits.length());  // as release() does
      sink.send(next + 1u, p);
    }
  }
  return sink.outs;
}

std::string text_of(const std::vector<Out>& outs) {
  std::string text;
  for (const Out& out : outs) text += fmt::format("  port {} {}\n", out.port, to_hex(out.bytes));
  return text;
}

/// Random frames through random rules, on all ways of this machine.
TEST(OpenFlowTables, DoesWhatASwitchOfFieldsDoes) {
  TestRouter pool("Idle -> Discard;");
  std::mt19937 random(16);
  int compared = 0, undefined_frames = 0, left = 0, on_device = 0;
  for (int round = 0; round < 120; ++round) {
    RandomRulesOptions options;
    options.simple = round % 2 == 0;
    const OpenFlowRules rules = random_openflow_rules(random, kSwitchPorts, options);
    TestDatapath datapath(rules);
    for (int i = 0; i < 40; ++i) {
      const Arrival arrival{random_openflow_frame(random), 1 + static_cast<uint32_t>(random() % kSwitchPorts)};
      NaiveSwitch naive(rules, kSwitchPorts);
      bool undefined = false;
      const std::vector<Out> expected = naive.process(arrival.frame, arrival.in_port, undefined);
      undefined_frames += undefined ? 1 : 0;
      for (const Way way : {Way::kHost, Way::kSingle, Way::kNarrow, Way::kBatch}) {
        bool escaped = false;
        const std::vector<Out> seen = process(arrival, datapath, way, escaped);
        const OpenFlowEvents events = datapath.take_events();
        on_device += way == Way::kSingle && !escaped ? 1 : 0;
        if (undefined) continue;
        ++compared;
        left += static_cast<int>(seen.size());
        ASSERT_EQ(seen, expected) << "round " << round << " frame " << i << " way " << static_cast<int>(way) << "\n"
                                  << to_hex(arrival.frame.bytes()) << "\nseen\n"
                                  << text_of(seen) << "expected\n"
                                  << text_of(expected);
        ASSERT_EQ(events, naive.events) << "round " << round << " frame " << i << " way " << static_cast<int>(way);
      }
    }
  }
  EXPECT_GT(compared, 16000);
  EXPECT_LT(undefined_frames, 500);
  EXPECT_GT(left, 4000);
  EXPECT_GT(on_device, 1500);
}

/// Frames with broken headers, which the switch of fields does not know: all ways agree on them.
TEST(OpenFlowTables, TreatsBrokenFramesTheSameOnAllWays) {
  TestRouter pool("Idle -> Discard;");
  std::mt19937 random(17);
  int on_device = 0;
  for (int round = 0; round < 100; ++round) {
    RandomRulesOptions options;
    options.simple = round % 4 != 0;
    const OpenFlowRules rules = random_openflow_rules(random, kSwitchPorts, options);
    TestDatapath datapath(rules);
    for (int i = 0; i < 40; ++i) {
      Arrival arrival{random_openflow_frame(random), 1 + static_cast<uint32_t>(random() % kSwitchPorts)};
      for (uint32_t n = random() % 3; n > 0; --n)
        arrival.bytes[12 + random() % (std::min<size_t>(arrival.bytes.size(), 60) - 12)] = static_cast<char>(random());
      if (random() % 2 == 0) arrival.bytes.resize(14 + random() % (arrival.bytes.size() - 13));
      bool escaped = false;
      const std::vector<Out> expected = process(arrival, datapath, Way::kHost, escaped);
      const OpenFlowEvents events = datapath.take_events();
      for (const Way way : {Way::kSingle, Way::kNarrow, Way::kBatch}) {
        const std::vector<Out> seen = process(arrival, datapath, way, escaped);
        on_device += escaped ? 0 : 1;
        ASSERT_EQ(seen, expected) << "round " << round << " frame " << i << " way " << static_cast<int>(way) << "\n"
                                  << to_hex(arrival.bytes) << "\nseen\n"
                                  << text_of(seen) << "expected\n"
                                  << text_of(expected);
        ASSERT_EQ(datapath.take_events(), events) << "round " << round << " frame " << i;
      }
    }
  }
  EXPECT_GT(on_device, 4000);
}

/// Packets that walk together go where each would go alone.
TEST(OpenFlowTables, WalksTogetherAsAlone) {
  TestRouter pool("Idle -> Discard;");
  std::mt19937 random(18);
  constexpr int kPackets = 150;
  for (int round = 0; round < 20; ++round) {
    RandomRulesOptions options;
    options.simple = true;
    TestDatapath datapath(random_openflow_rules(random, kSwitchPorts, options));
    const OpenFlowTables shader = shader_of(datapath);
    Packet *together[kPackets], *alone[kPackets];
    for (int i = 0; i < kPackets; ++i) {
      const Arrival arrival{random_openflow_frame(random), 1 + static_cast<uint32_t>(random() % kSwitchPorts)};
      together[i] = arrival.packet();
      alone[i] = arrival.packet();
      if (random() % 16 == 0) {
        together[i]->take(together[i]->length() - 9);
        alone[i]->take(alone[i]->length() - 9);
      }
    }
    Next nexts[kPackets];
    uint64_t events[OpenFlowTables::kCounters.kCount] = {}, single_events[OpenFlowTables::kCounters.kCount] = {};
    std::vector<openflow::Visits> results(kPackets);
    shader.shade_batch(together, kPackets, nexts, events, results.data());
    for (int i = 0; i < kPackets; ++i) {
      CpuView<OpenFlowTables> view(alone[i], single_events);
      const Next next = shader.shade(view);
      EXPECT_EQ(nexts[i], next) << round << ' ' << i;
      if (next != kEscape) {
        EXPECT_EQ(std::memcmp(&results[static_cast<size_t>(i)], &view.result(), sizeof(openflow::Visits)), 0)
            << round << ' ' << i;
      }
      EXPECT_EQ(to_hex({reinterpret_cast<const char*>(together[i]->data()), together[i]->length()}),
                to_hex({reinterpret_cast<const char*>(alone[i]->data()), alone[i]->length()}))
          << round << ' ' << i;
      together[i]->kill();
      alone[i]->kill();
    }
    EXPECT_TRUE(std::equal(std::begin(events), std::end(events), std::begin(single_events))) << round;
  }
}

std::string graph_of_switch(const std::string& arguments) {
  std::string text = fmt::format("Idle -> t :: OpenFlowTables({});", arguments);
  for (uint32_t i = 0; i < kSwitchPorts; ++i) text += fmt::format("t[{}] -> c{} :: Capture;", i, i);
  return text;
}

/// Every carrier runs this.
TEST(OpenFlowTables, DoesTheSameOnEveryCarrier) {
  std::mt19937 random(1);
  for (int round = 0; round < 3; ++round) {
    RandomRulesOptions options;
    options.simple = round != 2;
    const OpenFlowRules rules = random_openflow_rules(random, kSwitchPorts, options);
    const auto datapath = std::make_shared<TestDatapath>(rules);
    const std::string name = fmt::format("carrier{}", round);
    ASSERT_TRUE(openflow::publish_datapath(name, datapath));
    // Frames that change come back with their rows, or apart.
    TestRouter r(graph_of_switch(name + (round == 1 ? ", EDITS false" : ", EDITS true")));
    ASSERT_TRUE(r.ok()) << r.errors();
    NaiveSwitch naive(rules, kSwitchPorts);
    std::vector<Out> expected, seen;
    for (int i = 0; i < 150; ++i) {
      const Arrival arrival{random_openflow_frame(random), 1 + static_cast<uint32_t>(random() % kSwitchPorts)};
      bool undefined = false;
      NaiveSwitch trial = naive;
      const std::vector<Out> outs = trial.process(arrival.frame, arrival.in_port, undefined);
      if (undefined) continue;
      naive.events = trial.events;
      expected.insert(expected.end(), outs.begin(), outs.end());
      r.push("t", arrival.packet());
    }
    for (uint32_t port = 1; port <= kSwitchPorts; ++port) {
      const Capture& c = capture(r, fmt::format("c{}", port - 1));
      for (size_t i = 0; i < c.seen().size(); ++i) seen.push_back({port, c.bytes(i)});
    }
    std::sort(seen.begin(), seen.end());
    std::sort(expected.begin(), expected.end());
    EXPECT_EQ(seen.size(), expected.size());
    EXPECT_TRUE(seen == expected) << "round " << round;
    EXPECT_TRUE(datapath->take_events() == naive.events) << "round " << round;
  }
}

/// A frame from which tags and labels are taken stays as long as Ethernet's shortest, on every carrier; what was put back
/// counts, and what came shorter stays so.
TEST(OpenFlowTables, PadsWhatHasBecomeTooShort) {
  OpenFlowRules rules;
  const auto add = [&rules](uint32_t in_port, std::vector<OpenFlowOp> actions) {
    OpenFlowEntry entry;
    entry.match.value[key_word::kInPort] = in_port;
    entry.match.mask[key_word::kInPort] = 0xffffffff;
    entry.program.apply = std::move(actions);
    rules.entries.push_back(entry);
  };
  add(1, {op_plain(Op::kPopVlan), op_output(5)});
  add(2, {op_plain(Op::kPopVlan), op_plain(Op::kPushVlan, 0x8100), op_output(5)});
  add(3, {op_plain(Op::kPopVlan), op_output(4), op_output(5)});  // copies: by the host
  add(4, {op_plain(Op::kPopMpls, 0x88b5), op_output(5)});
  const auto datapath = std::make_shared<TestDatapath>(rules);
  ASSERT_TRUE(openflow::publish_datapath("shortest", datapath));
  TestRouter r(graph_of_switch("shortest"));
  ASSERT_TRUE(r.ok()) << r.errors();
  const std::string addresses = from_hex("020000000001 020000000002");
  const auto push = [&](uint32_t in_port, const std::string& header, size_t length) {
    std::string bytes = addresses + from_hex(header);
    for (char c = 1; bytes.size() < length; ++c) bytes += c;
    Packet* const p = Packet::make(bytes.data(), static_cast<uint32_t>(bytes.size()));
    ASSERT_TRUE(p->put(40));
    std::memset(p->data() + length, 0xee, 40);  // what lies behind the frame must not leak
    ASSERT_TRUE(p->take(40));
    p->set_anno_u8(anno_offset::kPaint, static_cast<uint8_t>(in_port - 1));
    r.push("t", p);
  };
  const std::string tag = "81000007 88b5";
  size_t seen = 0;
  const auto expect = [&](const std::string& header, size_t from_payload, size_t padding) {
    std::string bytes = addresses + from_hex(header);
    for (char c = 1; c <= static_cast<char>(from_payload); ++c) bytes += c;
    const Capture& c = capture(r, "c4");
    ASSERT_EQ(c.seen().size(), ++seen);
    EXPECT_EQ(to_hex(c.bytes(seen - 1)), to_hex(bytes + std::string(padding, '\0')));
  };
  push(1, tag, 60);
  expect("88b5", 42, 4);
  push(1, tag, 63);
  expect("88b5", 45, 1);
  push(1, tag, 64);
  expect("88b5", 46, 0);
  push(1, tag, 59);
  expect("88b5", 41, 0);
  push(2, tag, 60);
  expect("81000000 88b5", 42, 0);
  push(3, tag, 60);
  expect("88b5", 42, 4);
  EXPECT_EQ(capture(r, "c3").bytes(0).size(), 60u);
  push(4, "8847 00001140", 61);
  expect("88b5", 43, 3);
}

/// What ports and fail modes say, on every carrier.
TEST(OpenFlowTables, ObeysPortsAndFailModes) {
  OpenFlowRules rules;
  OpenFlowEntry entry;
  entry.program.apply = {op_output(2)};
  rules.entries.push_back(entry);
  const auto datapath = std::make_shared<TestDatapath>(rules);
  ASSERT_TRUE(openflow::publish_datapath("ports", datapath));
  TestRouter r(graph_of_switch("ports"));
  ASSERT_TRUE(r.ok()) << r.errors();
  const auto push = [&](uint32_t in_port, bool stp = false) {
    const std::string to = stp ? from_hex("0180c2000000") : from_hex("020000000001");
    const std::string bytes = to + from_hex("020000000002 88b5") + std::string(46, '\0');
    Packet* const p = Packet::make(bytes.data(), static_cast<uint32_t>(bytes.size()));
    p->set_anno_u8(anno_offset::kPaint, static_cast<uint8_t>(in_port - 1));
    r.push("t", p);
  };
  const auto change = [&](const std::function<void()>& action) {
    action();
    Errors errors;
    EXPECT_TRUE(r.router().update_devices(errors).ok()) << errors.str();
  };
  const auto left = [&](uint32_t port) { return capture(r, fmt::format("c{}", port - 1)).seen().size(); };
  const auto count = [&](uint32_t port) { return datapath->port_counters().sum(port); };
  push(1);
  push(2);  // never back
  EXPECT_EQ(left(2), 1u);
  change([&] {
    datapath->closed.any = true;
    datapath->closed.no_receive.set(3, true);
    datapath->closed.no_receive_stp.set(4, true);
  });
  for (const uint32_t port : {3, 4}) {
    push(port);
    push(port, true);
    EXPECT_EQ(count(port).rx_packets, 1u);
    EXPECT_EQ(count(port).rx_dropped, 1u);
  }
  EXPECT_EQ(left(2), 3u);
  change([&] { datapath->closed.no_forward.set(2, true); });
  push(1);
  EXPECT_EQ(left(2), 3u);
  EXPECT_EQ(count(1).rx_packets, 2u);
  EXPECT_EQ(count(2).tx_packets, 3u);
  EXPECT_EQ(count(2).tx_bytes, 180u);
  EXPECT_EQ(count(2).tx_dropped, 1u);
  change([&] {
    datapath->alone = true;
    datapath->normal_port = 5;
  });
  push(1);
  EXPECT_EQ(left(5), 1u);
  datapath->normal_port = 2;
  push(1);
  EXPECT_EQ(left(2), 3u);
  EXPECT_EQ(count(2).tx_dropped, 2u);
  uint64_t drops = 0;
  for (const Router::Drop& drop : r.router().drops()) drops += drop.packets;
  EXPECT_EQ(drops, 5u);
}

TEST(OpenFlowTables, NamesMistakes) {
  TestRouter none("Idle -> OpenFlowTables(nothing) -> Discard;");
  EXPECT_FALSE(none.ok());
  EXPECT_NE(none.errors().find("NAME: no OpenFlow switch 'nothing'"), std::string::npos) << none.errors();
  TestRouter range("Idle -> OpenFlowTables(nothing, BYTES 5, ROOM 9) -> Discard;");
  EXPECT_NE(range.errors().find("BYTES: out of range, bound 14"), std::string::npos) << range.errors();
  EXPECT_NE(range.errors().find("ROOM: out of range, bound 8"), std::string::npos) << range.errors();
}

}  // namespace
}  // namespace headrace::testing
