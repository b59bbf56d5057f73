/// Fuzzes an OpenFlow switch as its controllers and its ports see it. The input draws flow-mods and group-mods of both
/// versions, packets, and time; what the switch answers, tells, counts and sends is what a naive switch does. Then what is
/// left of the input comes as the bodies of messages of any type: whatever becomes of them, the switch still answers.

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
#include <deque>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "control/openflow/switch/switch.hh"
#include "elements/openflow/interpreter.hh"
#include "elements/openflow/packet_frame.hh"
#include "runtime/runtime.hh"
#include "tables/key/packet_key_view.hh"
#include "unit/control/openflow/naive_switch.hh"
#include "unit/control/openflow/pipeline_dice.hh"

namespace {

using namespace headrace;
using namespace headrace::openflow;

constexpr std::uint32_t kPorts = 3;
constexpr int kMostSteps = 200;
constexpr std::int64_t kMillisecond = 1'000'000;

void require_switch(bool condition, const char* what) {
  if (condition) return;
  std::fprintf(stderr, "%s\n", what);
  std::abort();
}

/// Frames as they leave, by port.
using Sent = std::vector<std::pair<std::uint32_t, std::string>>;

class KeepingSink final : public PacketSink {
 public:
  void send(std::uint32_t port, Packet* packet) override {
    if (port <= kPorts) sent.emplace_back(port, std::string(packet->data(), packet->data() + packet->length()));
    packet->kill();
  }
  std::uint32_t ports() const override { return kPorts; }
  bool has_local() const override { return false; }
  void lose(Loss) override {}
  Sent sent;
};

/// A controller at the switch's socket.
class Peer {
 public:
  Peer(const std::string& file, Version version)
      : version(version), fd_(socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strncpy(address.sun_path, file.c_str(), sizeof address.sun_path - 1);
    require_switch(connect(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0,
                   "it does not listen");
    (void)send(Hello{{1u << static_cast<unsigned>(version)}}, 0);
  }
  ~Peer() { close(fd_); }
  Peer(const Peer&) = delete;
  Peer& operator=(const Peer&) = delete;

  std::vector<std::uint8_t> send(Body body, std::uint32_t xid) {
    std::vector<std::uint8_t> bytes;
    (void)encode({version, xid, std::move(body), 0}, bytes);
    send_bytes(bytes);
    return bytes;
  }
  void send_bytes(std::span<const std::uint8_t> bytes) {
    // A switch may end a connection that says what cannot be.
    (void)!::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
  }
  /// Whole messages that have come.
  std::vector<Message> receive() {
    std::array<std::uint8_t, 65536> buffer;
    std::vector<Message> messages;
    for (ssize_t n; (n = recv(fd_, buffer.data(), buffer.size(), 0)) > 0;) {
      framer_.add({buffer.data(), static_cast<std::size_t>(n)});
      for (auto bytes = framer_.next(); !bytes.empty(); bytes = framer_.next()) {
        require_switch(decode(bytes, messages.emplace_back()) == ErrorCode::kNone, "it says what nobody can read");
        // Its hello comes before they have agreed on one.
        require_switch(messages.back().version == version || messages.back().type() == MessageType::kHello,
                       "a message of another version");
      }
    }
    return messages;
  }

  const Version version;

 private:
  int fd_;
  Framer framer_;
};

class SwitchUnderFuzz final : private SwitchHost {
 public:
  explicit SwitchUnderFuzz(std::span<const std::uint8_t> input)
      : left_(input), dice_([this] { return draw(); }), file_(folder() + "/mgmt") {
    std::filesystem::remove(file_);
    SwitchOptions options;
    options.ports = kPorts;
    options.channel.targets = {{Target::Kind::kUnix, true, "", 0, file_}};
    options.channel.probe = 0;
    Switch::Place place;
    place.watch = [this](int fd, std::function<void()> ready) {
      if (ready)
        watched_[fd] = std::move(ready);
      else
        watched_.erase(fd);
    };
    place.post = [this](std::function<void()> action) { posted_.push_back(std::move(action)); };
    switch_ = std::make_shared<Switch>(0x16, options, std::move(place), [this] { return now_; });
    Errors errors;
    auto setup = switch_->prepare(options, errors);
    require_switch(setup != nullptr, "it cannot be set up");
    switch_->adopt(options, std::move(setup), this);
    for (const Version version : {Version::k1_0, Version::k1_3})
      peers_.push_back(std::make_unique<Peer>(file_, version));
    (void)peers_[1]->send(SetConfig{0, 128}, 0);  // it wants to hear of events
    MeterMod meter;
    meter.meter = 1;
    meter.flags = meter_flag::kPktps;
    meter.bands.push_back({MeterBandType::kDrop, UINT32_MAX, 0, 0, 0, {}});
    (void)peers_[1]->send(std::move(meter), 0);
    for (const auto& peer : peers_) (void)talk(*peer);
    naive_.ports = {1, 2, 3};
    naive_.most_entries = 1000;
    naive_.meters = {1};
  }
  ~SwitchUnderFuzz() {
    peers_.clear();
    switch_->leave(this);
  }

  void run() {
    for (int step = 0; step < kMostSteps && left_.size() > 64; ++step) {
      switch (dice_.below(8)) {
        case 0:
          obey(*peers_[1], dice_.group_mod());
          break;
        case 1:
        case 2:
        case 3:
          meet();
          break;
        case 4:
          now_ += dice_.below(1500) * kMillisecond;
          naive_.expire(now_);
          (void)talk(*peers_[1]);
          break;
        default: {
          Peer& peer = *peers_[dice_.below(3) == 0 ? 0 : 1];
          obey(peer, dice_.flow_mod(peer.version));
        }
      }
    }
    compare();
    survive();
  }

 private:
  void packets_wait() override {}
  std::vector<SwitchPorts::Ends> ends() const override { return std::vector<SwitchPorts::Ends>(kPorts); }
  SwitchPorts::Ends local_ends() const override { return {}; }

  static const std::string& folder() {
    // Never destroyed: the handler that removes the folder runs after that.
    static const std::string* const folder = [] {
      std::string name = (std::filesystem::temp_directory_path() / "headrace-XXXXXX").string();
      require_switch(mkdtemp(name.data()) != nullptr, "no temporary folder");
      std::atexit([] { std::filesystem::remove_all(SwitchUnderFuzz::folder()); });
      return new std::string(std::move(name));
    }();
    return *folder;
  }

  std::uint32_t draw() {
    std::uint32_t value = 0;
    const std::size_t n = std::min<std::size_t>(left_.size(), 1);
    std::memcpy(&value, left_.data(), n);
    left_ = left_.subspan(n);
    // Also numbers that the dice divide by more than a byte has.
    return value * 257;
  }

  void round() {
    switch_->step();
    for (; !posted_.empty(); posted_.pop_front()) posted_.front()();
    const auto watched = watched_;
    for (const auto& [fd, ready] : watched) {
      pollfd one{fd, POLLIN, 0};
      if (poll(&one, 1, 0) > 0) ready();
    }
    // A worker does what packet-outs say.
    KeepingSink sink;
    Interpreter interpreter(*switch_->datapath(), sink);
    switch_->datapath()->injections().take(100, [&](InjectionQueue::Injection& injection) {
      interpreter.act(injection.packet, injection.in_port, ProgramView(injection.program.data()).apply_actions());
    });
  }
  /// All that a controller hears until a barrier is answered, without hellos.
  std::vector<Message> talk(Peer& peer) {
    constexpr std::uint32_t kBarrier = 0xba;
    (void)peer.send(BarrierRequest{}, kBarrier);
    std::vector<Message> heard;
    for (int i = 0; i < 10000; ++i) {
      round();
      for (Message& message : peer.receive()) {
        if (message.xid == kBarrier && message.type() == MessageType::kBarrierReply) return heard;
        if (message.type() == MessageType::kFlowRemoved) {
          removed_.push_back(removed_text(std::get<FlowRemoved>(message.body)));
        } else if (message.type() == MessageType::kPacketIn) {
          ++packet_ins_;
        } else if (message.type() != MessageType::kHello) {
          heard.push_back(std::move(message));
        }
      }
    }
    require_switch(false, "a barrier is not answered");
    return heard;
  }

  /// Sends a message as a controller would, and does to the naive switch what can be read of it.
  template <typename Mod>
  void obey(Peer& peer, Mod mod) {
    const std::vector<std::uint8_t> bytes = peer.send(std::move(mod), 7);
    Message read;
    ErrorCode expected = decode(bytes, read);
    if (expected == ErrorCode::kNone) {
      if (const auto* const flow = std::get_if<FlowMod>(&read.body)) {
        expected = naive_.flow_mod(*flow, peer.version, now_);
      } else {
        expected = naive_.group_mod(std::get<GroupMod>(read.body), now_);
      }
    }
    const std::vector<Message> heard = talk(peer);
    require_switch(heard.size() == (expected == ErrorCode::kNone ? 0 : 1), "an error more or less");
    if (heard.empty()) return;
    const auto* const error = std::get_if<Error>(&heard[0].body);
    const Message other = error_message(expected, peer.version, 7, {});
    const Error& should = std::get<Error>(other.body);
    require_switch(error != nullptr && error->type == should.type && error->code == should.code, "another error");
  }

  std::string random_frame() {
    std::string frame(60, '\0');
    frame[5] = static_cast<char>(dice_.below(2));
    frame[11] = static_cast<char>(dice_.below(2));
    if (dice_.one_in(5)) {
      frame[12] = '\x86', frame[13] = '\xdd', frame[14] = '\x60', frame[20] = 59;
      frame[38] = '\x20', frame[39] = 1, frame[40] = '\x0d', frame[41] = '\xb8';
      frame[53] = static_cast<char>(dice_.below(2));
      return frame;
    }
    frame[12] = 8, frame[14] = 0x45, frame[17] = 46, frame[22] = 64;
    frame[23] = dice_.one_in(4) ? 17 : 6;
    frame[26] = 10, frame[29] = static_cast<char>(dice_.below(3));
    frame[30] = 11, frame[33] = static_cast<char>(dice_.below(3));
    frame[35] = 1, frame[37] = static_cast<char>(80 + dice_.below(2));
    return frame;
  }
  static PacketKey key_of(const std::string& frame, std::uint32_t in_port, std::uint64_t metadata) {
    PacketBytes bytes;
    bytes.data = reinterpret_cast<const std::uint8_t*>(frame.data());
    bytes.length = static_cast<std::uint32_t>(frame.size());
    PacketKeyContext context;
    context.in_port = context.in_phy_port = in_port;
    context.metadata = metadata;
    return parse_frame(bytes, static_cast<std::int32_t>(frame.size()), context);
  }

  /// What becomes of a packet in the naive switch.
  struct Walk {
    std::uint32_t in_port;
    std::string frame;
    std::uint64_t metadata = 0;
    Sent sent = {};
    std::uint64_t packet_ins = 0;
  };
  static std::vector<Action> ordered_set(const std::vector<Action>& actions) {
    std::map<std::pair<ActionType, std::uint32_t>, Action> last;
    for (const Action& action : actions) last[{action.type, action.field}] = action;
    std::vector<Action> fields, groups, outputs;
    for (const auto& [what, action] : last)
      (action.type == ActionType::kGroup    ? groups
       : action.type == ActionType::kOutput ? outputs
                                            : fields)
          .push_back(action);
    // A set with a group has no output.
    const std::vector<Action>& end = groups.empty() ? outputs : groups;
    fields.insert(fields.end(), end.begin(), end.end());
    return fields;
  }
  void act(Walk& walk, const std::vector<Action>& actions) {
    for (const Action& action : actions) {
      if (action.type == ActionType::kOutput) {
        if (action.value == port::kController) {
          ++walk.packet_ins;
        } else if (action.value != walk.in_port) {
          walk.sent.emplace_back(action.value, walk.frame);
        }
      } else if (action.type == ActionType::kGroup) {
        to_group(walk, naive_.groups.at(action.value));
      } else {
        for (int i = 0; i < 6; ++i)
          walk.frame[static_cast<std::size_t>(i)] = static_cast<char>(action.set.low >> (40 - 8 * i));
      }
    }
  }
  void to_group(Walk& walk, const GroupMod& group) {
    std::uint64_t total = 0, low = 0;
    for (const Bucket& bucket : group.buckets) total += bucket.weight;
    const std::uint64_t at = std::uint64_t{select_hash(key_of(walk.frame, walk.in_port, walk.metadata))} * total >> 32;
    for (const Bucket& bucket : group.buckets) {
      const std::uint64_t high = low + bucket.weight;
      const bool chosen = group.type != GroupType::kSelect || (low <= at && at < high);
      low = high;
      if (!chosen) continue;
      const std::string before = walk.frame;
      act(walk, ordered_set(bucket.actions));
      walk.frame = before;
    }
  }

  /// A packet comes, if the specifications say which entries it meets.
  void meet() {
    Walk walk{1 + dice_.below(2), random_frame()};
    const std::string frame = walk.frame;
    std::vector<std::size_t> met;
    std::vector<Action> set;
    for (std::optional<std::uint8_t> table = 0; table;) {
      const std::vector<std::size_t> best = naive_.find(*table, key_of(walk.frame, walk.in_port, walk.metadata));
      if (best.size() > 1) return;
      table.reset();
      if (best.empty()) {
        set.clear();
        break;
      }
      met.push_back(best[0]);
      for (const Instruction& one : naive_.entries[best[0]].instructions) {
        if (one.type == InstructionType::kApplyActions) act(walk, one.actions);
        if (one.type == InstructionType::kWriteActions) set.insert(set.end(), one.actions.begin(), one.actions.end());
        if (one.type == InstructionType::kWriteMetadata)
          walk.metadata = (walk.metadata & ~one.metadata_mask) | (one.metadata & one.metadata_mask);
        if (one.type == InstructionType::kGotoTable) table = one.table;
      }
    }
    act(walk, ordered_set(set));
    for (const std::size_t i : met) {
      NaiveSwitch::Entry& entry = naive_.entries[i];
      ++entry.packets;
      entry.bytes += frame.size();
      entry.used = now_;
    }

    Packet* const packet = Packet::make(frame.data(), static_cast<std::uint32_t>(frame.size()));
    require_switch(packet != nullptr, "a packet leaks");
    KeepingSink sink;
    Interpreter(*switch_->datapath(), sink).process(packet, walk.in_port);
    std::sort(sink.sent.begin(), sink.sent.end());
    std::sort(walk.sent.begin(), walk.sent.end());
    require_switch(sink.sent == walk.sent, "other frames leave by other ports");
    packet_ins_ = 0;
    (void)talk(*peers_[1]);
    require_switch(packet_ins_ == walk.packet_ins, "controllers hear of another number of packets");
  }

  static std::vector<std::string> sorted(std::vector<std::string> texts) {
    std::sort(texts.begin(), texts.end());
    return texts;
  }
  void compare() {
    MultipartRequest request;
    request.body = FlowRequest<MultipartType::kFlow>();
    (void)peers_[1]->send(request, 8);
    std::vector<std::string> ours, theirs;
    for (const Message& message : talk(*peers_[1]))
      for (const FlowStats& one : std::get<std::vector<FlowStats>>(std::get<MultipartReply>(message.body).body))
        ours.push_back(text_of(one));
    for (const NaiveSwitch::Entry& entry : naive_.entries) theirs.push_back(text_of(naive_.stats(entry, now_)));
    require_switch(sorted(ours) == sorted(theirs), "other entries, or other counts");
    theirs.clear();
    for (FlowRemoved one : naive_.removed) {
      one.match.exact_1_0 = false;  // as above
      theirs.push_back(removed_text(one));
    }
    require_switch(sorted(removed_) == sorted(theirs), "other entries were removed");
  }
  /// What 1.3 can say of an entry.
  static std::string text_of(FlowStats stats) {
    stats.match.exact_1_0 = false;
    return flow_text(stats);
  }

  /// The rest of the input: a byte for the version and type of a message, one for the length of its body, and the body.
  void survive() {
    while (left_.size() >= 2) {
      Peer& peer = *peers_[left_[0] >> 7];
      const std::size_t body = std::min<std::size_t>(left_[1], left_.size() - 2);
      std::vector<std::uint8_t> bytes{static_cast<std::uint8_t>(peer.version),
                                      static_cast<std::uint8_t>(left_[0] & 0x1f),
                                      0,
                                      static_cast<std::uint8_t>(8 + std::min<std::size_t>(body, 240)),
                                      0,
                                      0,
                                      0,
                                      9};
      bytes.insert(bytes.end(), left_.begin() + 2,
                   left_.begin() + 2 + static_cast<std::ptrdiff_t>(std::min<std::size_t>(body, 240)));
      left_ = left_.subspan(2 + body);
      peer.send_bytes(bytes);
      for (int i = 0; i < 3; ++i) round();
      (void)peer.receive();
    }
    // A controller that comes now is served.
    Peer fresh(file_, Version::k1_3);
    (void)talk(fresh);
  }

  std::span<const std::uint8_t> left_;
  PipelineDice dice_;
  const std::string file_;
  std::int64_t now_ = 1;
  std::map<int, std::function<void()>> watched_;
  std::deque<std::function<void()>> posted_;
  std::shared_ptr<Switch> switch_;
  std::vector<std::unique_ptr<Peer>> peers_;
  NaiveSwitch naive_;
  std::vector<std::string> removed_;
  std::uint64_t packet_ins_ = 0;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  // Counters have a part for each of its threads, of which this is one.
  static Runtime runtime(Runtime::Options{});
  SwitchUnderFuzz({data, size}).run();
  return 0;
}
