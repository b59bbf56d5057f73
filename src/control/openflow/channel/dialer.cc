#include "control/openflow/channel/dialer.hh"

#include <fmt/format.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace headrace::openflow {

namespace {

/// The resolver of the C library gives up after 10 to 30 s itself.
constexpr int64_t kLookUpTime = 60 * kSecond;

}  // namespace

Dialer::Dialer(Place place, Target target, int64_t most_backoff, uint8_t auxiliary)
    : place_(std::move(place)),
      target_(std::move(target)),
      auxiliary_(auxiliary),
      backoff_(most_backoff),
      due_(place_.now()) {}

Dialer::~Dialer() {
  drop_resolution();
  drop_socket();
}

void Dialer::drop_socket() {
  if (fd_ < 0) return;
  place_.poller.forget(fd_);
  close(fd_);
  fd_ = -1;
}

void Dialer::drop_resolution() {
  if (resolution_fd_ >= 0) place_.poller.forget(resolution_fd_);
  resolution_fd_ = -1;
  resolution_.reset();
}

void Dialer::step(bool allowed) {
  if (!allowed) {
    drop_socket();
    drop_resolution();
    if (state_ == State::kResting) return;
    state_ = State::kWaiting;
    due_ = place_.now();
    return;
  }
  if (place_.now() < due_) return;
  switch (state_) {
    case State::kWaiting:
      return look_up();
    case State::kResolving:
      return failed("the name of the host was not found in time");
    case State::kConnecting:
      error_ = "no answer";
      drop_socket();
      return try_next();
    case State::kResting:
      return;
  }
}

void Dialer::look_up() {
  state_ = State::kResolving;
  due_ = place_.now() + kLookUpTime;
  resolution_ = std::make_unique<Resolution>(target_);
  const auto finish = [this] {
    addresses_ = resolution_->addresses();
    const std::string error = resolution_->error();
    drop_resolution();
    next_address_ = 0;
    if (addresses_.empty()) return failed(error.empty() ? "the host has no address" : error);
    try_next();
  };
  const int fd = resolution_->fd();
  if (fd < 0) return finish();
  resolution_fd_ = fd;
  if (!place_.poller.watch(fd, EPOLLIN, [finish](uint32_t) { finish(); })) failed(std::strerror(errno));
}

void Dialer::try_next() {
  while (next_address_ < addresses_.size()) {
    std::string error;
    fd_ = begin_connect(addresses_[next_address_++], error);
    if (fd_ < 0) {
      error_ = std::move(error);
      continue;
    }
    state_ = State::kConnecting;
    due_ = place_.now() + backoff_.patience();
    if (place_.poller.watch(fd_, EPOLLOUT, [this](uint32_t) { try_outcome(); })) return;
    error_ = std::strerror(errno);
    drop_socket();
  }
  failed(std::exchange(error_, {}));
}

void Dialer::try_outcome() {
  if (const int error = connect_result(fd_)) {
    error_ = std::strerror(error);
    drop_socket();
    return try_next();
  }
  place_.poller.forget(fd_);
  state_ = State::kResting;
  due_ = INT64_MAX;
  error_.clear();
  place_.connected(*this, std::exchange(fd_, -1));
}

void Dialer::failed(std::string why) {
  drop_resolution();
  state_ = State::kWaiting;
  const int64_t wait = backoff_.next();
  due_ = place_.now() + wait;
  // A controller that is away for a day should not fill the log.
  if (why != error_told_) place_.log(fmt::format("cannot connect: {}", why));
  error_told_ = why;
  error_ = std::move(why);
}

void Dialer::lost(int64_t up) {
  state_ = State::kWaiting;
  due_ = place_.now() + backoff_.next(up);
  error_told_.clear();
}

}  // namespace headrace::openflow
