#pragma once
/// \file
/// Keeps the connection to one controller up: looks its address up, connects, waits, tries again.

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "control/openflow/channel/backoff.hh"
#include "control/openflow/channel/poller.hh"
#include "control/openflow/channel/sockets.hh"

namespace headrace::openflow {

class Dialer {
 public:
  /// What a dialer needs. The functions are called from Poller::dispatch() and step().
  struct Place {
    Poller& poller;
    std::function<int64_t()> now;
    /// A socket is connected. The dialer rests until lost().
    std::function<void(Dialer& dialer, int fd)> connected;
    std::function<void(const std::string& text)> log;
  };

  /// `auxiliary`: 0, or the number of an auxiliary connection.
  Dialer(Place place, Target target, int64_t most_backoff, uint8_t auxiliary);
  ~Dialer();
  Dialer(const Dialer&) = delete;
  Dialer& operator=(const Dialer&) = delete;

  const Target& target() const { return target_; }
  uint8_t auxiliary() const { return auxiliary_; }
  /// Begins what is due. `allowed`: false for auxiliary connections without a main one; begins nothing then.
  void step(bool allowed);
  int64_t next_due() const { return due_; }
  /// The connection, which was up for so many nanoseconds (0: never), has ended.
  void lost(int64_t up);
  /// Given to connected(), and not lost() since.
  bool resting() const { return state_ == State::kResting; }
  /// Why the last attempt failed; empty if it did not.
  const std::string& error() const { return error_; }

 private:
  enum class State : uint8_t { kWaiting, kResolving, kConnecting, kResting };
  void look_up();
  void try_next();
  void try_outcome();
  void failed(std::string why);
  void drop_socket();
  void drop_resolution();

  const Place place_;
  const Target target_;
  const uint8_t auxiliary_;
  Backoff backoff_;
  State state_ = State::kWaiting;
  int64_t due_;  // the end of the state
  std::unique_ptr<Resolution> resolution_;
  int resolution_fd_ = -1;  // watched
  std::vector<SocketAddress> addresses_;
  size_t next_address_ = 0;
  int fd_ = -1;  // of kConnecting
  std::string error_, error_told_;
};

}  // namespace headrace::openflow
