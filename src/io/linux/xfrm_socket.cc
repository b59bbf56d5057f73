#include "src/io/linux/xfrm_socket.hh"

#include <linux/xfrm.h>
#include <netlink/errno.h>
#include <netlink/netlink.h>
#include <netlink/socket.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <cerrno>
#include <cstring>

namespace headrace::io {

namespace {

/// Room for messages while the control thread is busy: some thousand of them.
constexpr int kChangesBuffer = 4 << 20;
/// The kernel's answers come in parts of at most 32 KiB.
constexpr size_t kLongestPart = 64 << 10;
constexpr timeval kPatience{2, 0};

}  // namespace

XfrmSocket::XfrmSocket() : buffer_(kLongestPart) {}

XfrmSocket::~XfrmSocket() {
  nl_socket_free(events_);
  nl_socket_free(requests_);
}

Status XfrmSocket::open(Errors& errors) {
  events_ = nl_socket_alloc();
  requests_ = nl_socket_alloc();
  int error = events_ != nullptr && requests_ != nullptr ? 0 : -NLE_NOMEM;
  if (error == 0) error = nl_connect(events_, NETLINK_XFRM);
  if (error == 0) error = nl_connect(requests_, NETLINK_XFRM);
  if (error == 0) error = nl_socket_set_nonblocking(events_);
  for (const int group : {XFRMNLGRP_SA, XFRMNLGRP_POLICY, XFRMNLGRP_EXPIRE})
    if (error == 0) error = nl_socket_add_membership(events_, group);
  if (error < 0) return errors.error("the kernel's IPsec databases (XFRM): {}", nl_geterror(error));
  // With the rights, more than the system's limit; else as much as there is.
  if (setsockopt(fd(), SOL_SOCKET, SO_RCVBUFFORCE, &kChangesBuffer, sizeof kChangesBuffer) < 0)
    (void)setsockopt(fd(), SOL_SOCKET, SO_RCVBUF, &kChangesBuffer, sizeof kChangesBuffer);
  // The control thread does not wait for a kernel that does not answer.
  (void)setsockopt(nl_socket_get_fd(requests_), SOL_SOCKET, SO_RCVTIMEO, &kPatience, sizeof kPatience);
  return {};
}

int XfrmSocket::fd() const { return nl_socket_get_fd(events_); }

int64_t XfrmSocket::receive(int fd) {
  for (;;) {
    // Not by libnl, which leaves keys behind in memory that it frees.
    const ssize_t n = recv(fd, buffer_.data(), buffer_.size(), 0);
    if (n >= 0 || errno != EINTR) return n;
  }
}

bool XfrmSocket::read(const Take& take) {
  bool whole = true;
  for (;;) {
    const int64_t n = receive(fd());
    if (n < 0) {
      if (errno == EAGAIN || errno == EWOULDBLOCK) return whole;
      // ENOBUFS is told once; what is left in the socket can be read.
      if (errno != ENOBUFS) return false;
      whole = false;
      continue;
    }
    std::span<const uint8_t> rest(buffer_.data(), static_cast<size_t>(n));
    while (auto message = read_xfrm_message(rest)) take(*message);
    explicit_bzero(buffer_.data(), static_cast<size_t>(n));
  }
}

int XfrmSocket::answer(std::span<const uint8_t> request, const Take& take) {
  const int fd = nl_socket_get_fd(requests_);
  sockaddr_nl kernel{};
  kernel.nl_family = AF_NETLINK;
  if (sendto(fd, request.data(), request.size(), 0, reinterpret_cast<const sockaddr*>(&kernel), sizeof kernel) < 0)
    return errno;
  for (;;) {
    const int64_t n = receive(fd);
    if (n < 0) return errno;
    std::span<const uint8_t> rest(buffer_.data(), static_cast<size_t>(n));
    std::optional<int> end;
    while (auto message = read_xfrm_message(rest)) {
      if (message->change == XfrmChange::kEnd)
        end = message->error;
      else
        take(*message);
    }
    explicit_bzero(buffer_.data(), static_cast<size_t>(n));
    if (end) return *end;
  }
}

bool XfrmSocket::dump(const Take& take, Errors& errors) {
  for (const std::vector<uint8_t>& request : {xfrm_dump_states_message(), xfrm_dump_policies_message()}) {
    if (const int error = answer(request, take); error != 0) {
      (void)errors.error("the kernel's IPsec databases (XFRM): {}", std::strerror(error));
      return false;
    }
  }
  return true;
}

int XfrmSocket::send(std::span<const uint8_t> message) {
  return answer(message, [](XfrmMessage&) {});
}

}  // namespace headrace::io
