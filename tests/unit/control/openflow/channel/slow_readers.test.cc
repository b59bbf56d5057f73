/// Controllers that do not read what they get.

#include <gtest/gtest.h>

#include "support/openflow_channel.hh"

namespace headrace::openflow {
namespace {

struct SlowReader : testing::Test {
  void start() {
    under_test = std::make_unique<ChannelUnderTest>(true);
    options.targets = {{Target::Kind::kUnix, true, "", 0, file}};
    under_test->start(options);
    controller = std::make_unique<TestController>(*under_test, file);
    controller->greet();
    controller->send(2, SetConfig{{0, 128}});  // asks for packet-ins
    under_test->settle();
  }
  Connection& connection() { return *under_test->channel.find(under_test->handler.connected.at(0)); }
  static PacketIn packet_in(size_t size) {
    PacketIn packet;
    packet.total_len = static_cast<uint16_t>(size);
    packet.data.resize(size);
    return packet;
  }

  TemporaryFolder folder;
  const std::string file = folder.file("s");
  Options options;
  std::unique_ptr<ChannelUnderTest> under_test;
  std::unique_ptr<TestController> controller;
};

using OpenFlowSlowReader = SlowReader;

TEST_F(OpenFlowSlowReader, PacketInsAreDroppedAndCounted) {
  start();
  constexpr uint64_t kSent = 4000;
  for (uint64_t i = 0; i < kSent; ++i) {
    under_test->channel.packet_in(packet_in(1500), false);
    if (i % 100 == 0) under_test->channel.run();
    EXPECT_LT(connection().unsent(), options.limits.unsent + 2000);
  }
  const ConnectionCounters counters = under_test->channel.counters();
  EXPECT_EQ(counters.packet_ins + counters.packet_ins_dropped, kSent);
  EXPECT_GT(counters.packet_ins_dropped, kSent / 2);
  // Port status is not dropped.
  under_test->channel.port_status(PortStatus{});
  uint64_t received = 0;
  for (;;) {
    const Message message = controller->receive();
    if (std::holds_alternative<PortStatus>(message.body)) break;
    ASSERT_TRUE(std::holds_alternative<PacketIn>(message.body));
    ++received;
  }
  EXPECT_EQ(received, counters.packet_ins);
  // It goes on as before.
  under_test->channel.packet_in(packet_in(60), false);
  EXPECT_EQ(controller->receive_body<PacketIn>().data.size(), 60u);
}

TEST_F(OpenFlowSlowReader, IsGivenUpInTheEnd) {
  start();
  for (int i = 0; i < 2000; ++i) under_test->channel.packet_in(packet_in(1500), false);
  under_test->settle();
  under_test->pass(5 * kSecond);
  under_test->pass(5 * kSecond - kSecond / 2);
  EXPECT_TRUE(under_test->handler.disconnected.empty());
  under_test->pass(kSecond / 2);
  EXPECT_EQ(under_test->handler.disconnected.size(), 1u);
  EXPECT_NE(under_test->log.find("disconnected: the controller reads nothing: "), std::string::npos) << under_test->log;
}

TEST_F(OpenFlowSlowReader, OtherEventsAreBoundedToo) {
  options.limits.unsent_events = 2u << 20;
  start();
  for (int i = 0; i < 100000 && under_test->handler.disconnected.empty(); ++i) {
    under_test->channel.port_status(PortStatus{});
    if (i % 1000 == 0) under_test->channel.run();
    const Connection* const left = under_test->channel.find(under_test->handler.connected.at(0));
    EXPECT_TRUE(left == nullptr || left->unsent() <= (2u << 20) + 100);
  }
  EXPECT_EQ(under_test->handler.disconnected.size(), 1u);
  EXPECT_NE(under_test->log.find("disconnected: the controller reads nothing: "), std::string::npos) << under_test->log;
}

TEST_F(OpenFlowSlowReader, RequestsWaitUntilAnswersAreRead) {
  start();
  under_test->handler.flows = 2000;  // 112 KB
  constexpr uint32_t kRequests = 60;
  Bytes requests;
  for (uint32_t xid = 100; xid < 100 + kRequests; ++xid) {
    Message message;
    message.xid = xid;
    message.body = MultipartRequest{0, FlowRequest<MultipartType::kFlow>{}};
    EXPECT_TRUE(encode(message, requests));
  }
  controller->send(requests);
  under_test->settle();
  EXPECT_LT(under_test->handler.seen.size(), 50u);
  EXPECT_LT(connection().unsent(), options.limits.unsent + 200000);
  // Another controller does not notice.
  TestController other(*under_test, file);
  other.greet();
  other.send(5, FeaturesRequest{});
  EXPECT_EQ(other.receive().xid, 5u);
  for (uint32_t xid = 100; xid < 100 + kRequests;) {
    const Message message = controller->receive();
    ASSERT_EQ(message.xid, xid);
    if ((std::get<MultipartReply>(message.body).flags & multipart_flag::kMore) == 0) ++xid;
  }
}

TEST_F(OpenFlowSlowReader, ManyRequestsAreHandledInTurns) {
  start();
  // More than the channel may hold: its file descriptor is not read from, and nothing is lost.
  under_test->handler.late_barriers = true;
  controller->send(9, BarrierRequest{});
  under_test->settle();
  Bytes echo;
  Message message;
  message.body = FlowMod{};
  for (int i = 0; i < 100; ++i) EXPECT_TRUE(encode(message, echo));
  size_t sent = 0;
  for (int idle = 0; idle < 20;) {
    const size_t n = controller->try_send(std::span(echo).subspan(sent % echo.size()));
    sent += n;
    idle = n == 0 ? idle + 1 : 0;
    under_test->settle();
    ASSERT_LT(sent, 8u << 20);
  }
  EXPECT_GT(sent, options.limits.waiting);
  EXPECT_EQ(under_test->handler.seen.size(), 2u);
  under_test->handler.answer_barriers(under_test->channel);
  const size_t whole = sent / (echo.size() / 100);
  EXPECT_TRUE(under_test->run_until([&] { return under_test->handler.seen.size() == 2 + whole; }));
}

TEST_F(OpenFlowSlowReader, EchoesWithoutReadingAreBounded) {
  start();
  Bytes echo;
  Message message;
  message.body = EchoRequest{Bytes(1000, 1)};
  for (int i = 0; i < 100; ++i) EXPECT_TRUE(encode(message, echo));
  size_t sent = 0;
  for (int idle = 0; idle < 20;) {
    const size_t n = controller->try_send(std::span(echo).subspan(sent % echo.size()));
    sent += n;
    idle = n == 0 ? idle + 1 : 0;
    under_test->settle();
    ASSERT_LT(sent, 8u << 20);
  }
  EXPECT_LT(connection().unsent(), options.limits.unsent + 200000);
  for (size_t i = 0; i < sent / (echo.size() / 100); ++i)
    EXPECT_EQ(controller->receive_body<EchoReply>().data.size(), 1000u);
}

}  // namespace
}  // namespace headrace::openflow
