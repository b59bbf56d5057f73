#pragma once
/// \file
/// One connection to a controller: the protocol over a link.

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>

#include "control/openflow/channel/handler.hh"
#include "control/openflow/channel/link.hh"
#include "control/openflow/channel/options.hh"
#include "control/openflow/channel/roles.hh"
#include "control/openflow/framer.hh"

namespace headrace::openflow {

struct ConnectionCounters {
  uint64_t received = 0, sent = 0;  ///< messages; hellos and echoes, too
  uint64_t errors = 0;              ///< that were sent
  uint64_t packet_ins = 0, packet_ins_dropped = 0;

  ConnectionCounters& operator+=(const ConnectionCounters& other) {
    received += other.received;
    sent += other.sent;
    errors += other.errors;
    packet_ins += other.packet_ins;
    packet_ins_dropped += other.packet_ins_dropped;
    return *this;
  }
};

/// On the control thread, as long as the channel has it: keep id(), and ask Channel::find().
class Connection {
 public:
  /// What connections share.
  class Host {
   public:
    virtual Handler* handler() = 0;  // null: requests wait
    virtual const Options& options() const = 0;
    virtual int64_t now() const = 0;
    virtual MasterElection& election() = 0;
    virtual void set_role(Connection& connection, Role role) = 0;
    /// The main connection of an auxiliary one; itself for others; null if that is gone.
    virtual Connection* main_of(Connection& connection) = 0;
    /// Something is to be sent or handled, or the connection has ended.
    virtual void wake() = 0;
    virtual void log(const Connection& connection, const std::string& text) = 0;

   protected:
    ~Host() = default;
  };
  struct Origin {
    std::string peer;       ///< "tcp:192.0.2.1:6653"
    bool primary = false;   ///< the switch has opened it
    uint8_t auxiliary = 0;  ///< the number of an auxiliary connection
    Versions versions;
  };

  Connection(Host& host, uint64_t id, Origin origin, std::unique_ptr<Link> link);
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  uint64_t id() const { return id_; }
  const std::string& peer() const { return origin_.peer; }
  bool primary() const { return origin_.primary; }
  uint8_t auxiliary() const { return origin_.auxiliary; }
  /// Versions have been negotiated, and the connection has not ended.
  bool established() const { return state_ == State::kEstablished; }
  Version version() const { return version_; }
  /// Of the controller: an auxiliary connection has that of the main one.
  Role role();
  /// Of set-config: bytes of a buffered packet that missed all entries. Controllers that opened the connection get no
  /// asynchronous messages before they have asked for them by a number other than 0, or by set-async, as with Open
  /// vSwitch.
  uint16_t miss_send_len() const { return miss_send_len_; }
  void set_miss_send_len(uint16_t bytes);

  /// Sends a reply. The connection's version is used, and its number put into features. Nothing happens if the version
  /// has no such message, or if the connection has ended.
  void send(uint32_t xid, Body body);
  /// Sends an error about the message `bytes`.
  void refuse(ErrorCode code, std::span<const uint8_t> bytes);
  /// Between hold() and release() no request of this connection is handled; echoes are answered. Calls count.
  void hold() { ++holds_; }
  void release();
  bool held() const { return holds_ > 0; }
  /// Ends the connection after what is unsent; `why` is for the log.
  void finish(std::string why);

  const ConnectionCounters& counters() const { return counters_; }

  // For Channel

  /// Whether asynchronous message `body` is for this controller; only main connections say so.
  bool wants(const Body& body) const;
  /// Sends an asynchronous message, unless it is a packet-in that must be dropped.
  void notify(const Message& message);
  AsyncConfig& async() { return async_; }
  void set_role(Role role) { role_ = role; }
  /// The socket has something.
  void readable();
  /// Handles what waits, as far as it may now, and sends what there is.
  void turn();
  /// Does what is due; 'next_due' is when the next thing will be, INT64_MAX: never.
  void on_time();
  int64_t next_due() const;
  /// Requests wait that turn() can handle.
  bool has_turn() const;
  bool wants_to_read() const;
  bool wants_to_write() const { return state_ != State::kOver && link_->wants_to_write(); }
  /// Nothing will be sent any more: finish() was called, or the link has failed.
  bool ended() const { return state_ == State::kClosing || state_ == State::kOver; }
  /// ended(), and the object is of no more use.
  bool over() const { return state_ == State::kOver; }
  const std::string& why_ended() const { return why_; }
  int64_t established_at() const { return established_at_; }
  size_t unsent() const { return link_->unsent(); }
  int fd() const { return link_->fd(); }

 private:
  enum class State : uint8_t { kHello, kEstablished, kClosing, kOver };
  struct Parts {
    MultipartRequest whole;
    size_t bytes = 0;
    bool refused = false;
  };

  void push(const Message& message);
  void fail(std::string why);
  void flush();
  void sort(std::span<const uint8_t> bytes);
  void take_hello(std::span<const uint8_t> bytes);
  void refuse_hello(const std::string& why);
  void handle(std::span<const uint8_t> bytes);
  void take_role(const RoleState& request, uint32_t xid, std::span<const uint8_t> bytes);
  void take_part(Message&& message, std::span<const uint8_t> bytes);
  bool congested() const { return link_->unsent() >= host_.options().limits.unsent; }
  /// Of echo requests, or in their place.
  int64_t interval() const;

  Host& host_;
  const uint64_t id_;
  const Origin origin_;
  std::unique_ptr<Link> link_;
  State state_ = State::kHello;
  Version version_;
  Role role_ = Role::kEqual;
  AsyncConfig async_ = default_async();
  uint16_t miss_send_len_;
  bool asked_ = false;  // for asynchronous messages
  std::string why_;

  Framer framer_;
  std::vector<uint8_t> received_;
  ByteQueue waiting_;       // whole requests
  bool peer_done_ = false;  // it sends no more
  int holds_ = 0;
  std::map<uint32_t, Parts> parts_;  // by xid

  uint64_t pushed_ = 0;   // bytes, as the next
  uint64_t replied_ = 0;  // where the last reply ends
  int64_t begun_at_;      // the state
  int64_t established_at_ = 0;
  int64_t heard_at_;        // something was received
  int64_t probed_at_ = -1;  // an echo request was sent since; -1: none
  int64_t moved_at_;        // something was sent, or nothing was to be sent
  uint64_t moved_to_ = 0;
  uint32_t next_xid_ = 1;
  ConnectionCounters counters_;
};

}  // namespace headrace::openflow
