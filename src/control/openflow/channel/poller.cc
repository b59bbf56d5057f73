#include "control/openflow/channel/poller.hh"

#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

namespace headrace::openflow {

namespace {

constexpr int64_t kNanoseconds = 1'000'000'000;
constexpr uint64_t kTimer = 0;
constexpr int kMostEvents = 64;

epoll_event event_of(uint32_t events, uint64_t id) {
  epoll_event event{};
  event.events = events;
  event.data.u64 = id;
  return event;
}

}  // namespace

Poller::Poller()
    : epoll_(epoll_create1(EPOLL_CLOEXEC)), timer_(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK)) {
  epoll_event event = event_of(EPOLLIN, kTimer);
  if (epoll_ < 0 || timer_ < 0 || epoll_ctl(epoll_, EPOLL_CTL_ADD, timer_, &event) != 0)
    throw std::system_error(errno, std::generic_category(), "OpenFlow channel");
}

Poller::~Poller() {
  close(timer_);
  close(epoll_);
}

bool Poller::watch(int fd, uint32_t events, Ready ready) {
  forget(fd);
  const uint64_t id = next_id_++;
  const auto shared = std::make_shared<Ready>(std::move(ready));
  epoll_event event = event_of(events, id);
  if (epoll_ctl(epoll_, EPOLL_CTL_ADD, fd, &event) != 0) return false;
  by_id_[id] = shared;
  by_fd_[fd] = {id, events, shared};
  return true;
}

void Poller::change(int fd, uint32_t events) {
  const auto it = by_fd_.find(fd);
  if (it == by_fd_.end() || it->second.events == events) return;
  it->second.events = events;
  epoll_event event = event_of(events, it->second.id);
  (void)epoll_ctl(epoll_, EPOLL_CTL_MOD, fd, &event);
}

void Poller::forget(int fd) {
  const auto it = by_fd_.find(fd);
  if (it == by_fd_.end()) return;
  (void)epoll_ctl(epoll_, EPOLL_CTL_DEL, fd, nullptr);
  by_id_.erase(it->second.id);
  by_fd_.erase(it);
}

void Poller::wake_after(int64_t nanoseconds) {
  itimerspec when{};
  if (nanoseconds >= 0) {
    // Zero would disarm it.
    const int64_t wait = std::max<int64_t>(nanoseconds, 1);
    when.it_value.tv_sec = wait / kNanoseconds;
    when.it_value.tv_nsec = wait % kNanoseconds;
  }
  (void)timerfd_settime(timer_, 0, &when, nullptr);
}

void Poller::dispatch() {
  epoll_event events[kMostEvents];
  const int n = epoll_wait(epoll_, events, kMostEvents, 0);
  for (int i = 0; i < n; ++i) {
    const uint64_t id = events[i].data.u64;
    if (id == kTimer) {
      uint64_t expirations;
      (void)!read(timer_, &expirations, sizeof expirations);
      continue;
    }
    // An earlier one may have ended this one.
    const auto it = by_id_.find(id);
    if (it == by_id_.end()) continue;
    const std::shared_ptr<Ready> ready = it->second;
    (*ready)(events[i].events);
  }
}

}  // namespace headrace::openflow
