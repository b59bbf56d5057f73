#include "elements/devices/McastSocket.hh"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "headrace/headers.hh"

namespace headrace {

namespace {

enum McastReason { kNotSent, kNoBuffer };
enum McastCount { kReceived, kSentCount };
constexpr int kPatienceMs = 100;
constexpr int kReceivedAtOnce = 32;

template <typename T>
bool set_option(int socket, int level, int name, const T& value) {
  return ::setsockopt(socket, level, name, &value, sizeof value) == 0;
}

sockaddr_in socket_address(IpAddress ip, uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = ip.network_order();
  return address;
}

bool bind_to(int socket, const sockaddr_in& address) {
  return ::bind(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
}

Status socket_error(Errors& errors, const char* what) { return errors.error("{}: {}", what, std::strerror(errno)); }

}  // namespace

McastSocket::~McastSocket() {
  if (receiver_ >= 0) {
    select(receiver_, 0);
    ::close(receiver_);
  }
  if (sender_ >= 0) {
    select(sender_, 0);
    ::close(sender_);
  }
  if (held_) held_->kill();
}

Status McastSocket::configure(Args& args) {
  IpAddress group, source;
  uint16_t group_port = 0, source_port = 0;
  if (!args.read_mp("MCASTIP", group)
           .read_mp("MCASTPORT", group_port, TcpUdpPort{ip_protocol::kUdp})
           .read_p("SOURCEIP", source)
           .read_p("SOURCEPORT", source_port, TcpUdpPort{ip_protocol::kUdp})
           .read("LOOP", loop_)
           .read("SNAPLEN", snap_length_, Between{1u, 65535u})
           .read("HEADROOM", headroom_, Between{0u, 1024u})
           .read("TIMESTAMP", timestamps_)
           .read("SNDBUF", send_buffer_)
           .read("RCVBUF", receive_buffer_)
           .complete())
    return Status::failed();
  if (!group.is_multicast()) return args.errors().error("MCASTIP: {} is no multicast address", group.unparse());
  if (source_port && !source) return args.errors().error("SOURCEPORT needs SOURCEIP");
  group_ = socket_address(group, group_port);
  source_ = socket_address(source, source_port);
  count_reasons({"not sent", "no buffer"});
  return {};
}

Status McastSocket::open_receiver(Errors& errors) {
  receiver_ = ::socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (receiver_ < 0) return socket_error(errors, "socket");
  if (receive_buffer_ && !set_option(receiver_, SOL_SOCKET, SO_RCVBUF, *receive_buffer_))
    return socket_error(errors, "RCVBUF");
  // Several programs may listen to the group, and the configuration that takes over from this one.
  const int one = 1;
  if (!set_option(receiver_, SOL_SOCKET, SO_REUSEADDR, one)) return socket_error(errors, "SO_REUSEADDR");
  if (!bind_to(receiver_, group_)) return socket_error(errors, "bind");
  return {};
}

Status McastSocket::open_sender(Errors& errors) {
  sender_ = ::socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (sender_ < 0) return socket_error(errors, "socket");
  if (send_buffer_ && !set_option(sender_, SOL_SOCKET, SO_SNDBUF, *send_buffer_)) return socket_error(errors, "SNDBUF");
  if (source_.sin_addr.s_addr) {
    const int one = 1;
    if (!set_option(sender_, SOL_SOCKET, SO_REUSEADDR, one)) return socket_error(errors, "SO_REUSEADDR");
    if (!bind_to(sender_, source_)) return socket_error(errors, "SOURCEIP");
    socklen_t length = sizeof source_;
    if (::getsockname(sender_, reinterpret_cast<sockaddr*>(&source_), &length) != 0)
      return socket_error(errors, "getsockname");
    if (!set_option(sender_, IPPROTO_IP, IP_MULTICAST_IF, source_.sin_addr)) return socket_error(errors, "SOURCEIP");
  }
  const int loop = loop_;
  if (!set_option(sender_, IPPROTO_IP, IP_MULTICAST_LOOP, loop)) return socket_error(errors, "LOOP");
  return {};
}

Status McastSocket::join_group(Errors& errors) {
  const ip_mreq membership{group_.sin_addr, source_.sin_addr};
  if (!set_option(receiver_, IPPROTO_IP, IP_ADD_MEMBERSHIP, membership))
    return socket_error(errors, "joining the group");
  return {};
}

Status McastSocket::initialize(Errors& errors) {
  // The sender comes first: it finds out from which port this element's own packets come.
  if (!open_sender(errors)) return Status::failed();
  if (noutputs() > 0) {
    if (!open_receiver(errors) || !join_group(errors)) return Status::failed();
    select(receiver_, 1);
  }
  if (ninputs() > 0 && input_is_pull(0)) {
    task_.initialize(true);
    signal_ = Signal::upstream_nonempty(this, 0, &task_);
  }
  return {};
}

McastSocket::Sent McastSocket::send(const Packet& p) {
  for (;;) {
    const ssize_t n =
        ::sendto(sender_, p.data(), p.length(), 0, reinterpret_cast<const sockaddr*>(&group_), sizeof group_);
    if (n >= 0) {
      counts_.add(kSentCount, 1);
      return Sent::kYes;
    }
    if (errno == EAGAIN || errno == ENOBUFS) return Sent::kNoRoom;
    if (errno != EINTR) return Sent::kFailed;
  }
}

void McastSocket::push(int, Batch& batch) {
  for (Packet* p : batch) {
    Sent sent = send(*p);
    if (sent == Sent::kNoRoom) {
      pollfd room{sender_, POLLOUT, 0};
      (void)::poll(&room, 1, kPatienceMs);
      sent = send(*p);
    }
    if (sent == Sent::kYes)
      p->kill();
    else
      drop(p, kNotSent);
  }
}

bool McastSocket::run_task(Task& task) {
  if (!held_) held_ = input(0).pull();
  if (!held_) {
    if (signal_.active()) task.fast_reschedule();
    return false;
  }
  const Sent sent = send(*held_);
  if (sent == Sent::kNoRoom) {
    select(sender_, 2);
    return false;
  }
  Packet* p = std::exchange(held_, nullptr);
  if (sent == Sent::kYes)
    p->kill();
  else
    drop(p, kNotSent);
  task.fast_reschedule();
  return true;
}

Packet* McastSocket::receive(bool& more) {
  more = false;
  Packet* p = Packet::make(snap_length_, headroom_);
  uint8_t nothing;
  sockaddr_in from{};
  socklen_t from_length = sizeof from;
  const ssize_t n = ::recvfrom(receiver_, p ? p->data() : &nothing, p ? snap_length_ : 1, MSG_TRUNC,
                               reinterpret_cast<sockaddr*>(&from), &from_length);
  if (n < 0) {
    if (p) p->kill();
    return nullptr;
  }
  more = true;
  const bool own =
      source_.sin_addr.s_addr && source_.sin_addr.s_addr == from.sin_addr.s_addr && source_.sin_port == from.sin_port;
  if (!p || own) {
    if (!own) count_drops(1, kNoBuffer);
    if (p) p->kill();
    return nullptr;
  }
  const auto length = static_cast<uint32_t>(n);
  if (length > snap_length_)
    p->set_anno_u32(anno_offset::kExtraLength, length - snap_length_);
  else
    p->take(snap_length_ - length);
  if (timestamps_) p->set_timestamp(clock::now());
  counts_.add(kReceived, 1);
  return p;
}

void McastSocket::selected(int fd, int) {
  if (fd == sender_) {
    select(sender_, 0);
    task_.reschedule();
    return;
  }
  Batch batch;
  bool more = true;
  for (int i = 0; more && i < kReceivedAtOnce; ++i)
    if (Packet* p = receive(more)) batch.push_back(p);
  if (!batch.empty()) output(0).push(batch);
}

void McastSocket::add_handlers(Handlers& handlers) {
  handlers.read("count", [this] { return std::to_string(counts_.sum(kReceived)); });
  handlers.read("sent", [this] { return std::to_string(counts_.sum(kSentCount)); });
}

}  // namespace headrace
