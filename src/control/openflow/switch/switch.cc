#include "control/openflow/switch/switch.hh"

#include <fmt/format.h>
#include <sys/epoll.h>

#include <algorithm>
#include <array>
#include <map>
#include <mutex>
#include <new>
#include <utility>

#include "control/openflow/switch/flow_text.hh"
#include "control/openflow/switch/request.hh"
#include "headrace/timestamp.hh"

namespace headrace::openflow {

namespace {

std::mutex g_switches_lock;
std::map<uint64_t, std::weak_ptr<Switch>> g_switches;

/// How often it is asked whether workers and devices have followed, while a barrier waits, and else.
constexpr int64_t kBarrierPoll = 50'000, kSettlePoll = 2'000'000;
/// Packet-ins of one step, so that messages have their turns in a flood of them.
constexpr int kPacketInBurst = 64;

}  // namespace

std::string Switch::name_of(uint64_t number) { return fmt::format("{:016x}", number); }

std::shared_ptr<Switch> Switch::at(uint64_t number, const SwitchOptions& options, const Place& place) {
  const std::lock_guard guard(g_switches_lock);
  std::weak_ptr<Switch>& known = g_switches[number];
  if (std::shared_ptr<Switch> there = known.lock()) return there;
  auto made = std::make_shared<Switch>(number, options, place, [] { return clock::steady().ns; });
  known = made;
  (void)publish_datapath(made->name_, made->datapath_);
  return made;
}

Switch::Switch(uint64_t number, const SwitchOptions& options, Place place, Clock clock)
    : name_(name_of(number)),
      number_(number),
      place_(std::move(place)),
      datapath_(std::make_shared<SwitchDatapath>(number, std::move(clock), options.packet_ins)),
      pipeline_(datapath_->pipeline()),
      buffers_(options.buffers) {
  // Without a function: what wakes is looked at in step().
  (void)poller_.watch(datapath_->packet_ins().fd(), EPOLLIN, [](uint32_t) {});
}

Switch::~Switch() {
  if (channel_) {
    channel_->leave(this);
    place_.watch(poller_.fd(), nullptr);
  }
}

std::unique_ptr<Channel::Setup> Switch::prepare(const SwitchOptions& options, Errors& errors) {
  if (!channel_) {
    const auto watch = [place = place_, self = weak_from_this()](int fd, std::function<void()> ready) {
      if (!ready) return place.watch(fd, nullptr);
      place.watch(fd, [ready = std::move(ready), self] {
        ready();
        if (const std::shared_ptr<Switch> locked = self.lock()) locked->step();
      });
    };
    channel_ = Channel::at("openflow " + name_, watch);
    devices_ = std::make_unique<DeviceChangeListener>([post = place_.post, self = weak_from_this()] {
      post([self] {
        if (const std::shared_ptr<Switch> locked = self.lock()) locked->devices_changed();
      });
    });
    watch(poller_.fd(), [self = weak_from_this()] {
      if (const std::shared_ptr<Switch> locked = self.lock()) locked->poller_.dispatch();
    });
  }
  if (!adopted_) {
    // Nobody uses the tables yet.
    const std::lock_guard guard(datapath_->lock());
    pipeline_.set_ports(port_numbers(options));
    FlowMod all;
    all.command = FlowCommand::kDelete;
    all.table = kAllTables;
    (void)pipeline_.flow_mod(all, Version::k1_3, datapath_->now());
    const int before = errors.error_count();
    for (const FlowLine& flow : options.flows) {
      const ErrorCode error = pipeline_.flow_mod(flow.mod, Version::k1_3, datapath_->now());
      if (error == ErrorCode::kNone) continue;
      const ErrorDefinition& definition = definition_of(error);
      (void)errors.error("{}: {}", flow.where,
                         error_text(Version::k1_3, static_cast<uint16_t>(definition.type_1_3),
                                    static_cast<uint16_t>(definition.code_1_3)));
    }
    pipeline_.commit();
    if (errors.error_count() > before) return nullptr;
  }
  return channel_->prepare(options.channel, errors);
}

std::vector<uint32_t> Switch::port_numbers(const SwitchOptions& options) const {
  std::vector<uint32_t> numbers;
  for (uint32_t number = 1; number <= options.ports; ++number) numbers.push_back(number);
  if (options.local) numbers.push_back(port::kLocal);
  return numbers;
}

void Switch::adopt(const SwitchOptions& options, std::unique_ptr<Channel::Setup> setup, SwitchHost* host) {
  adopted_ = true;
  host_ = host;
  standalone_ = options.standalone;
  description_ = options.description;
  if (!options.standalone) datapath_->set_alone(false);
  std::vector<PortStatus> changes;
  {
    const std::lock_guard guard(datapath_->lock());
    pipeline_.set_ports(port_numbers(options));
    changes = datapath_->ports().bind(host->ends(), options.local ? std::optional(host->local_ends()) : std::nullopt,
                                      datapath_->now());
  }
  channel_->adopt(std::move(setup), this);
  if (!datapath_->injections().empty()) host_->packets_wait();
  changed_ = true;
  tell(changes);
  step();
}

void Switch::leave(SwitchHost* host) {
  if (host_ != host) return;
  host_ = nullptr;
  {
    const std::lock_guard guard(datapath_->lock());
    datapath_->ports().forget_devices();
  }
  if (channel_) channel_->leave(this);
}

void Switch::unbind() {
  const std::lock_guard guard(datapath_->lock());
  datapath_->ports().unbind();
}

void Switch::devices_changed() {
  std::vector<PortStatus> changes;
  {
    const std::lock_guard guard(datapath_->lock());
    changes = datapath_->ports().refresh();
  }
  tell(changes);
  step();
}

void Switch::tell(const std::vector<PortStatus>& changes) {
  if (changes.empty()) return;
  changed_ = true;
  for (const PortStatus& change : changes) channel_->port_status(change);
}

void Switch::on_controllers(bool there) {
  changed_ = true;
  datapath_->set_alone(standalone_ && !there);
}

void Switch::commit() {
  {
    const std::lock_guard guard(datapath_->lock());
    const Time now = datapath_->now();
    if (pipeline_.next_expiry() <= now) {
      pipeline_.expire(now);
      changed_ = true;
    }
    const bool asked = !barriers_.empty() && barriers_.back().point == 0;
    if (!changed_ && !asked) return;
    const rcu::Epoch point = pipeline_.commit();
    for (Barrier& barrier : barriers_)
      if (barrier.point == 0) barrier.point = point;
  }
  changed_ = false;
  // Not under the lock: devices are given copies of the tables.
  if (place_.update_devices) place_.update_devices();
}

void Switch::answer_barriers(std::list<Barrier>::iterator end) {
  for (auto barrier = barriers_.begin(); barrier != end; barrier = barriers_.erase(barrier)) {
    Connection* const connection = channel_->find(barrier->connection);
    if (connection == nullptr) continue;
    connection->send(barrier->xid, BarrierReply{});
    connection->release();
  }
}

void Switch::continue_dumps() {
  const std::lock_guard guard(datapath_->lock());
  std::erase_if(dumps_, [this](Dump& dump) {
    Connection* const connection = channel_->find(dump.connection);
    if (connection == nullptr) return true;
    Request request{*connection, dump.xid, {}};
    if (!std::visit([&](auto& walk) { return go_on(request, walk); }, dump.walk)) return false;
    connection->release();
    return true;
  });
}

void Switch::continue_changes() {
  std::erase_if(underway_, [this](Underway& one) {
    if (!go_on(one.change) || !is_done(one.change)) return false;
    if (Connection* const connection = channel_->find(one.connection)) {
      Request request{*connection, 0, one.bytes};
      if (one.buffer != kNoBuffer) request.refuse(release_buffer(one.buffer));
      connection->release();
    }
    return true;
  });
  // Until one of them is made in pieces itself.
  const auto free = [this] {
    return std::none_of(underway_.begin(), underway_.end(), [](const Underway& one) { return excludes(one.change); });
  };
  while (!postponed_.empty() && free()) {
    Postponed next = std::move(postponed_.front());
    postponed_.pop_front();
    Connection* const connection = channel_->find(next.connection);
    if (connection == nullptr) continue;
    Request request{*connection, next.xid, next.bytes};
    std::visit([&](auto& body) { obey(request, body); }, next.body);
    connection->release();
  }
}

void Switch::look_at_controllers() {
  for (const auto reason : {PacketInReason::kNoMatch, PacketInReason::kAction, PacketInReason::kInvalidTtl})
    datapath_->packet_ins().set_wanted(reason, channel_->wants_packet_in(reason));
  datapath_->set_wants_invalid_ttl(channel_->wants_packet_in(PacketInReason::kInvalidTtl));
  PacketIn miss;
  miss.reason = PacketInReason::kNoMatch;
  const Body body = miss;
  bool to_controller = false;
  channel_->each([&](Connection& connection) {
    to_controller |= connection.version() == Version::k1_0 && connection.wants(body);
  });
  const std::lock_guard guard(datapath_->lock());
  if (to_controller == pipeline_.view().miss_to_controller()) return;
  pipeline_.set_miss_to_controller(to_controller);
  changed_ = true;
}

void Switch::step() {
  if (!channel_) return;
  look_at_controllers();
  continue_changes();
  commit();
  buffers_.expire(datapath_->now());
  (void)datapath_->packet_ins().drain(kPacketInBurst, [this](const QueuedPacketIn& in) { send_packet_in(in); });
  std::vector<FlowRemoved> removed;
  bool behind = false;
  // What was removed before a barrier is told before its answer.
  const auto seen = std::find_if(barriers_.begin(), barriers_.end(),
                                 [](const Barrier& barrier) { return !OpenFlowPipeline::seen(barrier.point); });
  {
    const std::lock_guard guard(datapath_->lock());
    removed = pipeline_.settle(OpenFlowPipeline::kPiece);
    behind = pipeline_.behind();
  }
  for (const FlowRemoved& message : removed) channel_->flow_removed(message);
  if (!behind) answer_barriers(seen);
  continue_dumps();
  arm();
}

void Switch::arm() {
  const Time now = datapath_->now();
  const std::lock_guard guard(datapath_->lock());
  const Time expiry = pipeline_.next_expiry();
  int64_t wait = expiry == kNoTime ? -1 : std::max<int64_t>(expiry - now, 0);
  const auto at_most = [&wait](int64_t ns) { wait = wait < 0 ? ns : std::min(wait, ns); };
  if (!underway_.empty() || pipeline_.behind()) at_most(0);
  if (pipeline_.unsettled() > 0 || !dumps_.empty()) at_most(kSettlePoll);
  if (!barriers_.empty()) at_most(kBarrierPoll);
  if (!datapath_->packet_ins().empty()) at_most(0);
  if (buffers_.next_expiry() != INT64_MAX) at_most(std::max<int64_t>(buffers_.next_expiry() - now, 0));
  poller_.wake_after(wait);
}

std::string Switch::describe_flows() const {
  FlowRequest<MultipartType::kFlow> all;
  std::vector<FlowStats> flows;
  {
    const auto guard = datapath_->look();
    uint32_t cursor = 0;
    while (pipeline_.flow_stats(all, datapath_->now(), cursor, SIZE_MAX, flows)) {
    }
  }
  std::stable_sort(flows.begin(), flows.end(), [](const FlowStats& a, const FlowStats& b) {
    return a.table != b.table ? a.table < b.table : a.priority > b.priority;
  });
  std::string text;
  for (const FlowStats& flow : flows) text += unparse_flow(flow) + "\n";
  return text;
}

std::string Switch::describe_groups() const {
  static constexpr const char* kTypes[] = {"all", "select", "indirect", "ff"};
  const auto guard = datapath_->look();
  std::string text;
  for (const GroupDescription& group : pipeline_.group_descriptions()) {
    const GroupStats stats = pipeline_.group_stats(group.group, datapath_->now()).front();
    text += fmt::format("group_id={},type={}, packets={}, bytes={}", group.group,
                        kTypes[static_cast<size_t>(group.type)], stats.packets, stats.bytes);
    for (size_t i = 0; i < group.buckets.size(); ++i) {
      const Bucket& bucket = group.buckets[i];
      text += ", bucket=";
      if (bucket.weight != 0) text += fmt::format("weight:{},", bucket.weight);
      if (bucket.watch_port != port::kAny) text += fmt::format("watch_port:{},", unparse_port(bucket.watch_port));
      if (bucket.watch_group != group::kAny) text += fmt::format("watch_group:{},", bucket.watch_group);
      text += fmt::format("packets:{},actions={}", stats.buckets[i].packets, unparse_actions(bucket.actions));
    }
    text += "\n";
  }
  return text;
}

std::string Switch::describe_meters() const {
  const auto guard = datapath_->look();
  std::vector<MeterConfig> configs;
  std::vector<MeterStats> stats;
  (void)pipeline_.meter_configurations(meter::kAll, configs);
  (void)pipeline_.meter_stats(meter::kAll, datapath_->now(), stats);
  std::string text;
  for (size_t i = 0; i < configs.size(); ++i) {
    text +=
        fmt::format("meter={} {}, packets={}, bytes={}", configs[i].meter,
                    (configs[i].flags & meter_flag::kPktps) != 0 ? "pktps" : "kbps", stats[i].packets, stats[i].bytes);
    for (size_t k = 0; k < configs[i].bands.size(); ++k) {
      const MeterBand& band = configs[i].bands[k];
      text +=
          fmt::format(", band=type:{},rate:{}", band.type == MeterBandType::kDrop ? "drop" : "dscp_remark", band.rate);
      if (band.burst != 0) text += fmt::format(",burst:{}", band.burst);
      text += fmt::format(",packets:{}", stats[i].bands[k].packets);
    }
    text += "\n";
  }
  return text;
}

std::string Switch::describe_addresses() const {
  std::string text;
  for (const MacTable::Known& known : datapath_->addresses().known(datapath_->seconds())) {
    std::array<uint8_t, 6> bytes;
    for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<uint8_t>(known.address >> (40 - 8 * i));
    text += fmt::format("{} {} {}\n", EtherAddress(bytes).unparse(), unparse_port(known.port), known.network);
  }
  return text;
}

std::string Switch::describe_counters() const {
  static constexpr const char* kReasons[] = {"no match", "action", "TTL not valid"};
  static constexpr const char* kLosses[] = {"not wanted", "above the rate", "queue full", "no packet buffer"};
  const PacketInQueue& queue = datapath_->packet_ins();
  std::string text;
  for (int reason = 0; reason < kPacketInReasons; ++reason) {
    const auto of = static_cast<PacketInReason>(reason);
    text += fmt::format("packet-ins, {}: {} queued", kReasons[reason], queue.queued(of));
    for (int loss = 0; loss < PacketInQueue::kLosses; ++loss)
      text += fmt::format(", {} {}", queue.lost(of, static_cast<PacketInQueue::Loss>(loss)), kLosses[loss]);
    text += "\n";
  }
  text += fmt::format("buffers: {} of {} in use, {} expired, {} times none was free\n", buffers_.waiting(),
                      buffers_.places(), buffers_.expired(), buffers_.refused());
  text += fmt::format("packet-outs lost: {}\n", injections_lost_);
  if (channel_) {
    const ConnectionCounters counters = channel_->counters();
    text += fmt::format("messages: {} received, {} sent, {} errors sent; packet-ins: {} sent, {} dropped\n",
                        counters.received, counters.sent, counters.errors, counters.packet_ins,
                        counters.packet_ins_dropped);
  }
  return text;
}

std::string Switch::describe_controllers() const { return channel_ ? channel_->describe() : std::string(); }

std::string Switch::describe_ports() const {
  std::vector<Port> ports;
  std::vector<PortStats> stats;
  {
    const auto guard = datapath_->look();
    ports = datapath_->ports().descriptions();
    (void)datapath_->ports().statistics({}, datapath_->now(), stats);
  }
  std::string text;
  for (size_t i = 0; i < ports.size(); ++i) {
    const Port& port = ports[i];
    const bool down = (port.config & port_config::kPortDown) != 0, link = (port.state & port_state::kLinkDown) == 0;
    text += fmt::format("{} {} {} {}{}, rx {} packets {} bytes {} dropped, tx {} packets {} bytes {} dropped\n",
                        unparse_port(port.number), port.name, EtherAddress(port.address).unparse(),
                        link ? "up" : "no link", down ? " (set down)" : "", stats[i].rx_packets, stats[i].rx_bytes,
                        stats[i].rx_dropped, stats[i].tx_packets, stats[i].tx_bytes, stats[i].tx_dropped);
  }
  return text;
}

}  // namespace headrace::openflow
