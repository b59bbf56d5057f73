#pragma once
/// \file
/// Many descriptors and one timer behind one descriptor, which the control thread's loop watches.

#include <cstdint>
#include <functional>
#include <map>
#include <memory>

namespace headrace::openflow {

class Poller {
 public:
  /// With the events of epoll(7) that have come.
  using Ready = std::function<void(uint32_t events)>;

  Poller();
  ~Poller();
  Poller(const Poller&) = delete;
  Poller& operator=(const Poller&) = delete;

  /// Readable whenever dispatch() has something to do.
  int fd() const { return epoll_; }
  /// Calls `ready` from dispatch(). A second call for the same descriptor changes events and function. False with errno
  /// if the system has no room.
  [[nodiscard]] bool watch(int fd, uint32_t events, Ready ready);
  void change(int fd, uint32_t events);
  /// Before the descriptor is closed.
  void forget(int fd);
  /// fd() becomes readable after so many nanoseconds; negative: not by time. A later call replaces it.
  void wake_after(int64_t nanoseconds);
  /// Calls the functions of those that are ready. Does not wait.
  void dispatch();

 private:
  struct Watch {
    uint64_t id;
    uint32_t events;
    std::shared_ptr<Ready> ready;
  };
  int epoll_;
  int timer_;
  uint64_t next_id_ = 1;
  std::map<uint64_t, std::shared_ptr<Ready>> by_id_;
  std::map<int, Watch> by_fd_;
};

}  // namespace headrace::openflow
