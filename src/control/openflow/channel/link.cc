#include "control/openflow/channel/link.hh"

#include <fmt/format.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

namespace headrace::openflow {

namespace {

constexpr size_t kReadBytes = 65536;
/// Of the bytes that wait, so much is encrypted at a time.
constexpr size_t kEncryptedBytes = 16384;
/// Less is not worth moving the rest, and more is not worth keeping when the queue is empty.
constexpr size_t kMovedBytes = 1u << 20;

const char* why() { return std::strerror(errno); }

}  // namespace

void ByteQueue::remove(size_t count) {
  at_ += count;
  if (at_ == bytes_.size()) {
    bytes_.clear();
    if (bytes_.capacity() > kMovedBytes) bytes_.shrink_to_fit();
    at_ = 0;
  } else if (at_ >= kMovedBytes && at_ >= bytes_.size() / 2) {
    bytes_.erase(bytes_.begin(), bytes_.begin() + static_cast<std::ptrdiff_t>(at_));
    at_ = 0;
  }
}

Link::Link(int fd, std::unique_ptr<TlsStream> tls) : fd_(fd), tls_(std::move(tls)) {
  if (tls_) tls_->take(cipher_.tail());
}

Link::~Link() { close(fd_); }

bool Link::receive(std::vector<uint8_t>& bytes) {
  uint8_t buffer[kReadBytes];
  const ssize_t n = recv(fd_, buffer, sizeof buffer, 0);
  if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) return true;
  if (n <= 0) {
    error_ = n == 0 ? "closed by the controller" : why();
    return false;
  }
  const std::span<const uint8_t> received(buffer, static_cast<size_t>(n));
  if (!tls_) {
    bytes.insert(bytes.end(), received.begin(), received.end());
    return true;
  }
  const bool good = tls_->receive(received, bytes);
  tls_->take(cipher_.tail());
  if (good) return true;
  error_ = tls_->error().empty() ? "closed by the controller" : fmt::format("TLS: {}", tls_->error());
  bool full = false;
  (void)write(cipher_, full);  // the alert that tells the peer
  return false;
}

void Link::end_writing() { (void)shutdown(fd_, SHUT_WR); }

bool Link::write(ByteQueue& queue, bool& full) {
  full = false;
  while (!queue.empty()) {
    const auto bytes = queue.front();
    const ssize_t n = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
      full = true;
      return true;
    }
    if (n <= 0) {
      error_ = why();
      return false;
    }
    if (&queue == &plain_) sent_ += static_cast<uint64_t>(n);
    queue.remove(static_cast<size_t>(n));
  }
  return true;
}

bool Link::flush() {
  bool full = false;
  if (!tls_) return write(plain_, full);
  for (;;) {
    if (!write(cipher_, full)) return false;
    if (full || plain_.empty() || !tls_->secure()) return true;
    const auto bytes = plain_.front();
    const size_t count = std::min(bytes.size(), kEncryptedBytes);
    if (!tls_->send(bytes.first(count))) {
      error_ = fmt::format("TLS: {}", tls_->error());
      return false;
    }
    plain_.remove(count);
    sent_ += count;
    tls_->take(cipher_.tail());
  }
}

}  // namespace headrace::openflow
