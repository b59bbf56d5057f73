#pragma once
/// \file
/// All connections of a switch to its controllers.

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "control/openflow/channel/connection.hh"
#include "control/openflow/channel/dialer.hh"
#include "control/openflow/channel/handler.hh"
#include "control/openflow/channel/listener.hh"
#include "control/openflow/channel/options.hh"
#include "control/openflow/channel/poller.hh"
#include "headrace/error.hh"

namespace headrace::openflow {

/// It belongs to the process: switches of one configuration after the other take it over by its name, and connections
/// stay. In steps:
///
///     channel_ = Channel::at(name, watch);                    // the one of the running configuration, if there is one
///     setup_ = channel_->prepare(options, errors);            // may fail; changes nothing that runs
///     channel_->adopt(std::move(setup_), handler);            // when the configuration begins to run
///     channel_->leave(handler);                               // at the end; nothing if another one has adopted it
///
/// at() and prepare() may be called by any thread; everything else by the control thread, or while it stands.
class Channel final : private Connection::Host {
 public:
  /// As Runtime::watch().
  using Watch = std::function<void(int fd, std::function<void()> ready)>;
  using Clock = std::function<int64_t()>;
  using Log = std::function<void(const std::string& line)>;

  /// What prepare() has made ready.
  struct Setup {
    Options options;
    std::shared_ptr<TlsContext> tls;
    std::vector<std::unique_ptr<Listener>> listeners;  ///< new ones
  };

  /// The channel of this name, or a new one. `watch` may be empty: the caller then calls run() when fd() is readable.
  static std::shared_ptr<Channel> at(const std::string& name, const Watch& watch);
  /// `clock`: nanoseconds that never go back; `log`: empty: the standard error stream.
  explicit Channel(std::string name, Clock clock = {}, Log log = {});
  ~Channel();
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;

  /// Opens what must be open, and reads keys. Null if there were errors.
  std::unique_ptr<Setup> prepare(const Options& options, Errors& errors);
  /// From now on `handler` gets the messages. Connections stay whose targets, versions and keys are still there, with
  /// roles, held barriers and all; for those the handler takes over what the last one owes.
  void adopt(std::unique_ptr<Setup> setup, Handler* handler);
  /// Requests wait for the next adopt().
  void leave(Handler* handler);

  /// Readable when run() has something to do.
  int fd() const { return poller_.fd(); }
  /// Does what is to be done, and does not wait.
  void run();

  /// Null if it is gone.
  Connection* find(uint64_t id);
  /// For each connection that has agreed on a version and not ended, auxiliary ones, too.
  void each(const std::function<void(Connection&)>& action);
  /// Sends a packet-in to whom it concerns. With `by_miss_send_len` each controller gets as much of a buffered packet as
  /// it asked for by set-config; without, all of `data`. With `only_1_0` no entry has matched, and those who speak 1.3 do
  /// not hear of it. Else a packet that 1.3 calls a miss comes from a table-miss entry: for 1.0, which knows none, an
  /// entry's action has sent it, as with Open vSwitch.
  void packet_in(const PacketIn& message, bool by_miss_send_len, bool only_1_0 = false);
  void flow_removed(const FlowRemoved& message) { notify(message); }
  void port_status(const PortStatus& message) { notify(message); }
  /// Whether any controller would get a packet-in for this reason.
  bool wants_packet_in(PacketInReason reason);

  /// As on_controllers() has said last; none before.
  std::optional<bool> controllers_there() const { return told_; }
  /// Of all connections, also those that are gone.
  ConnectionCounters counters() const;
  uint64_t clients_refused() const { return clients_refused_; }
  /// The ports that passive targets listen at, in the order of the options; 0 for files.
  std::vector<uint16_t> ports() const;
  /// A line for each target and client: who, state, role, version, unsent bytes, last error.
  std::string describe();

 private:
  struct Entry {
    std::unique_ptr<Connection> connection;
    Dialer* dialer = nullptr;            // null: a client
    const Listener* listener = nullptr;  // of a client
    bool reported = false;               // as ended
    bool watched = false;
  };

  // Connection::Host
  Handler* handler() override { return handler_; }
  const Options& options() const override { return options_; }
  int64_t now() const override { return clock_(); }
  MasterElection& election() override { return election_; }
  void set_role(Connection& connection, Role role) override;
  Connection* main_of(Connection& connection) override;
  void wake() override;
  void log(const Connection& connection, const std::string& text) override;
  void write_log(const std::string& peer, const std::string& text);

  void notify(Body body);
  Connection& add(int fd, const Target& target, Connection::Origin origin);
  void dialed(Dialer& dialer, int fd);
  void accept_client(Listener& listener);
  void watch_listener(Listener& listener);
  void watch_connection(Entry& entry);
  void report_ended(Entry& entry);
  Connection* connection_of(const Dialer& dialer);
  Connection* main_to(const Target& target);
  /// False for auxiliary connections while there is no main one that speaks 1.3.
  bool may_dial(const Dialer& dialer);
  /// The connection that carries packet-ins for `main`.
  Connection& carrier(Connection& main);
  void tell_handler();
  void arm(bool at_once);

  const std::string name_;
  const Clock clock_;
  const Log log_;
  Watch watch_;
  Poller poller_;
  Handler* handler_ = nullptr;
  mutable std::mutex lock_;  // options_, tls_ and listening_ when they change, or another thread reads them
  std::set<Target> listening_;
  Options options_;
  std::shared_ptr<TlsContext> tls_;
  std::vector<std::unique_ptr<Dialer>> dialers_;
  std::vector<std::unique_ptr<Listener>> listeners_;
  std::map<uint64_t, Entry> entries_;
  uint64_t next_id_ = 1;
  uint64_t packet_in_turn_ = 0;
  MasterElection election_;
  bool running_ = false;
  bool woken_ = false;
  int64_t there_at_ = 0;  // when a controller was there last
  std::optional<bool> told_;
  ConnectionCounters past_;
  uint64_t clients_refused_ = 0;
};

}  // namespace headrace::openflow
