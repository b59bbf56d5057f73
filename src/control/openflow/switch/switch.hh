#pragma once
/// \file
/// An OpenFlow switch: what controllers ask for, done to the tables that packets meet.

#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "control/openflow/channel/channel.hh"
#include "control/openflow/switch/flow_text.hh"
#include "control/openflow/switch/packet_buffers.hh"
#include "control/openflow/switch/switch_datapath.hh"

namespace headrace::openflow {

/// What one configuration says about a switch.
struct SwitchOptions {
  std::string description;      ///< for controllers (OFPMP_DESC)
  uint32_t ports = 0;           ///< real ones, 1 to this number
  bool local = false;           ///< there is the port LOCAL
  bool standalone = false;      ///< without a controller, all goes to NORMAL
  std::vector<FlowLine> flows;  ///< that it has when it is new
  PacketBuffers::Options buffers;
  PacketInQueue::Options packet_ins;
  Options channel;
};

/// The running configuration, as a switch needs it.
class SwitchHost {
 public:
  /// Packets wait in the switch's injections(). Control thread.
  virtual void packets_wait() = 0;
  /// The devices behind ports 1 and so on, and behind LOCAL.
  virtual std::vector<SwitchPorts::Ends> ends() const = 0;
  virtual SwitchPorts::Ends local_ends() const = 0;

 protected:
  ~SwitchHost() = default;
};

/// It belongs to the process: configurations one after the other take it over by its number, and tables, counters and
/// connections stay.
///
///     switch_ = Switch::at(number, place);              // the one of the running configuration, if there is one
///     setup_ = switch_->prepare(options, errors);       // may fail; changes nothing that runs
///     switch_->adopt(options, std::move(setup_), host); // when the configuration runs
///     switch_->leave(host);                             // at the end; nothing if another one has adopted it
///
/// at() and prepare() may be called by any thread, and functions that say so; all others by the control thread. While that
/// makes the next router, the one that stands in for it calls step() and what devices and connections bring.
class Switch final : private Handler, public std::enable_shared_from_this<Switch> {
 public:
  using Clock = SwitchDatapath::Clock;
  /// Where a switch lives.
  struct Place {
    Channel::Watch watch;                             ///< as Runtime::watch() for what is urgent
    std::function<void()> update_devices;             ///< as Router::update_devices(), of the current router
    std::function<void(std::function<void()>)> post;  ///< as Runtime::post_later(), likewise
  };

  /// \param options buffers and rates are those with which the switch was made
  static std::shared_ptr<Switch> at(uint64_t number, const SwitchOptions& options, const Place& place);
  /// \param clock nanoseconds that never go back
  Switch(uint64_t number, const SwitchOptions& options, Place place, Clock clock);
  ~Switch();
  Switch(const Switch&) = delete;
  Switch& operator=(const Switch&) = delete;

  /// For workers.
  const std::shared_ptr<SwitchDatapath>& datapath() const { return datapath_; }
  uint64_t number() const { return number_; }
  /// As NAME of OpenFlowTables.
  static std::string name_of(uint64_t number);

  std::unique_ptr<Channel::Setup> prepare(const SwitchOptions& options, Errors& errors);
  void adopt(const SwitchOptions& options, std::unique_ptr<Channel::Setup> setup, SwitchHost* host);
  void leave(SwitchHost* host);
  /// The running configuration is about to be replaced: its devices are there for the last time.
  void unbind();

  /// Does what is due and whatever follows from messages. Called after each of them, and at next_due().
  void step();

  /// Texts for handlers. Any thread.
  std::string describe_flows() const;
  std::string describe_ports() const;
  std::string describe_groups() const;
  std::string describe_meters() const;
  std::string describe_addresses() const;
  /// Control thread, or while it stands: what the channel and the queues have counted, and who is connected.
  std::string describe_counters() const;
  std::string describe_controllers() const;

 private:
  struct Request;
  struct Barrier {
    uint64_t connection;
    uint32_t xid;
    rcu::Epoch point = 0;  ///< 0: nothing was committed since it came
  };
  struct FlowWalk {
    FlowRequest<MultipartType::kFlow> request;
    uint32_t cursor = 0;
  };
  using Change = std::variant<OpenFlowPipeline::Removal, OpenFlowPipeline::Modification, OpenFlowPipeline::Departure>;
  /// A change of many entries. The connection goes on behind it.
  struct Underway {
    uint64_t connection;
    Change change;
    uint32_t buffer;  ///< that it names, or kNoBuffer
    std::vector<uint8_t> bytes;
  };
  /// A request that waits for changes of others to be over. The connection goes on behind it.
  struct Postponed {
    uint64_t connection;
    uint32_t xid;
    std::variant<FlowMod, GroupMod, MeterMod> body;
    std::vector<uint8_t> bytes;
  };
  /// Statistics that are made in pieces, between which other messages have their turns.
  struct Dump {
    uint64_t connection;
    uint32_t xid;
    std::variant<FlowWalk, OpenFlowPipeline::AggregateWalk, std::unique_ptr<OpenFlowPipeline::TableWalk>> walk;
  };

  // Handler
  void on_message(Connection& connection, Message&& message, std::span<const uint8_t> bytes) override;
  void on_connected(Connection&) override {}
  void on_disconnected(Connection&) override {}
  void on_controllers(bool there) override;

  // requests.cc
  void handle(Request& request, FeaturesRequest& body);
  void handle(Request& request, GetConfigRequest& body);
  void handle(Request& request, SetConfig& body);
  void handle(Request& request, FlowMod& body);
  void handle(Request& request, GroupMod& body);
  void handle(Request& request, MeterMod& body);
  void handle(Request& request, TableMod& body);
  void handle(Request& request, PortMod& body);
  void handle(Request& request, PacketOut& body);
  void handle(Request& request, MultipartRequest& body);
  void handle(Request& request, BarrierRequest& body);
  void handle(Request& request, QueueGetConfigRequest& body);
  /// A change of groups or meters waits for those that use them in pieces. So does a modification behind one that waits, which
  /// else might wait for ever.
  bool must_wait(const FlowMod& body) const;
  bool must_wait(const GroupMod&) const { return excludes(); }
  bool must_wait(const MeterMod&) const { return excludes(); }
  bool excludes() const;
  static bool excludes(const Change& change) { return !std::holds_alternative<OpenFlowPipeline::Removal>(change); }
  template <typename Mod>
  void obey_or_postpone(Request& request, Mod& body);
  void obey(Request& request, FlowMod& body);
  void obey(Request& request, GroupMod& body);
  void obey(Request& request, MeterMod& body);
  /// Makes the first piece of a change, and the next ones when others had their turns.
  void begin(Request& request, Change change, uint32_t buffer);
  /// Makes a piece. False: there was no memory for it.
  bool go_on(Change& change);
  static bool is_done(const Change& change);
  bool has_port(uint32_t number) const;
  /// False: the queue is full.
  bool inject(Packet* packet, uint32_t in_port, std::vector<uint32_t>&& program);
  /// Sends a buffered packet through the tables, after a flow-mod that names it.
  ErrorCode release_buffer(uint32_t buffer);
  void send_packet_in(const QueuedPacketIn& in);

  // statistics.cc
  void answer(Request& request, EmptyRequest<MultipartType::kDesc>& body);
  void answer(Request& request, EmptyRequest<MultipartType::kTable>& body);
  void answer(Request& request, EmptyRequest<MultipartType::kGroupDesc>& body);
  void answer(Request& request, EmptyRequest<MultipartType::kGroupFeatures>& body);
  void answer(Request& request, EmptyRequest<MultipartType::kMeterFeatures>& body);
  void answer(Request& request, EmptyRequest<MultipartType::kPortDesc>& body);
  void answer(Request& request, NumberRequest<MultipartType::kGroup>& body);
  void answer(Request& request, NumberRequest<MultipartType::kMeter>& body);
  void answer(Request& request, NumberRequest<MultipartType::kMeterConfig>& body);
  void answer(Request& request, FlowRequest<MultipartType::kFlow>& body);
  void answer(Request& request, FlowRequest<MultipartType::kAggregate>& body);
  void answer(Request& request, PortStatsRequest& body);
  void answer(Request& request, QueueStatsRequest& body);
  void answer(Request& request, std::vector<TableFeatures>& body);
  void answer(Request& request, ExperimenterMultipart& body);
  /// Makes the first piece, and the next ones when others had their turns.
  void begin(Request& request, decltype(Dump::walk) walk);
  /// Makes a piece, and sends what the connection takes now. True: all has been sent.
  bool go_on(Request& request, FlowWalk& walk);
  bool go_on(Request& request, OpenFlowPipeline::AggregateWalk& walk);
  bool go_on(Request& request, std::unique_ptr<OpenFlowPipeline::TableWalk>& walk);

  std::vector<uint32_t> port_numbers(const SwitchOptions& options) const;
  void devices_changed();
  void tell(const std::vector<PortStatus>& changes);
  void commit();
  void answer_barriers(std::list<Barrier>::iterator end);
  void continue_dumps();
  void continue_changes();
  void look_at_controllers();
  void arm();

  const std::string name_;
  const uint64_t number_;
  const Place place_;
  const std::shared_ptr<SwitchDatapath> datapath_;
  OpenFlowPipeline& pipeline_;
  std::shared_ptr<Channel> channel_;
  Poller poller_;
  SwitchHost* host_ = nullptr;
  bool adopted_ = false;
  bool standalone_ = false;
  std::string description_;

  PacketBuffers buffers_;
  uint16_t fragments_ = 0;  // of set-config
  bool changed_ = false;    // tables, or what else workers and devices see, since the last commit
  std::list<Barrier> barriers_;
  uint64_t injections_lost_ = 0;
  std::list<Dump> dumps_;
  std::list<Underway> underway_;
  std::list<Postponed> postponed_;
  std::unique_ptr<DeviceChangeListener> devices_;
};

}  // namespace headrace::openflow
