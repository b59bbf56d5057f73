/// Fuzzes the channel of an OpenFlow switch: the input is a script of what up to three controllers do. Each step is a byte of
/// which bits 0 and 1 name a controller, or the switch if both are set, and bits 2 to 4 what happens, and a byte for how much:
///
///     0  the controller connects, and says hello for 1.3 (1: 1.0, 2: what follows) if it has not
///     1  sends so many of the bytes that follow
///     2  sends so many bytes of a message of that length, echo requests that are not finished
///     3  reads what there is
///     4  hangs up
///     5  time passes: so many times 100 ms
///     6  the switch sends so many packet-ins, or answers the barriers that it owes
///     7  another handler takes over
///
/// Whatever they do: what a controller gets are whole messages of its version; slaves change nothing; what follows a barrier
/// is handled after it is answered; what is kept for them is bounded; and a good controller is served at the end.

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "control/openflow/channel/channel.hh"

namespace {

using namespace headrace;
using namespace headrace::openflow;

constexpr std::size_t kControllers = 3;
constexpr std::int64_t kTenth = 100'000'000;

void require_channel(bool condition, const char* what) {
  if (condition) return;
  std::fprintf(stderr, "%s\n", what);
  std::abort();
}

/// Answers what may be answered, late barriers, and looks at what comes.
class FuzzedSwitch final : public Handler {
 public:
  void on_message(Connection& connection, Message&& message, std::span<const std::uint8_t> bytes) override {
    require_channel(connection.established(), "a message of a connection that has ended");
    require_channel(!connection.held(), "a message came behind a barrier that is not answered");
    require_channel(message.version == connection.version(), "a message of another version");
    require_channel(sender_of(message.type()) != Sender::kSwitch, "a switch's message");
    require_channel(connection.role() != Role::kSlave || !modifies(message.body), "a slave may change something");
    if (std::holds_alternative<BarrierRequest>(message.body)) {
      connection.hold();
      owed_.emplace_back(connection.id(), message.xid);
    } else if (std::holds_alternative<FeaturesRequest>(message.body)) {
      connection.send(message.xid, FeaturesReply{});
    } else if (const auto* const config = std::get_if<SetConfig>(&message.body)) {
      connection.set_miss_send_len(config->miss_send_len);
    } else if (std::holds_alternative<MultipartRequest>(message.body)) {
      MultipartReply reply;
      reply.body = std::vector<FlowStats>(100);
      connection.send(message.xid, std::move(reply));
    } else {
      connection.refuse(ErrorCode::kRequestBadType, bytes);
    }
  }
  void on_connected(Connection& connection) override {
    require_channel(there_.insert(connection.id()).second, "connected twice");
  }
  void on_disconnected(Connection& connection) override {
    require_channel(there_.erase(connection.id()) == 1, "disconnected, but never connected");
  }
  void on_controllers(bool there) override { require_channel(!there, "nobody is connected to"); }

  void answer_barriers(Channel& channel) {
    for (const auto& [id, xid] : std::exchange(owed_, {})) {
      Connection* const connection = channel.find(id);
      if (connection == nullptr) continue;
      connection->send(xid, BarrierReply{});
      connection->release();
    }
  }
  void take_over(FuzzedSwitch& other) {
    there_ = std::move(other.there_);
    owed_ = std::move(other.owed_);
  }

 private:
  std::set<std::uint64_t> there_;
  std::vector<std::pair<std::uint64_t, std::uint32_t>> owed_;
};

/// A controller's end.
class FuzzedController {
 public:
  FuzzedController() = default;
  FuzzedController(const FuzzedController&) = delete;
  FuzzedController& operator=(const FuzzedController&) = delete;
  ~FuzzedController() { hang_up(); }

  bool connected() const { return fd_ >= 0; }
  void connect_to(const std::string& file) {
    hang_up();
    framer_ = Framer();
    fd_ = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strncpy(address.sun_path, file.c_str(), sizeof address.sun_path - 1);
    if (connect(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) hang_up();
  }
  void hang_up() {
    if (fd_ >= 0) close(fd_);
    fd_ = -1;
  }
  void send(std::span<const std::uint8_t> bytes) {
    if (fd_ >= 0) (void)!::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
  }
  void send(Version version, std::uint32_t xid, Body body) {
    Message message;
    message.version = version;
    message.xid = xid;
    message.body = std::move(body);
    std::vector<std::uint8_t> bytes;
    (void)encode(message, bytes);
    send(bytes);
  }
  /// Reads all that is there. Returns the numbers of what is no error.
  std::vector<std::uint32_t> read() {
    std::vector<std::uint32_t> answers;
    std::array<std::uint8_t, 65536> buffer{};
    while (fd_ >= 0) {
      const ssize_t n = recv(fd_, buffer.data(), buffer.size(), 0);
      if (n <= 0) break;
      framer_.add({buffer.data(), static_cast<std::size_t>(n)});
      for (auto bytes = framer_.next(); !bytes.empty(); bytes = framer_.next()) {
        Message message;
        require_channel(decode(bytes, message) == ErrorCode::kNone, "a message of the switch cannot be read");
        if (!std::holds_alternative<Error>(message.body)) answers.push_back(message.xid);
      }
      require_channel(!framer_.broken(), "a length under 8 bytes");
    }
    return answers;
  }

 private:
  int fd_ = -1;
  Framer framer_;
};

std::string channel_socket() {
  static const std::string folder = [] {
    std::string name = (std::filesystem::temp_directory_path() / "headrace-fuzz-XXXXXX").string();
    require_channel(mkdtemp(name.data()) != nullptr, "no temporary folder");
    return name;
  }();
  struct Remover {
    ~Remover() { std::filesystem::remove_all(folder); }
  };
  static const Remover remover;
  return folder + "/socket";
}

struct Script {
  std::span<const std::uint8_t> left;

  std::uint8_t byte() {
    if (left.empty()) return 0;
    const std::uint8_t value = left.front();
    left = left.subspan(1);
    return value;
  }
  std::span<const std::uint8_t> bytes(std::size_t count) {
    const auto some = left.first(std::min(count, left.size()));
    left = left.subspan(some.size());
    return some;
  }
};

class FuzzedChannel {
 public:
  FuzzedChannel()
      : channel_(
            "fuzz", [this] { return time_; }, [](const std::string&) {}) {
    std::string error;
    options_.targets.emplace_back();
    require_channel(parse_target("punix:" + channel_socket(), options_.targets[0], error), error.c_str());
    options_.limits = {4096, 16384, 4096, 1024, 64, 8192, 2, 2 * kControllers};
    adopt();
  }
  ~FuzzedChannel() { channel_.leave(handler_.get()); }
  FuzzedChannel(const FuzzedChannel&) = delete;
  FuzzedChannel& operator=(const FuzzedChannel&) = delete;

  void settle() {
    pollfd one{channel_.fd(), POLLIN, 0};
    for (int i = 0; i < 1000 && poll(&one, 1, 0) > 0; ++i) channel_.run();
    channel_.each([&](Connection& connection) {
      // What is unsent stops requests, and events are bounded by their own limit. On top may be one reply, and those to the
      // echoes that one read has brought.
      require_channel(
          connection.unsent() <= options_.limits.unsent + options_.limits.unsent_events + 2 * kMaxMessageBytes + 2,
          "too much is unsent");
    });
  }

  void step(Script& script) {
    const std::uint8_t what = script.byte(), much = script.byte();
    FuzzedController& controller = controllers_[std::min<std::size_t>(what & 3, kControllers - 1)];
    switch (what >> 2 & 7) {
      case 0:
        if (!controller.connected()) controller.connect_to(channel_socket());
        if (much < 2) controller.send(much == 1 ? Version::k1_0 : Version::k1_3, 1, Hello{});
        break;
      case 1:
        controller.send(script.bytes(much));
        break;
      case 2: {
        const std::array<std::uint8_t, 8> header{4, 2, much, 0xff, 0, 0, 0, 9};
        controller.send(header);
        controller.send(std::vector<std::uint8_t>(much));
        break;
      }
      case 3:
        (void)controller.read();
        break;
      case 4:
        controller.hang_up();
        break;
      case 5:
        time_ += much * kTenth;
        channel_.run();
        break;
      case 6:
        if (much == 0) {
          handler_->answer_barriers(channel_);
        } else {
          PacketIn packet;
          packet.buffer = much % 2 == 0 ? kNoBuffer : much;
          packet.data.resize(much * 4u);
          for (int i = 0; i < much; ++i) channel_.packet_in(packet, true);
        }
        break;
      default:
        adopt();
        break;
    }
    settle();
  }

  /// All hang up and are forgotten; then a controller that does all as it should gets its answers.
  void serve() {
    for (FuzzedController& controller : controllers_) controller.hang_up();
    for (int i = 0; i < 3; ++i) {
      settle();
      handler_->answer_barriers(channel_);
      time_ += 100 * kSecond;
      channel_.run();
    }
    settle();
    channel_.each([](Connection&) { require_channel(false, "a connection outlives its controller"); });
    FuzzedController good;
    good.connect_to(channel_socket());
    const std::uint32_t hello = 1, barrier = 2, features = 3, echo = 4;
    good.send(Version::k1_3, hello, Hello{});
    good.send(Version::k1_3, barrier, BarrierRequest{});
    good.send(Version::k1_3, features, FeaturesRequest{});
    good.send(Version::k1_3, echo, EchoRequest{});
    settle();
    std::vector<std::uint32_t> answers = good.read();
    require_channel(answers.size() == 2 && answers[1] == echo,
                    "an echo must be answered, and nothing else behind a barrier");
    handler_->answer_barriers(channel_);
    settle();
    require_channel(good.read() == std::vector<std::uint32_t>{barrier, features}, "a good controller is not served");
  }

 private:
  void adopt() {
    Errors errors;
    auto setup = channel_.prepare(options_, errors);
    require_channel(setup != nullptr, "the channel cannot listen");
    auto next = std::make_unique<FuzzedSwitch>();
    if (handler_) next->take_over(*handler_);
    channel_.adopt(std::move(setup), next.get());
    handler_ = std::move(next);
    settle();
  }

  std::int64_t time_ = kSecond;
  Options options_;
  std::unique_ptr<FuzzedSwitch> handler_;
  Channel channel_;
  std::array<FuzzedController, kControllers> controllers_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  FuzzedChannel channel;
  for (Script script{{data, size}}; !script.left.empty();) channel.step(script);
  channel.serve();
  return 0;
}
