/// Connections over real sockets, with a controller made of bytes.

#include <gtest/gtest.h>

#include <random>

#include "support/openflow_channel.hh"

namespace headrace::openflow {
namespace {

/// A switch that listens at a file.
struct Listening : testing::Test {
  void start() {
    under_test = std::make_unique<ChannelUnderTest>(true);
    options.targets = {{Target::Kind::kUnix, true, "", 0, file}};
    under_test->start(options);
  }
  TestSwitch& handler() { return under_test->handler; }

  TemporaryFolder folder;
  const std::string file = folder.file("s");
  Options options;
  std::unique_ptr<ChannelUnderTest> under_test;
};

using OpenFlowConnection = Listening;

TEST_F(OpenFlowConnection, NegotiatesOrRefuses) {
  for (const Versions ours : {Versions{true, false}, Versions{false, true}, Versions{true, true}}) {
    options.versions = ours;
    start();
    for (uint8_t header = 1; header <= 6; ++header)
      for (const std::optional<uint32_t> bitmap : {std::optional<uint32_t>(), {0x02}, {0x10}, {0x12}, {0x2c}}) {
        Message hello;
        hello.version = header < 4 ? Version::k1_0 : Version::k1_3;
        if (header != 1 && header != 4) hello.hello_version = header;
        if (bitmap) hello.body = Hello{{*bitmap}};
        const std::optional<Version> expected = negotiate(ours, hello);
        TestController controller(*under_test, file);
        controller.send(hello);
        const Message theirs = controller.receive();
        EXPECT_EQ(theirs.version, ours.highest());
        EXPECT_EQ(std::get<Hello>(theirs.body).versions, std::vector<uint32_t>{ours.bitmap()});
        if (expected) {
          controller.version = *expected;
          controller.send(7, FeaturesRequest{});
          const Message features = controller.receive();
          EXPECT_EQ(features.version, *expected);
          EXPECT_EQ(features.xid, 7u);
        } else {
          const Message error = controller.receive();
          EXPECT_EQ(error_text(error.version, std::get<Error>(error.body).type, std::get<Error>(error.body).code),
                    "HELLO_FAILED/INCOMPATIBLE");
          const auto& data = std::get<Error>(error.body).data;
          EXPECT_EQ(std::string(data.begin(), data.end()), incompatible(ours, hello));
          EXPECT_TRUE(controller.wait_closed());
        }
      }
  }
}

TEST_F(OpenFlowConnection, WhoSpeaksSomethingElseIsToldAtOnce) {
  start();
  TestController browser(*under_test, file);
  const std::string request = "GET / HTTP/1.1\r\n";
  browser.send({reinterpret_cast<const uint8_t*>(request.data()), request.size()});
  EXPECT_TRUE(std::holds_alternative<Hello>(browser.receive().body));
  EXPECT_EQ(browser.receive_error(), "HELLO_FAILED/INCOMPATIBLE");
  EXPECT_TRUE(browser.wait_closed());

  TestController hasty(*under_test, file);
  hasty.send(1, FeaturesRequest{});
  EXPECT_TRUE(std::holds_alternative<Hello>(hasty.receive().body));
  EXPECT_EQ(hasty.receive_error(), "HELLO_FAILED/INCOMPATIBLE");
  EXPECT_TRUE(hasty.wait_closed());

  // Errors are not answered.
  TestController refusing(*under_test, file);
  refusing.send(error_message(ErrorCode::kHelloIncompatible, Version::k1_3, 1, {'n', 'o'}));
  EXPECT_TRUE(std::holds_alternative<Hello>(refusing.receive().body));
  EXPECT_TRUE(refusing.wait_closed());
  EXPECT_NE(under_test->log.find("the controller refuses: HELLO_FAILED/INCOMPATIBLE: no\n"), std::string::npos)
      << under_test->log;
  EXPECT_TRUE(handler().seen.empty());
  EXPECT_TRUE(handler().connected.empty());
}

TEST_F(OpenFlowConnection, ByteByByte) {
  start();
  TestController controller(*under_test, file);
  Bytes stream;
  for (const Body& body :
       std::vector<Body>{Hello{{0x10}}, EchoRequest{{1, 2, 3}}, FeaturesRequest{}, FlowMod{}, BarrierRequest{}}) {
    Message message;
    message.xid = static_cast<uint32_t>(body.index());
    message.body = body;
    EXPECT_TRUE(encode(message, stream));
  }
  for (const uint8_t byte : stream) {
    controller.send({&byte, 1});
    under_test->channel.run();
  }
  EXPECT_TRUE(std::holds_alternative<Hello>(controller.receive().body));
  EXPECT_EQ(controller.receive_body<EchoReply>().data, (Bytes{1, 2, 3}));
  EXPECT_EQ(controller.receive_body<FeaturesReply>().datapath, 0x1234u);
  EXPECT_TRUE(std::holds_alternative<BarrierReply>(controller.receive().body));
  ASSERT_EQ(handler().seen.size(), 3u);
  EXPECT_TRUE(std::holds_alternative<FlowMod>(handler().seen[1].body));
}

TEST_F(OpenFlowConnection, GarbageNeverHarms) {
  options.limits.clients = 1000;
  start();
  std::mt19937 random(7);
  for (int round = 0; round < 100; ++round) {
    TestController controller(*under_test, file);
    const bool greeted = round % 2 == 0;
    if (greeted) controller.greet(round % 4 == 0 ? Version::k1_3 : Version::k1_0);
    Bytes bytes(1 + random() % 300);
    for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(random());
    if (greeted) {  // headers that lead further
      bytes.resize(std::max<size_t>(bytes.size(), 8));
      bytes[0] = static_cast<uint8_t>(controller.version);
      bytes[1] %= 32;
      bytes[2] = 0;
    }
    controller.send(bytes);
    under_test->settle();
    controller.hang_up();
  }
  TestController controller(*under_test, file);
  controller.greet();
  controller.send(5, FeaturesRequest{});
  EXPECT_EQ(controller.receive_body<FeaturesReply>().datapath, 0x1234u);
}

TEST_F(OpenFlowConnection, EveryMessageThatIsNotARequestHasItsError) {
  start();
  TestController controller(*under_test, file);
  controller.greet();
  controller.send(2, FeaturesReply{});
  EXPECT_EQ(controller.receive_error(), "BAD_REQUEST/BAD_TYPE");
  controller.send(from_hex("04 63 0008 00000003"));
  const Message unknown = controller.receive();
  EXPECT_EQ(unknown.xid, 3u);
  EXPECT_EQ(std::get<Error>(unknown.body).data, from_hex("04 63 0008 00000003"));
  controller.send(from_hex("01 05 0008 00000004"));  // 1.0 on a connection that speaks 1.3
  EXPECT_EQ(controller.receive_error(), "BAD_REQUEST/BAD_VERSION");
  controller.send(5, Experimenter{0x00abcdef, 1, {}});
  EXPECT_EQ(controller.receive_error(), "BAD_REQUEST/BAD_EXPERIMENTER");
  controller.send(from_hex("04 05 0009 00000006 00"));  // a features request that is too long
  EXPECT_EQ(controller.receive_error(), "BAD_REQUEST/BAD_LEN");
  // Neither answered nor harmful.
  controller.send(error_message(ErrorCode::kRequestBadType, Version::k1_3, 7, {}));
  controller.send(8, Hello{});
  controller.send(9, EchoReply{{1}});
  EXPECT_FALSE(controller.receive_if_any().has_value());
  // The stream cannot be understood any more.
  controller.send(from_hex("04 05 0007 0000000a 00"));
  EXPECT_EQ(controller.receive_error(), "BAD_REQUEST/BAD_LEN");
  EXPECT_TRUE(controller.wait_closed());
  EXPECT_TRUE(handler().seen.empty());
  EXPECT_EQ(under_test->channel.counters().errors, 6u);

  TestController old(*under_test, file);
  old.greet(Version::k1_0);
  old.send(from_hex("01 04 000c 0000000b 00000001"));
  EXPECT_EQ(old.receive_error(), "BAD_REQUEST/BAD_VENDOR");
  old.send(from_hex("01 04 0010 0000000c 00002320 00000001"));
  EXPECT_EQ(old.receive_error(), "BAD_REQUEST/BAD_SUBTYPE");
}

TEST_F(OpenFlowConnection, NothingPassesABarrierButEchoes) {
  start();
  handler().late_barriers = true;
  TestController controller(*under_test, file), other(*under_test, file);
  controller.greet();
  other.greet();
  controller.send(2, BarrierRequest{});
  controller.send(3, FeaturesRequest{});
  controller.send(4, EchoRequest{{9}});
  EXPECT_EQ(controller.receive_body<EchoReply>().data, Bytes{9});
  EXPECT_FALSE(controller.receive_if_any().has_value());
  EXPECT_EQ(handler().seen.size(), 1u);
  other.send(5, FeaturesRequest{});
  EXPECT_EQ(other.receive().xid, 5u);
  handler().answer_barriers(under_test->channel);
  EXPECT_TRUE(std::holds_alternative<BarrierReply>(controller.receive().body));
  EXPECT_EQ(controller.receive().xid, 3u);
  // A controller that has left is owed nothing.
  controller.send(6, BarrierRequest{});
  under_test->settle();
  controller.hang_up();
  under_test->settle();
  handler().answer_barriers(under_test->channel);
  under_test->settle();
  EXPECT_TRUE(handler().owed.empty());
}

TEST_F(OpenFlowConnection, RequestsOfOneThatHasLeftAreStillCarriedOut) {
  start();
  TestController controller(*under_test, file);
  controller.greet();
  Bytes bytes;
  Message mod;
  mod.body = FlowMod{};
  for (int i = 0; i < 1000; ++i) EXPECT_TRUE(encode(mod, bytes));
  EXPECT_EQ(controller.try_send(bytes), bytes.size());
  controller.hang_up();
  EXPECT_TRUE(under_test->run_until([&] { return handler().disconnected.size() == 1; }));
  EXPECT_EQ(handler().seen.size(), 1000u);
  EXPECT_EQ(handler().connected, handler().disconnected);
  EXPECT_NE(under_test->log.find("disconnected: closed by the controller\n"), std::string::npos) << under_test->log;
}

TEST_F(OpenFlowConnection, SilenceIsProbedAndEnds) {
  start();
  TestController mute(*under_test, file);
  under_test->settle();
  under_test->pass(5 * kSecond);
  EXPECT_TRUE(mute.wait_closed());
  EXPECT_NE(under_test->log.find("no connection: no hello within 5 s\n"), std::string::npos) << under_test->log;

  TestController half(*under_test, file);
  half.greet();
  half.send(from_hex("04 0e 0048 00000005"));  // of 72 bytes
  under_test->pass(4 * kSecond);
  EXPECT_FALSE(half.receive_if_any().has_value());
  under_test->pass(kSecond);
  const Message probe = half.receive();
  EXPECT_TRUE(std::holds_alternative<EchoRequest>(probe.body));
  under_test->pass(4 * kSecond);
  EXPECT_FALSE(half.closed);
  // Any sign of life will do.
  half.send(from_hex("0000"));
  under_test->settle();
  under_test->pass(4 * kSecond);
  EXPECT_FALSE(half.receive_if_any().has_value());
  under_test->pass(kSecond);
  EXPECT_TRUE(std::holds_alternative<EchoRequest>(half.receive().body));
  under_test->pass(5 * kSecond);
  EXPECT_TRUE(half.wait_closed());
  EXPECT_NE(under_test->log.find("disconnected: no answer to an echo request within 5 s\n"), std::string::npos)
      << under_test->log;
  EXPECT_TRUE(handler().seen.empty());
}

TEST_F(OpenFlowConnection, WithoutProbesSilenceIsNoReason) {
  options.probe = 0;
  start();
  TestController controller(*under_test, file);
  controller.greet();
  under_test->pass(1000 * kSecond);
  EXPECT_FALSE(controller.receive_if_any().has_value());
  EXPECT_FALSE(controller.closed);
}

TEST_F(OpenFlowConnection, PartsOfARequestAreJoined) {
  options.limits.part_elements = 3;
  options.limits.part_requests = 2;
  start();
  TestController controller(*under_test, file);
  controller.greet();
  const auto part = [&](uint32_t xid, uint8_t table, bool more) {
    TableFeatures features;
    features.table = table;
    controller.send(xid, MultipartRequest{more ? multipart_flag::kMore : uint16_t{0}, std::vector{features}});
  };
  part(5, 1, true);
  part(6, 10, true);
  part(5, 2, false);
  EXPECT_EQ(controller.receive_error(), "BAD_REQUEST/BAD_MULTIPART");  // TestSwitch's
  ASSERT_EQ(handler().seen.size(), 1u);
  const auto& tables = std::get<std::vector<TableFeatures>>(std::get<MultipartRequest>(handler().seen[0].body).body);
  ASSERT_EQ(tables.size(), 2u);
  EXPECT_EQ(tables[1].table, 2u);
  for (uint8_t table = 11; table < 14; ++table) part(6, table, true);
  EXPECT_EQ(controller.receive_error(), "BAD_REQUEST/MULTIPART_BUFFER_OVERFLOW");
  part(6, 14, false);
  EXPECT_FALSE(controller.receive_if_any().has_value());
  EXPECT_EQ(handler().seen.size(), 1u);
  part(7, 1, true);
  part(8, 1, true);
  part(9, 1, true);
  EXPECT_EQ(controller.receive_error(), "BAD_REQUEST/MULTIPART_BUFFER_OVERFLOW");
  controller.send(7, MultipartRequest{0, EmptyRequest<MultipartType::kDesc>{}});
  EXPECT_EQ(controller.receive_error(), "BAD_REQUEST/BAD_MULTIPART");
}

TEST_F(OpenFlowConnection, OnlySoManyClients) {
  options.limits.clients = 2;
  start();
  TestController one(*under_test, file), two(*under_test, file);
  one.greet();
  two.greet();
  TestController three(*under_test, file);
  EXPECT_TRUE(three.wait_closed());
  EXPECT_EQ(under_test->channel.clients_refused(), 1u);
  one.hang_up();
  EXPECT_TRUE(under_test->run_until([&] { return handler().disconnected.size() == 1; }));
  under_test->settle();
  TestController four(*under_test, file);
  four.greet();
}

}  // namespace
}  // namespace headrace::openflow
