/// \file
/// A switch with a controller at a socket, in a time of its own. tests/system/test_openflow_switch.py has packets.

#include "control/openflow/switch/switch.hh"

#include <gtest/gtest.h>
#include <poll.h>

#include <array>
#include <atomic>
#include <deque>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <thread>
#include <utility>

#include "elements/openflow/interpreter.hh"
#include "support/openflow_channel.hh"
#include "support/openflow_messages.hh"
#include "support/source_dir.hh"
#include "support/test_router.hh"
#include "unit/control/openflow/pipeline_messages.hh"
#include "unit/tables/host_mirror.hh"

namespace headrace::openflow {
namespace {

using namespace samples;
using testing::TestRouter;
using enum FlowCommand;

class CountingSink final : public PacketSink {
 public:
  void send(uint32_t port, Packet* packet) override {
    sent.push_back(port);
    packet->kill();
  }
  uint32_t ports() const override { return 3; }
  bool has_local() const override { return false; }
  void lose(Loss) override { ++lost; }
  std::vector<uint32_t> sent;
  int lost = 0;
};

struct SwitchTest : ::testing::Test, SwitchHost {
  TestRouter workers{"Idle -> Discard;"};
  TemporaryFolder folder;
  int64_t time = 1'000'000'000;
  int device_updates = 0;
  std::map<int, std::function<void()>> watched;
  std::deque<std::function<void()>> posted;
  std::shared_ptr<Switch> under_test;
  int fd = -1;
  Version version = Version::k1_3;

  // SwitchHost
  void packets_wait() override { woken = true; }
  std::vector<SwitchPorts::Ends> ends() const override { return std::vector<SwitchPorts::Ends>(3); }
  SwitchPorts::Ends local_ends() const override { return {}; }
  bool woken = false;

  void start(SwitchOptions options = {}) {
    options.ports = 3;
    options.channel.targets = {{Target::Kind::kUnix, true, "", 0, folder.file("mgmt")}};
    Switch::Place place;
    place.watch = [this](int watched_fd, std::function<void()> ready) {
      if (ready)
        watched[watched_fd] = std::move(ready);
      else
        watched.erase(watched_fd);
    };
    place.update_devices = [this] { ++device_updates; };
    place.post = [this](std::function<void()> action) { posted.push_back(std::move(action)); };
    under_test = std::make_shared<Switch>(0x16, options, std::move(place), [this] { return time; });
    Errors errors;
    auto setup = under_test->prepare(options, errors);
    ASSERT_TRUE(setup) << errors.str();
    under_test->adopt(options, std::move(setup), this);
    greet();
  }
  /// Connects as a controller.
  void greet() {
    if (fd >= 0) close(fd);
    framer_ = Framer();
    fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
    const sockaddr_un address = unix_socket_address(folder.file("mgmt"));
    ASSERT_EQ(connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    send(Hello{{1u << static_cast<unsigned>(version)}});
    EXPECT_EQ(receive().type(), MessageType::kHello);
  }
  void TearDown() override {
    if (fd >= 0) close(fd);
    if (under_test) under_test->leave(this);
  }

  /// One round of the control thread.
  void round() {
    for (; !posted.empty(); posted.pop_front()) posted.front()();
    const auto now = watched;
    for (const auto& [one, ready] : now) {
      pollfd readable{one, POLLIN, 0};
      if (poll(&readable, 1, 0) > 0) ready();
    }
  }
  void rounds(int n = 20) {
    for (int i = 0; i < n; ++i) round();
  }
  void send(Body body, uint32_t xid = 7) {
    Message message;
    message.version = version;
    message.xid = xid;
    message.body = std::move(body);
    std::vector<uint8_t> bytes;
    (void)encode(message, bytes);
    ASSERT_EQ(::send(fd, bytes.data(), bytes.size(), 0), static_cast<ssize_t>(bytes.size()));
  }
  /// Bytes that may be no message.
  void send_bytes(std::span<const uint8_t> bytes) { (void)!::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL); }
  std::optional<Message> next() {
    auto bytes = framer_.next();
    if (bytes.empty()) {
      uint8_t buffer[65536];
      const ssize_t n = recv(fd, buffer, sizeof buffer, 0);
      if (n <= 0) return std::nullopt;
      framer_.add({buffer, static_cast<size_t>(n)});
      bytes = framer_.next();
      if (bytes.empty()) return std::nullopt;
    }
    Message message;
    EXPECT_EQ(decode(bytes, message), ErrorCode::kNone);
    return message;
  }
  Message receive() {
    for (int i = 0; i < 2000; ++i) {
      if (auto message = next()) return *message;
      round();
      if (i > 100) usleep(1000);
    }
    ADD_FAILURE() << "no message";
    return {};
  }
  template <typename T>
  T receive_body() {
    const Message message = receive();
    EXPECT_TRUE(std::holds_alternative<T>(message.body)) << static_cast<int>(message.type());
    return std::holds_alternative<T>(message.body) ? std::get<T>(message.body) : T();
  }
  std::string receive_error() {
    const Error error = receive_body<Error>();
    return error_text(version, error.type, error.code);
  }
  bool nothing_comes() {
    rounds();
    return !next().has_value();
  }

  /// A worker does what the control thread gave it.
  CountingSink work() {
    CountingSink sink;
    Interpreter interpreter(*under_test->datapath(), sink);
    under_test->datapath()->injections().take(100, [&](InjectionQueue::Injection& injection) {
      interpreter.act(injection.packet, injection.in_port, ProgramView(injection.program.data()).apply_actions());
    });
    return sink;
  }
  /// A worker meets a frame that came by port 1.
  CountingSink meet(uint32_t bytes = 60) {
    CountingSink sink;
    Packet* const packet = Packet::make(bytes);
    std::fill_n(packet->data(), bytes, uint8_t{2});
    Interpreter(*under_test->datapath(), sink).process(packet, 1);
    return sink;
  }

 private:
  Framer framer_;
};

TEST_F(SwitchTest, AnswersBarriersWhenReadersHaveLeftTheOldTables) {
  start();
  FlowMod add = flow(kAdd, "in_port=1", 1, {apply({output(2)})});
  add.flags = flow_flag::kSendFlowRemoved;
  send(add);
  send(SetConfig{});
  send(BarrierRequest{}, 8);
  EXPECT_EQ(receive().xid, 8u);
  const int updates = device_updates;
  EXPECT_GT(updates, 0);
  EXPECT_EQ(meet().sent, std::vector<uint32_t>{2});

  auto busy = std::make_unique<rcu::Reader>();  // a worker in the middle of a batch
  send(flow(kDelete, "", 0));
  send(BarrierRequest{}, 9);
  send(FeaturesRequest{}, 10);
  EXPECT_TRUE(nothing_comes());
  EXPECT_GT(device_updates, updates);
  EXPECT_TRUE(meet().sent.empty());  // but others have none of it any more
  busy.reset();
  // First what became of entries, then the answer, then what waited behind it.
  EXPECT_EQ(receive_body<FlowRemoved>().reason, FlowRemovedReason::kDelete);
  EXPECT_EQ(receive().xid, 9u);
  const Message last = receive();
  EXPECT_EQ(last.xid, 10u);
  EXPECT_EQ(std::get<FeaturesReply>(last.body).datapath, 0x16u);
}

TEST_F(SwitchTest, ExpiresEntriesInTime) {
  start();
  send(SetConfig{});
  FlowMod add = flow(kAdd, "in_port=1", 1);
  add.flags = flow_flag::kSendFlowRemoved;
  add.idle_timeout = 2;
  send(add);
  add.match = match_of("in_port=2");
  add.idle_timeout = 0;
  add.hard_timeout = 3;
  send(add);
  send(BarrierRequest{});
  EXPECT_EQ(receive().type(), MessageType::kBarrierReply);
  time += 1'900'000'000;
  (void)meet(100);
  time += 1'200'000'000;  // 3.1 s
  under_test->step();
  FlowRemoved removed = receive_body<FlowRemoved>();
  EXPECT_EQ(removed.reason, FlowRemovedReason::kHardTimeout);
  EXPECT_EQ(removed.duration_s, 3u);
  time += 700'000'000;  // 3.8 s, 1.9 s after the packet
  under_test->step();
  EXPECT_TRUE(nothing_comes());
  time += 150'000'000;
  under_test->step();
  removed = receive_body<FlowRemoved>();
  EXPECT_EQ(removed.reason, FlowRemovedReason::kIdleTimeout);
  EXPECT_EQ(removed.packets, 1u);
  EXPECT_EQ(removed.bytes, 100u);
}

TEST_F(SwitchTest, KeepsPacketsForControllers) {
  SwitchOptions options;
  options.buffers.places = 2;
  start(options);
  send(SetConfig{});
  send(flow(kAdd, "", 0, {apply({output(port::kController, 20)})}));
  send(BarrierRequest{});
  EXPECT_EQ(receive().type(), MessageType::kBarrierReply);
  std::vector<uint32_t> buffers;
  for (int i = 0; i < 3; ++i) {
    (void)meet(60);
    const PacketIn in = receive_body<PacketIn>();
    EXPECT_EQ(in.reason, PacketInReason::kNoMatch);  // the table-miss entry
    EXPECT_EQ(in.total_len, 60);
    EXPECT_EQ(in.data.size(), i < 2 ? 20u : 60u);  // without a buffer all of it
    EXPECT_EQ(in.buffer != kNoBuffer, i < 2);
    buffers.push_back(in.buffer);
  }
  PacketOut out;
  out.buffer = buffers[0];
  out.actions = {output(2), output(3)};
  send(out);
  rounds();
  EXPECT_TRUE(woken);
  EXPECT_EQ(work().sent, (std::vector<uint32_t>{2, 3}));
  send(out);
  EXPECT_EQ(receive_error(), "BAD_REQUEST/BUFFER_EMPTY");
  out.buffer = 12345;
  send(out);
  EXPECT_EQ(receive_error(), "BAD_REQUEST/BUFFER_UNKNOWN");
  // A flow-mod sends the other one through the tables.
  FlowMod add = flow(kAdd, "in_port=1", 5, {apply({output(3)})});
  add.buffer = buffers[1];
  send(add);
  rounds();
  EXPECT_EQ(work().sent, std::vector<uint32_t>{3});
  // In_port and actions must be there, and so must a header.
  out.buffer = kNoBuffer;
  out.data.assign(60, 0);
  out.in_port = 4;
  send(out);
  EXPECT_EQ(receive_error(), "BAD_REQUEST/BAD_PORT");
  out.in_port = port::kController;
  out.actions = {output(4)};
  send(out);
  EXPECT_EQ(receive_error(), "BAD_ACTION/BAD_OUT_PORT");
  out.actions = {output(port::kTable)};
  out.actions = {output(port::kController, 30)};  // an answer of a kind
  send(out);
  rounds();
  (void)work();
  const PacketIn back = receive_body<PacketIn>();
  EXPECT_EQ(back.reason, PacketInReason::kAction);
  EXPECT_EQ(back.total_len, 60);
  out.actions = {output(port::kTable)};
  out.data.resize(13);
  send(out);
  EXPECT_EQ(receive_error(), "BAD_REQUEST/BAD_PACKET");
}

TEST_F(SwitchTest, BarriersWaitForPacketOuts) {
  start();
  PacketOut out;
  out.data.assign(60, 0);
  out.actions = {output(1)};
  send(out);
  send(BarrierRequest{});
  EXPECT_TRUE(nothing_comes());
  EXPECT_EQ(work().sent, std::vector<uint32_t>{1});
  EXPECT_EQ(receive().type(), MessageType::kBarrierReply);
  // The queue is bounded, and what does not fit is counted.
  for (uint32_t i = 0; i < InjectionQueue::kMost + 5; ++i) {
    send(out);
    round();
  }
  rounds();
  EXPECT_NE(under_test->describe_counters().find("packet-outs lost: 5\n"), std::string::npos);
  for (int i = 0; i < 11; ++i) (void)work();
}

TEST_F(SwitchTest, SendsManyEntriesInParts) {
  start();
  constexpr uint32_t kEntries = 20000;
  for (uint32_t i = 0; i < kEntries; ++i) {
    send(flow(
        kAdd,
        "ip,nw_dst=10." + std::to_string(i >> 16) + "." + std::to_string(i >> 8 & 255) + "." + std::to_string(i & 255),
        1));
    if (i % 64 == 0) round();
  }
  send(BarrierRequest{});
  EXPECT_EQ(receive().type(), MessageType::kBarrierReply);
  MultipartRequest all;
  all.body = FlowRequest<MultipartType::kFlow>();
  send(all, 30);
  send(BarrierRequest{}, 31);
  // While nobody reads, little waits.
  rounds(200);
  const std::string connections = under_test->describe_controllers();
  const size_t at = connections.find(" bytes unsent");
  ASSERT_NE(at, std::string::npos);
  EXPECT_LT(std::stoul(connections.substr(connections.rfind(' ', at - 1))), 512u << 10);
  size_t entries = 0;
  for (Message part = receive(); part.xid == 30; part = receive()) {
    const auto& reply = std::get<MultipartReply>(part.body);
    entries += std::get<std::vector<FlowStats>>(reply.body).size();
    EXPECT_EQ(reply.flags != 0, entries < kEntries);
  }
  EXPECT_EQ(entries, kEntries);
}

/// A sum over many entries lets others have their turns.
TEST_F(SwitchTest, AnswersOthersWhileItSums) {
  SwitchOptions options;
  options.flows.resize(OpenFlowPipeline::kMostLookedAt + 1);
  for (uint32_t i = 0; i < options.flows.size(); ++i) {
    FlowMod& mod = options.flows[i].mod = flow(kAdd, "", 1);
    mod.match.key.value[key_word::kIp4Dst] = i;
    mod.match.key.mask[key_word::kIp4Dst] = ~0u;
  }
  start(options);
  for (const bool tables : {false, true}) {
    MultipartRequest request;
    if (tables)
      request.body = EmptyRequest<MultipartType::kTable>();
    else
      request.body = FlowRequest<MultipartType::kAggregate>();
    send(request, 1);
    send(BarrierRequest{}, 2);
    send(EchoRequest{}, 3);
    EXPECT_EQ(receive().xid, 3u);
    const Message sum = receive();
    EXPECT_EQ(sum.xid, 1u);
    const ReplyBody& body = std::get<MultipartReply>(sum.body).body;
    EXPECT_EQ(tables ? std::get<std::vector<TableStats>>(body)[0].active : std::get<AggregateStats>(body).flows,
              OpenFlowPipeline::kMostLookedAt + 1);
    EXPECT_EQ(receive().xid, 2u);
  }
}

/// A controller that changes many entries, groups or meters with one message, and another one.
struct ManyEntriesTest : SwitchTest {
  static constexpr uint32_t kPieces = 16, kEntries = kPieces * OpenFlowPipeline::kPiece;
  static constexpr uint32_t kGroup = 1, kMeter = 1;

  OpenFlowPipeline& pipeline() { return under_test->datapath()->pipeline(); }
  /// The first controller is `fd`.
  void start_with(std::vector<Instruction> instructions) {
    start();
    other = std::exchange(fd, -1);
    greet();
    std::swap(fd, other);
    const std::lock_guard guard(under_test->datapath()->lock());
    ASSERT_EQ(pipeline().group_mod(change_group(GroupCommand::kAdd, kGroup, GroupType::kIndirect, {{output(2)}}), time),
              ErrorCode::kNone);
    ASSERT_EQ(pipeline().meter_mod(change_meter(MeterCommand::kAdd, kMeter), time), ErrorCode::kNone);
    FlowMod mod = flow(kAdd, "", 1, std::move(instructions));
    for (uint32_t i = 0; i < kEntries; ++i) {
      mod.match.key.value[key_word::kIp4Dst] = i;
      mod.match.key.mask[key_word::kIp4Dst] = ~0u;
      ASSERT_EQ(pipeline().flow_mod(mod, Version::k1_3, time), ErrorCode::kNone);
    }
  }
  uint32_t users_of_group() { return pipeline().group_stats(kGroup, time).at(0).references; }
  /// Sends the message and a barrier, and asks the other connection for echoes until the barrier is answered. `left` says how
  /// many entries are to change.
  void change_beside_echoes(Body change, const std::function<uint32_t()>& left) {
    // What is ready at once in a round, each with a step behind it: the channel, and the timer.
    constexpr uint32_t kMostPieces = 2;
    send(std::move(change));
    send(BarrierRequest{}, 2);
    uint32_t echoes = 0, most = 0;
    for (uint32_t before = kEntries; before > 0; ++echoes) {
      std::swap(fd, other);
      send(EchoRequest{}, echoes);
      round();
      const std::optional<Message> echo = next();
      std::swap(fd, other);
      ASSERT_TRUE(echo) << "no echo after one round, " << left() << " entries are left";
      EXPECT_EQ(echo->type(), MessageType::kEchoReply);
      EXPECT_EQ(echo->xid, echoes);
      most = std::max(most, before - left());
      before = left();
      if (before > 0) {
        ASSERT_FALSE(next()) << "answered with " << before << " entries left";
      }
      ASSERT_LT(echoes, 100 * kPieces);
    }
    EXPECT_LE(most, kMostPieces * OpenFlowPipeline::kPiece);
    EXPECT_GE(echoes, kPieces / kMostPieces);
    EXPECT_EQ(receive().xid, 2u);
  }
  void TearDown() override {
    if (other >= 0) close(other);
    SwitchTest::TearDown();
  }
  int other = -1;
};

TEST_F(ManyEntriesTest, AnswersOthersWhileItDeletes) {
  start_with({apply({output(2)})});
  change_beside_echoes(flow(kDelete, "", 0), [this] { return static_cast<uint32_t>(pipeline().size()); });
}

TEST_F(ManyEntriesTest, AnswersOthersWhileItDeletesTheirGroup) {
  start_with({apply({to_group(kGroup)})});
  change_beside_echoes(change_group(GroupCommand::kDelete, kGroup),
                       [this] { return static_cast<uint32_t>(pipeline().size()); });
  EXPECT_TRUE(pipeline().group_stats(kGroup, time).empty());
}

TEST_F(ManyEntriesTest, AnswersOthersWhileItDeletesTheirMeter) {
  start_with({through_meter(kMeter), apply({output(2)})});
  change_beside_echoes(change_meter(MeterCommand::kDelete, Meters::kAll),
                       [this] { return static_cast<uint32_t>(pipeline().size()); });
  std::vector<MeterStats> stats;
  EXPECT_EQ(pipeline().meter_stats(kMeter, time, stats), ErrorCode::kMeterModUnknownMeter);
}

TEST_F(ManyEntriesTest, AnswersOthersWhileItModifies) {
  start_with({apply({output(2)})});
  change_beside_echoes(flow(kModify, "", 0, {apply({to_group(kGroup)})}),
                       [this] { return kEntries - users_of_group(); });
  EXPECT_EQ(pipeline().size(), kEntries);
}

/// What others want of a group that goes happens as if it had gone, or when it has.
TEST_F(ManyEntriesTest, OthersMeetNoGroupThatGoes) {
  start_with({apply({to_group(kGroup)})});
  send(change_group(GroupCommand::kDelete, kGroup));
  send(BarrierRequest{}, 2);
  round();
  ASSERT_GT(pipeline().size(), 0u);
  std::swap(fd, other);
  send(flow(kAdd, "in_port=2", 9, {apply({to_group(kGroup)})}));
  PacketOut out;
  out.data.assign(60, 0);
  out.actions = {to_group(kGroup)};
  send(out);
  send(flow(kAdd, "in_port=2", 9, {apply({output(3)})}));
  send(BarrierRequest{}, 3);
  send(change_group(GroupCommand::kAdd, kGroup, GroupType::kIndirect, {{output(3)}}), 4);
  send(flow(kAdd, "in_port=3", 9, {apply({to_group(kGroup)})}));
  send(BarrierRequest{}, 5);
  EXPECT_EQ(receive_error(), "BAD_ACTION/BAD_OUT_GROUP");
  EXPECT_EQ(receive_error(), "BAD_ACTION/BAD_OUT_GROUP");
  EXPECT_EQ(receive().xid, 3u);  // an entry waits for no change of many
  ASSERT_GT(pipeline().size(), 1u) << "the group has gone too early to say something";
  std::swap(fd, other);
  EXPECT_EQ(receive().xid, 2u);
  std::swap(fd, other);
  EXPECT_EQ(receive().xid, 5u);
  EXPECT_EQ(users_of_group(), 1u);
  EXPECT_EQ(pipeline().size(), 2u);
}

/// A group that a modification names goes when that is over, with all its entries; and modifications behind wait for that.
TEST_F(ManyEntriesTest, AGroupGoesBehindAModificationThatNamesIt) {
  start_with({apply({output(2)})});
  send(flow(kModify, "", 0, {apply({to_group(kGroup)})}));
  send(BarrierRequest{}, 2);
  round();
  ASSERT_LT(users_of_group(), kEntries);
  std::swap(fd, other);
  send(change_group(GroupCommand::kDelete, kGroup));
  send(flow(kModify, "", 0, {apply({output(3)})}));
  send(BarrierRequest{}, 3);
  ASSERT_LT(users_of_group(), kEntries) << "the modification is over too early to say something";
  EXPECT_EQ(receive().xid, 3u);
  EXPECT_EQ(pipeline().size(), 0u);
  std::swap(fd, other);
  EXPECT_EQ(receive().xid, 2u);
}

/// A buffered packet goes through the tables when all entries have changed.
TEST_F(ManyEntriesTest, APacketWaitsForAModification) {
  start_with({apply({output(2)})});
  send(SetConfig{});
  send(flow(kAdd, "in_port=1", 5, {apply({output(port::kController, 20)})}));
  send(BarrierRequest{});
  EXPECT_EQ(receive().type(), MessageType::kBarrierReply);
  (void)meet(60);
  FlowMod mod = flow(kModify, "", 0, {apply({to_group(kGroup)})});
  mod.buffer = receive_body<PacketIn>().buffer;
  ASSERT_NE(mod.buffer, kNoBuffer);
  send(mod);
  for (bool there = false; !there; round()) {
    const bool all = users_of_group() == kEntries + 1;
    there = !under_test->datapath()->injections().empty();
    EXPECT_EQ(there, there && all);
  }
  EXPECT_EQ(work().sent, std::vector<uint32_t>{2});
  send(mod);
  EXPECT_EQ(receive_error(), "BAD_REQUEST/BUFFER_EMPTY");
  EXPECT_EQ(users_of_group(), kEntries + 1);
}

/// Of packets that no entry matches only controllers of 1.0 hear.
TEST_F(SwitchTest, TellsOfMissesByVersion) {
  start();
  send(SetConfig{});
  rounds();
  EXPECT_EQ(meet().lost, 1);
  EXPECT_TRUE(nothing_comes());
  const int of_1_3 = std::exchange(fd, -1);
  version = Version::k1_0;
  greet();
  send(SetConfig{});
  rounds();
  EXPECT_EQ(meet().lost, 0);
  const PacketIn in = receive_body<PacketIn>();
  EXPECT_EQ(in.reason, PacketInReason::kNoMatch);
  EXPECT_EQ(in.total_len, 60);
  uint8_t byte;
  EXPECT_LT(recv(of_1_3, &byte, 1, 0), 0);
  close(of_1_3);
}

/// An entry for misses is one in 1.3 only: in 1.0 its action sends the packet.
TEST_F(SwitchTest, TellsOfMissEntriesByVersion) {
  start();
  send(flow(kAdd, "", 0, {apply({output(port::kController)})}));
  send(SetConfig{});
  rounds();
  EXPECT_EQ(meet().lost, 0);
  EXPECT_EQ(receive_body<PacketIn>().reason, PacketInReason::kNoMatch);
  int other = std::exchange(fd, -1);
  version = Version::k1_0;
  greet();
  send(SetConfig{});
  rounds();
  EXPECT_EQ(meet().lost, 0);
  EXPECT_EQ(receive_body<PacketIn>().reason, PacketInReason::kAction);
  std::swap(fd, other);
  EXPECT_EQ(receive_body<PacketIn>().reason, PacketInReason::kNoMatch);
  close(other);
}

/// Whoever copies the tables for a device waits for the control thread, which may be waiting for readers.
TEST_F(SwitchTest, ReadersThatWaitForTheTablesAreNone) {
  start();
  std::atomic<bool> reads{false}, locked{false};
  std::thread worker([&] {
    const rcu::Reader reader;
    reads = true;
    while (!locked) std::this_thread::yield();
    HostMirror mirror;
    (void)under_test->datapath()->mirror(mirror);
  });
  while (!reads) std::this_thread::yield();
  {
    const std::lock_guard guard(under_test->datapath()->lock());
    locked = true;
    rcu::synchronize();
  }
  worker.join();
}

/// Damaged messages between right ones, with packets: whatever becomes of them, the switch answers.
TEST_F(SwitchTest, SurvivesDamagedMessages) {
  if (!std::filesystem::is_directory(kSourceDir)) GTEST_SKIP() << "the source tree is not on this machine";
  std::mt19937 random(42);
  for (const Version spoken : {Version::k1_3, Version::k1_0}) {
    std::vector<Bytes> messages;
    for (const char* name : {"samples_1", "ovs_ofctl_1"}) {
      Framer whole;
      whole.add(read_file(std::filesystem::path(kSourceDir) / "tests/data/openflow" /
                          (name + std::string(spoken == Version::k1_0 ? "0.bin" : "3.bin"))));
      for (auto one = whole.next(); !one.empty(); one = whole.next()) messages.emplace_back(one.begin(), one.end());
    }
    ASSERT_GT(messages.size(), 30u);
    version = spoken;
    if (under_test) {
      greet();
    } else {
      start();
    }
    int answered = 0;
    for (int i = 0; i < 1500; ++i) {
      Bytes message = messages[random() % messages.size()];
      for (int n = static_cast<int>(random() % 4); n > 0 && message.size() > kHeaderBytes; --n)
        message[kHeaderBytes + random() % (message.size() - kHeaderBytes)] = static_cast<uint8_t>(random());
      send_bytes(message);
      time += 1'000'000;
      round();
      if (i % 4 == 0) (void)meet(14 + static_cast<uint32_t>(random() % 90));
      (void)work();
      if (i % 50 != 0) continue;
      // A role or a hello may have ended it.
      send_bytes(std::array<uint8_t, 8>{static_cast<uint8_t>(spoken), 2, 0, 8, 0, 0, 0, 99});
      bool there = false;
      for (int k = 0; k < 200 && !there; ++k) {
        round();
        (void)work();
        for (auto one = next(); one && !there; one = next())
          there = one->type() == MessageType::kEchoReply && one->xid == 99;
      }
      answered += there ? 1 : 0;
      if (!there) greet();
    }
    EXPECT_GT(answered, 15);
  }
  greet();
  send(BarrierRequest{}, 77);
  while (receive().xid != 77) (void)work();
}

TEST_F(SwitchTest, TellsWhatItIs) {
  start();
  const auto ask = [this](RequestBody body) {
    MultipartRequest request;
    request.body = std::move(body);
    send(request);
    return receive_body<MultipartReply>().body;
  };
  EXPECT_EQ(std::get<std::vector<Port>>(ask(EmptyRequest<MultipartType::kPortDesc>())).size(), 3u);
  EXPECT_EQ(std::get<std::vector<PortStats>>(ask(PortStatsRequest())).size(), 3u);
  EXPECT_EQ(std::get<std::vector<TableStats>>(ask(EmptyRequest<MultipartType::kTable>())).size(), 255u);
  EXPECT_TRUE(std::get<std::vector<QueueStats>>(ask(QueueStatsRequest())).empty());
  EXPECT_EQ(std::get<MeterFeatures>(ask(EmptyRequest<MultipartType::kMeterFeatures>())), Meters::features());
  EXPECT_EQ(std::get<GroupFeatures>(ask(EmptyRequest<MultipartType::kGroupFeatures>())), Groups::features());
  const auto refused = [this](Body body) {
    send(std::move(body));
    return receive_error();
  };
  MultipartRequest request;
  request.body = PortStatsRequest{9};
  EXPECT_EQ(refused(request), "BAD_REQUEST/BAD_PORT");
  request.body = QueueStatsRequest{1, 2};
  EXPECT_EQ(refused(request), "QUEUE_OP_FAILED/BAD_QUEUE");
  request.body = NumberRequest<MultipartType::kMeter>{5};
  EXPECT_EQ(refused(request), "METER_MOD_FAILED/UNKNOWN_METER");
  EXPECT_EQ(refused(QueueGetConfigRequest{9}), "QUEUE_OP_FAILED/BAD_PORT");
  SetConfig reassemble;
  reassemble.flags = 2;
  EXPECT_EQ(refused(reassemble), "SWITCH_CONFIG_FAILED/BAD_FLAGS");
  PortMod mod;
  mod.port = 9;
  EXPECT_EQ(refused(mod), "PORT_MOD_FAILED/BAD_PORT");
  TableMod table;
  table.table = 3;
  table.config = 9;
  EXPECT_EQ(refused(table), "TABLE_MOD_FAILED/BAD_CONFIG");
  SetConfig drop;
  drop.flags = 1;
  drop.miss_send_len = 77;
  send(drop);
  send(GetConfigRequest{});
  const auto config = receive_body<GetConfigReply>();
  EXPECT_EQ(config.flags, 1);
  EXPECT_EQ(config.miss_send_len, 77);
  EXPECT_TRUE(under_test->datapath()->drops_fragments());
}

}  // namespace
}  // namespace headrace::openflow
