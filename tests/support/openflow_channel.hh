#pragma once
/// \file
/// A switch without packets and controllers made of sockets, for tests of the OpenFlow channel.

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "control/openflow/channel/channel.hh"
#include "support/openflow_messages.hh"

namespace headrace::openflow {

class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "headrace-XXXXXX").string();
    path_ = mkdtemp(name.data());
  }
  ~TemporaryFolder() { std::filesystem::remove_all(path_); }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  std::string file(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

/// Answers what every switch answers, and writes down what came.
struct TestSwitch : Handler {
  void on_message(Connection& connection, Message&& message, std::span<const uint8_t> bytes) override {
    seen.push_back(message);
    if (std::holds_alternative<FeaturesRequest>(message.body)) {
      FeaturesReply features;
      features.datapath = 0x1234;
      features.tables = 1;
      connection.send(message.xid, features);
    } else if (std::holds_alternative<GetConfigRequest>(message.body)) {
      GetConfigReply config;
      config.miss_send_len = connection.miss_send_len();
      connection.send(message.xid, config);
    } else if (const auto* wanted = std::get_if<SetConfig>(&message.body)) {
      connection.set_miss_send_len(wanted->miss_send_len);
    } else if (std::holds_alternative<BarrierRequest>(message.body)) {
      if (!late_barriers) return connection.send(message.xid, BarrierReply{});
      connection.hold();
      owed.emplace_back(connection.id(), message.xid);
    } else if (const auto* request = std::get_if<MultipartRequest>(&message.body)) {
      MultipartReply reply;
      if (request->type() == MultipartType::kDesc) {
        reply.body = Description{"Headrace", "test", "1", "2", "3"};
      } else if (request->type() == MultipartType::kFlow) {
        reply.body = std::vector<FlowStats>(flows);
      } else if (request->type() == MultipartType::kPortDesc) {
        reply.body = std::vector<Port>();
      } else {
        return connection.refuse(ErrorCode::kRequestBadMultipart, bytes);
      }
      connection.send(message.xid, reply);
    }
  }
  void on_connected(Connection& connection) override { connected.push_back(connection.id()); }
  void on_disconnected(Connection& connection) override { disconnected.push_back(connection.id()); }
  void on_controllers(bool there) override { controllers.push_back(there); }

  void answer_barriers(Channel& channel) {
    for (const auto& [id, xid] : std::exchange(owed, {})) {
      Connection* const connection = channel.find(id);
      if (connection == nullptr) continue;
      connection->send(xid, BarrierReply{});
      connection->release();
    }
  }

  std::vector<Message> seen;
  std::vector<uint64_t> connected, disconnected;
  std::vector<bool> controllers;
  bool late_barriers = false;
  std::vector<std::pair<uint64_t, uint32_t>> owed;
  size_t flows = 0;
};

/// A channel with its loop, and a clock that a test may set.
struct ChannelUnderTest {
  explicit ChannelUnderTest(bool fake_clock = false)
      : channel(
            "sw",
            [this, fake_clock]() -> int64_t {
              const auto now = std::chrono::steady_clock::now().time_since_epoch();
              return fake_clock ? time : std::chrono::duration_cast<std::chrono::nanoseconds>(now).count();
            },
            [this](const std::string& line) { log += line; }) {}

  void start(const Options& options) { start(options, handler); }
  void start(const Options& options, TestSwitch& with) {
    Errors errors;
    auto setup = channel.prepare(options, errors);
    ASSERT_TRUE(setup) << errors.str();
    channel.adopt(std::move(setup), &with);
  }
  /// Runs the loop until `done`, at most 10 s. True if it is.
  bool run_until(const std::function<bool()>& done) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    while (!done()) {
      if (std::chrono::steady_clock::now() > end) return false;
      pollfd one{channel.fd(), POLLIN, 0};
      if (poll(&one, 1, 2) > 0) channel.run();
    }
    return true;
  }
  /// Runs the loop until it rests: what goes through a socket of this machine is there at once.
  void settle() {
    pollfd one{channel.fd(), POLLIN, 0};
    while (poll(&one, 1, 1) > 0) channel.run();
  }
  /// Moves the fake clock.
  void pass(int64_t nanoseconds) {
    settle();
    time += nanoseconds;
    channel.run();
    settle();
  }

  int64_t time = kSecond;
  std::string log;
  TestSwitch handler;
  Channel channel;
};

inline sockaddr_un unix_socket_address(const std::string& file) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, file.c_str(), sizeof address.sun_path - 1);
  return address;
}

/// Where the switch connects to.
class TestListener {
 public:
  explicit TestListener(const std::string& file) : fd_(socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0)) {
    const sockaddr_un address = unix_socket_address(file);
    EXPECT_EQ(bind(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    EXPECT_EQ(listen(fd_, 16), 0);
  }
  ~TestListener() { close(fd_); }
  TestListener(const TestListener&) = delete;
  TestListener& operator=(const TestListener&) = delete;
  /// -1: nobody has connected.
  int accept() const { return accept4(fd_, nullptr, nullptr, SOCK_NONBLOCK); }

 private:
  int fd_;
};

/// A controller.
class TestController {
 public:
  TestController(ChannelUnderTest& under_test, int fd) : under_test_(under_test), fd_(fd) {}
  TestController(ChannelUnderTest& under_test, const std::string& file)
      : under_test_(under_test), fd_(socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0)) {
    const sockaddr_un address = unix_socket_address(file);
    EXPECT_EQ(connect(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  }
  ~TestController() { hang_up(); }
  TestController(const TestController&) = delete;
  TestController& operator=(const TestController&) = delete;

  void hang_up() {
    if (fd_ >= 0) close(fd_);
    fd_ = -1;
  }
  int fd() const { return fd_; }

  /// What the socket takes; how much that was.
  size_t try_send(std::span<const uint8_t> bytes) {
    const ssize_t n = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    return n > 0 ? static_cast<size_t>(n) : 0;
  }
  void send(std::span<const uint8_t> bytes) {
    EXPECT_TRUE(under_test_.run_until([&] {
      bytes = bytes.subspan(try_send(bytes));
      return bytes.empty();
    }));
  }
  void send(const Message& message) {
    Bytes bytes;
    EXPECT_TRUE(encode(message, bytes));
    send(bytes);
  }
  void send(uint32_t xid, Body body) {
    Message message;
    message.version = version;
    message.xid = xid;
    message.body = std::move(body);
    send(message);
  }
  /// Says hello and takes the switch's.
  void greet(Version spoken = Version::k1_3) {
    version = spoken;
    send(1, Hello{{1u << static_cast<unsigned>(spoken)}});
    EXPECT_TRUE(std::holds_alternative<Hello>(receive().body));
  }
  /// The next message, whatever it takes; a failure if there is none.
  Message receive() {
    std::optional<Message> message;
    EXPECT_TRUE(under_test_.run_until([&] { return (message = next()).has_value() || closed; }));
    EXPECT_TRUE(message.has_value()) << "closed; " << under_test_.log;
    return message.value_or(Message{});
  }
  template <typename T>
  T receive_body() {
    const Message message = receive();
    const T* const body = std::get_if<T>(&message.body);
    EXPECT_NE(body, nullptr) << "message type " << static_cast<int>(message.type());
    return body ? *body : T{};
  }
  /// The name of the next error.
  std::string receive_error() {
    const auto error = receive_body<Error>();
    return error_text(version, error.type, error.code);
  }
  /// What there is after the loop has come to rest.
  std::optional<Message> receive_if_any() {
    under_test_.settle();
    return next();
  }
  bool wait_closed() {
    return under_test_.run_until([&] {
      while (next()) {
      }
      return closed;
    });
  }

  Version version = Version::k1_3;
  bool closed = false;

 private:
  std::optional<Message> next() {
    auto bytes = framer_.next();
    if (bytes.empty()) {
      uint8_t buffer[65536];
      const ssize_t n = recv(fd_, buffer, sizeof buffer, 0);
      closed = n == 0 || (n < 0 && errno != EAGAIN);
      if (n <= 0) return std::nullopt;
      framer_.add({buffer, static_cast<size_t>(n)});
      bytes = framer_.next();
      if (bytes.empty()) return std::nullopt;
    }
    Message message;
    EXPECT_EQ(decode(bytes, message), ErrorCode::kNone);
    return message;
  }

  ChannelUnderTest& under_test_;
  int fd_;
  Framer framer_;
};

}  // namespace headrace::openflow
