/// Controllers that the switch connects to: roles, filters, auxiliary connections, losing and finding them.

#include <gtest/gtest.h>

#include "support/openflow_channel.hh"

namespace headrace::openflow {
namespace {

struct Controlled : testing::Test {
  void start(size_t controllers = 1) {
    under_test = std::make_unique<ChannelUnderTest>(true);
    for (size_t i = 0; i < controllers; ++i) {
      const std::string file = folder.file(std::to_string(i));
      options.targets.push_back({Target::Kind::kUnix, false, "", 0, file});
      listeners.push_back(std::make_unique<TestListener>(file));
    }
    under_test->start(options);
  }
  std::unique_ptr<TestController> accept(size_t i = 0, Version version = Version::k1_3) {
    int fd = -1;
    EXPECT_TRUE(under_test->run_until([&] { return (fd = listeners[i]->accept()) >= 0; }));
    auto controller = std::make_unique<TestController>(*under_test, fd);
    controller->greet(version);
    under_test->settle();
    return controller;
  }
  std::string role(TestController& controller, Role wanted, uint64_t generation) {
    RoleRequest request;
    request.role = wanted;
    request.generation = generation;
    controller.send(77, std::move(request));
    const Message message = controller.receive();
    EXPECT_EQ(message.xid, 77u);
    if (const auto* error = std::get_if<Error>(&message.body))
      return error_text(controller.version, error->type, error->code);
    const auto& reply = std::get<RoleReply>(message.body);
    static constexpr const char* kNames[] = {"nochange", "equal", "master", "slave"};
    return std::string(kNames[static_cast<size_t>(reply.role)]) + " " +
           (reply.generation == UINT64_MAX ? "-" : std::to_string(reply.generation));
  }
  static PacketIn packet_in(PacketInReason reason, size_t size = 60) {
    PacketIn packet;
    packet.reason = reason;
    packet.data.resize(size);
    return packet;
  }
  /// What a controller gets of one event of each kind: n(o match), a(ction), t(tl), r(emoved), p(ort).
  std::string events(TestController& controller) {
    Channel& channel = under_test->channel;
    while (controller.receive_if_any()) {
    }
    channel.packet_in(packet_in(PacketInReason::kNoMatch), false);
    channel.packet_in(packet_in(PacketInReason::kAction), false);
    channel.packet_in(packet_in(PacketInReason::kInvalidTtl), false);
    channel.flow_removed({});
    channel.port_status({});
    std::string got;
    while (const auto message = controller.receive_if_any()) {
      if (const auto* in = std::get_if<PacketIn>(&message->body)) got += "nat"[static_cast<size_t>(in->reason)];
      if (std::holds_alternative<FlowRemoved>(message->body)) got += 'r';
      if (std::holds_alternative<PortStatus>(message->body)) got += 'p';
    }
    return got;
  }

  TemporaryFolder folder;
  Options options;
  std::vector<std::unique_ptr<TestListener>> listeners;
  std::unique_ptr<ChannelUnderTest> under_test;
};

using OpenFlowControllers = Controlled;

TEST_F(OpenFlowControllers, RolesAndGenerations) {
  start(3);
  const auto a = accept(0), b = accept(1), old = accept(2, Version::k1_0);
  EXPECT_EQ(role(*a, Role::kNoChange, 0), "equal -");
  EXPECT_EQ(role(*a, Role::kMaster, 10), "master 10");
  EXPECT_EQ(role(*b, Role::kMaster, 9), "ROLE_REQUEST_FAILED/STALE");
  EXPECT_EQ(role(*b, Role::kSlave, 9), "ROLE_REQUEST_FAILED/STALE");
  EXPECT_EQ(role(*b, Role::kNoChange, 0), "equal 10");
  EXPECT_EQ(role(*b, Role::kEqual, 0), "equal 10");  // needs no generation
  EXPECT_EQ(role(*b, Role::kMaster, 11), "master 11");
  EXPECT_EQ(role(*a, Role::kNoChange, 0), "slave 11");
  // Nicira's, without a generation.
  old->send(1, RoleRequest{{Role::kMaster, 0}});
  EXPECT_EQ(old->receive_body<RoleReply>().role, Role::kMaster);
  EXPECT_EQ(role(*b, Role::kNoChange, 0), "slave 11");

  for (const Body& body : std::vector<Body>{FlowMod{}, PacketOut{}, GroupMod{}, MeterMod{}, PortMod{}, TableMod{}}) {
    a->send(5, body);
    EXPECT_EQ(a->receive_error(), "BAD_REQUEST/IS_SLAVE");
  }
  EXPECT_TRUE(under_test->handler.seen.empty());
  a->send(6, FeaturesRequest{});
  EXPECT_EQ(a->receive().xid, 6u);
  old->send(7, FlowMod{});
  EXPECT_FALSE(old->receive_if_any().has_value());
  EXPECT_EQ(under_test->handler.seen.size(), 2u);
  old->send(8, RoleRequest{{Role::kSlave, 0}});
  EXPECT_EQ(old->receive_body<RoleReply>().role, Role::kSlave);
  old->send(9, FlowMod{});
  EXPECT_EQ(old->receive_error(), "BAD_REQUEST/EPERM");  // the nearest that 1.0 has
}

TEST_F(OpenFlowControllers, EachGetsWhatItWants) {
  start(2);
  const auto a = accept(0), b = accept(1, Version::k1_0);
  EXPECT_EQ(events(*a), "narp");
  EXPECT_EQ(events(*b), "aarp");  // entries for misses are entries like others in 1.0
  EXPECT_TRUE(a->receive_if_any().has_value());
  while (a->receive_if_any()) {
  }
  role(*a, Role::kSlave, 1);
  EXPECT_EQ(events(*a), "p");
  AsyncConfig config;
  config.packet_in = {0, 1u << 2};
  config.flow_removed = {0, ~0u};
  a->send(3, SetAsync{config});
  EXPECT_EQ(events(*a), "tr");
  a->send(4, GetAsyncRequest{});
  EXPECT_EQ(static_cast<AsyncConfig>(a->receive_body<GetAsyncReply>()), config);
  role(*a, Role::kEqual, 0);
  EXPECT_EQ(events(*a), "");
  EXPECT_TRUE(under_test->channel.wants_packet_in(PacketInReason::kNoMatch));  // b does
  EXPECT_FALSE(under_test->channel.wants_packet_in(PacketInReason::kInvalidTtl));
}

TEST_F(OpenFlowControllers, ClientsGetNothingUnasked) {
  const std::string file = folder.file("p");
  options.targets = {{Target::Kind::kUnix, true, "", 0, file}};
  start(0);
  TestController client(*under_test, file);
  client.greet();
  EXPECT_EQ(events(client), "");
  client.send(2, SetConfig{{0, 20}});
  EXPECT_EQ(events(client), "narp");
  PacketIn packet = packet_in(PacketInReason::kNoMatch);
  packet.buffer = 5;
  under_test->channel.packet_in(packet, true);
  EXPECT_EQ(client.receive_body<PacketIn>().data.size(), 20u);
  under_test->channel.packet_in(packet, false);
  EXPECT_EQ(client.receive_body<PacketIn>().data.size(), 60u);
  packet.buffer = kNoBuffer;  // the rest would be lost
  under_test->channel.packet_in(packet, true);
  EXPECT_EQ(client.receive_body<PacketIn>().data.size(), 60u);
  TestController other(*under_test, file);
  other.greet();
  other.send(2, SetAsync{default_async()});
  EXPECT_EQ(events(other), "narp");
}

TEST_F(OpenFlowControllers, AuxiliaryConnectionsCarryPacketIns) {
  options.auxiliary = 2;
  start();
  const auto main = accept();
  EXPECT_EQ(main->receive_if_any(), std::nullopt);
  std::vector<std::unique_ptr<TestController>> auxiliary;
  for (unsigned i = 0; i < 2; ++i) auxiliary.push_back(accept());
  std::vector<uint8_t> numbers;
  for (const auto& one : auxiliary) {
    one->send(5, FeaturesRequest{});
    numbers.push_back(one->receive_body<FeaturesReply>().auxiliary);
  }
  std::sort(numbers.begin(), numbers.end());
  EXPECT_EQ(numbers, (std::vector<uint8_t>{1, 2}));
  main->send(6, FeaturesRequest{});
  EXPECT_EQ(main->receive_body<FeaturesReply>().auxiliary, 0);
  for (int i = 0; i < 4; ++i) under_test->channel.packet_in(packet_in(PacketInReason::kAction), false);
  under_test->channel.port_status({});
  for (const auto& one : auxiliary) {
    for (int i = 0; i < 2; ++i) EXPECT_TRUE(std::holds_alternative<PacketIn>(one->receive().body));
    EXPECT_FALSE(one->receive_if_any().has_value());
  }
  EXPECT_TRUE(std::holds_alternative<PortStatus>(main->receive().body));
  EXPECT_FALSE(main->receive_if_any().has_value());
  // The controller's role and settings are those of all its connections.
  EXPECT_EQ(role(*auxiliary[0], Role::kSlave, 1), "slave 1");
  EXPECT_EQ(role(*main, Role::kNoChange, 1), "slave 1");
  auxiliary[1]->send(7, FlowMod{});
  EXPECT_EQ(auxiliary[1]->receive_error(), "BAD_REQUEST/IS_SLAVE");
  main->hang_up();
  EXPECT_TRUE(auxiliary[0]->wait_closed());
  EXPECT_TRUE(auxiliary[1]->wait_closed());
}

TEST_F(OpenFlowControllers, AuxiliaryConnectionsAreOf13) {
  options.auxiliary = 2;
  start();
  const auto main = accept(0, Version::k1_0);
  under_test->settle();
  EXPECT_EQ(listeners[0]->accept(), -1);
}

TEST_F(OpenFlowControllers, TriesAgainLaterAndLater) {
  const std::string file = folder.file("c");
  options.targets = {{Target::Kind::kUnix, false, "", 0, file}};
  start(0);
  under_test->settle();
  EXPECT_EQ(under_test->log, "sw: unix:" + file + ": cannot connect: No such file or directory\n");
  TestListener listener(file);
  listeners.push_back(nullptr);
  // What happens when: seconds after the last attempt, each of which is answered by hanging up.
  for (const int seconds : {1, 2, 4, 8, 8}) {
    under_test->pass(seconds * kSecond - kSecond / 2);
    EXPECT_EQ(listener.accept(), -1) << seconds;
    under_test->pass(kSecond / 2);
    const int fd = listener.accept();
    ASSERT_GE(fd, 0) << seconds;
    close(fd);
    under_test->settle();
  }
  EXPECT_NE(under_test->log.find("no connection: Connection reset by peer\n"), std::string::npos) << under_test->log;
  // A connection that lasted begins anew.
  under_test->pass(8 * kSecond);
  {
    TestController controller(*under_test, listener.accept());
    controller.greet();
    for (int i = 0; i < 3; ++i) {
      under_test->pass(4 * kSecond);
      controller.send(1, EchoRequest{});
      controller.receive();
    }
  }
  under_test->settle();
  under_test->pass(kSecond / 2);
  EXPECT_EQ(listener.accept(), -1);
  under_test->pass(kSecond / 2);
  const int fd = listener.accept();
  EXPECT_GE(fd, 0);
  close(fd);
}

TEST_F(OpenFlowControllers, TheSwitchLearnsThatAllAreLost) {
  start(2);
  TestSwitch& handler = under_test->handler;
  under_test->settle();
  EXPECT_TRUE(handler.controllers.empty());
  under_test->pass(15 * kSecond);
  EXPECT_EQ(handler.controllers, std::vector<bool>{false});
  // Those of the first 15 s have been given up, for they got no hello.
  for (auto& listener : listeners)
    for (int fd; (fd = listener->accept()) >= 0;) close(fd);
  under_test->settle();
  under_test->pass(8 * kSecond);
  auto a = accept(0), b = accept(1);
  EXPECT_EQ(handler.controllers, (std::vector<bool>{false, true}));
  a->hang_up();
  for (int i = 0; i < 5; ++i) {
    under_test->pass(4 * kSecond);
    b->send(1, EchoRequest{});
    b->receive();
  }
  EXPECT_EQ(handler.controllers.size(), 2u);
  b->hang_up();
  listeners.clear();
  under_test->settle();
  under_test->pass(15 * kSecond - kSecond / 2);
  EXPECT_EQ(handler.controllers.size(), 2u);
  under_test->pass(kSecond / 2);
  EXPECT_EQ(handler.controllers, (std::vector<bool>{false, true, false}));
}

TEST_F(OpenFlowControllers, WithoutControllersTheSwitchIsAlone) {
  options.targets = {{Target::Kind::kUnix, true, "", 0, folder.file("p")}};
  start(0);
  under_test->settle();
  EXPECT_EQ(under_test->handler.controllers, std::vector<bool>{false});
}

TEST_F(OpenFlowControllers, ASwapKeepsConnections) {
  const std::string file = folder.file("p");
  options.targets = {{Target::Kind::kUnix, true, "", 0, file}};
  start(2);
  const auto kept = accept(0), ended = accept(1);
  TestController client(*under_test, file);
  client.greet();
  EXPECT_EQ(role(*kept, Role::kMaster, 4), "master 4");
  under_test->handler.late_barriers = true;
  kept->send(5, BarrierRequest{});
  kept->send(6, FeaturesRequest{});
  under_test->settle();

  TestSwitch next;
  next.owed = under_test->handler.owed;
  Options other = options;
  other.targets.erase(other.targets.begin() + 2);
  Errors errors;
  auto setup = under_test->channel.prepare(other, errors);  // while the old one listens
  ASSERT_TRUE(setup) << errors.str();
  under_test->channel.leave(&under_test->handler);
  client.send(7, FeaturesRequest{});
  EXPECT_FALSE(client.receive_if_any().has_value());
  under_test->channel.adopt(std::move(setup), &next);
  under_test->channel.leave(&under_test->handler);  // too late to matter
  EXPECT_EQ(client.receive().xid, 7u);
  EXPECT_TRUE(ended->wait_closed());
  EXPECT_FALSE(kept->receive_if_any().has_value());
  next.answer_barriers(under_test->channel);
  EXPECT_EQ(kept->receive().xid, 5u);
  EXPECT_EQ(kept->receive().xid, 6u);
  EXPECT_EQ(role(*kept, Role::kNoChange, 0), "master 4");
  EXPECT_EQ(next.controllers, std::vector<bool>{true});
  EXPECT_EQ(next.seen.size(), 2u);
  TestController late(*under_test, file);
  late.greet();

  other.versions.v1_3 = false;
  under_test->start(other, next);
  EXPECT_TRUE(kept->wait_closed());
  EXPECT_TRUE(late.wait_closed());
  other.targets.clear();
  under_test->start(other, next);
  EXPECT_FALSE(std::filesystem::exists(file));
}

TEST_F(OpenFlowControllers, AChannelIsFoundByItsName) {
  std::vector<int> watched;
  const Channel::Watch watch = [&](int fd, const std::function<void()>& ready) {
    if (ready)
      watched.push_back(fd);
    else
      std::erase(watched, fd);
  };
  auto first = Channel::at("a test", watch);
  EXPECT_EQ(Channel::at("a test", watch), first);
  EXPECT_NE(Channel::at("another", watch), first);
  EXPECT_EQ(watched, std::vector<int>{first->fd()});
  first.reset();
  EXPECT_TRUE(watched.empty());
}

TEST_F(OpenFlowControllers, WhatCannotBeOpenedIsSaid) {
  ChannelUnderTest second;
  const std::string file = folder.file("none/s");
  Options bad;
  bad.targets = {{Target::Kind::kUnix, true, "", 0, file},
                 {Target::Kind::kTcp, true, "host.invalid", 1, ""},
                 {Target::Kind::kSsl, false, "127.0.0.1", 1, ""}};
  Errors errors;
  EXPECT_FALSE(second.channel.prepare(bad, errors));
  bad.tls = TlsFiles{"key", "certificate", "ca"};
  EXPECT_FALSE(second.channel.prepare(bad, errors));
  EXPECT_EQ(errors.lines(),
            (std::vector<std::string>{"ssl: and pssl: need a private key, a certificate and a CA certificate",
                                      "punix:" + file + ": No such file or directory",
                                      "ptcp:1:host.invalid: 'host.invalid' is not the address of an interface",
                                      "certificate 'certificate': No such file or directory",
                                      "punix:" + file + ": No such file or directory",
                                      "ptcp:1:host.invalid: 'host.invalid' is not the address of an interface"}));
}

TEST_F(OpenFlowControllers, ANameThatIsNowhereIsTriedAgain) {
  options.targets = {{Target::Kind::kTcp, false, "host.invalid", 6653, ""}};
  start(0);
  EXPECT_TRUE(under_test->run_until([&] { return !under_test->log.empty(); }));
  EXPECT_TRUE(under_test->log.starts_with("sw: tcp:host.invalid:6653: cannot connect: ")) << under_test->log;
}

}  // namespace
}  // namespace headrace::openflow
