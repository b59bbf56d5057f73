// AF_XDP sockets: frames move between the driver and memory of ours by four rings, without the kernel's network stack.
// The system calls are used as they are; the interface is small, and a library would only bring its own program and
// object files to attach.
//
// Every receive queue of the interface has a socket. The sockets belong to a port that receivers and senders share:
// the kernel allows one memory and one socket a queue. Receiving uses the fill and receive rings, sending the transmit
// and completion rings, so that the two sides may run on different threads.

#include <linux/if_link.h>
#include <linux/if_xdp.h>
#include <sys/socket.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <map>
#include <mutex>
#include <vector>

#include "headrace/packet_pool.hh"
#include "src/io/linux/bpf.hh"
#include "src/io/linux/partial_checksum.hh"
#include "src/io/linux/port.hh"
#include "src/io/pcap/live.hh"

namespace headrace::io {

namespace {

constexpr int kMostQueues = 64;
constexpr uint32_t kReceiveFrames = 4096;
constexpr uint32_t kSendFrames = 2048;
/// With many queues each gets less.
constexpr int kManyQueues = 8;
constexpr uint32_t kFewFrames = 1024;
/// What the driver keeps free before a frame (XDP_PACKET_HEADROOM).
constexpr int kDriverHeadroom = 256;
constexpr int kKicks = 64;

/// One of the rings that a socket shares with the kernel: this side produces or consumes.
template <typename T>
class XskRing {
 public:
  bool map(int fd, const xdp_ring_offset& offsets, uint32_t size, uint64_t page_offset) {
    size_ = size;
    mapping_ =
        Mapping(offsets.desc + size * sizeof(T), MAP_SHARED | MAP_POPULATE, fd, static_cast<int64_t>(page_offset));
    if (!mapping_) return false;
    producer_ = at<uint32_t>(offsets.producer);
    consumer_ = at<uint32_t>(offsets.consumer);
    flags_ = at<uint32_t>(offsets.flags);
    cells_ = at<T>(offsets.desc);
    local_ = std::atomic_ref(*producer_).load(std::memory_order_relaxed);
    return true;
  }
  T& cell(uint32_t i) { return cells_[(local_ + i) & (size_ - 1)]; }

  /// As the producer: cells that are free, from cell(0) on; then hands over `n`.
  uint32_t room() const { return size_ - (local_ - std::atomic_ref(*consumer_).load(std::memory_order_acquire)); }
  void produce(uint32_t n) { std::atomic_ref(*producer_).store(local_ += n, std::memory_order_release); }
  /// True while the kernel has not taken everything.
  bool pending() const { return std::atomic_ref(*consumer_).load(std::memory_order_acquire) != local_; }

  /// As the consumer: cells that are filled, from cell(0) on; then gives back `n`.
  uint32_t filled() const { return std::atomic_ref(*producer_).load(std::memory_order_acquire) - local_; }
  void consume(uint32_t n) { std::atomic_ref(*consumer_).store(local_ += n, std::memory_order_release); }

  /// The kernel sleeps: it wants a system call before it looks at the ring.
  bool needs_wakeup() const { return std::atomic_ref(*flags_).load(std::memory_order_relaxed) & XDP_RING_NEED_WAKEUP; }

 private:
  template <typename U>
  U* at(uint64_t offset) {
    return reinterpret_cast<U*>(mapping_.base() + offset);
  }
  Mapping mapping_;
  uint32_t *producer_ = nullptr, *consumer_ = nullptr, *flags_ = nullptr;
  T* cells_ = nullptr;
  uint32_t size_ = 0;
  uint32_t local_ = 0;  // this side's index
};

/// The socket of one queue, with its memory.
struct Queue {
  Mapping memory;
  Descriptor socket;
  XskRing<uint64_t> fill, completion;
  XskRing<xdp_desc> receive, transmit;
  std::vector<uint64_t> free;  // frames for sending
  bool zero_copy = false;

  /// False with errno.
  bool open(const Interface& interface, int number, uint32_t frame_bytes, uint32_t receive_frames, uint32_t send_frames,
            uint16_t bind_flags);
};

bool Queue::open(const Interface& interface, int number, uint32_t frame_bytes, uint32_t receive_frames,
                 uint32_t send_frames, uint16_t bind_flags) {
  memory = Mapping(size_t{receive_frames + send_frames} * frame_bytes, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE);
  socket = Descriptor(::socket(AF_XDP, SOCK_RAW | SOCK_CLOEXEC, 0));
  if (!memory || !socket) return false;
  const int fd = socket.get();
  xdp_umem_reg region{};
  region.addr = reinterpret_cast<uint64_t>(memory.base());
  region.len = memory.bytes();
  region.chunk_size = frame_bytes;
  const auto set = [fd](int option, const auto& value) {
    return setsockopt(fd, SOL_XDP, option, &value, sizeof value) == 0;
  };
  if (!set(XDP_UMEM_REG, region) || !set(XDP_UMEM_FILL_RING, receive_frames) ||
      !set(XDP_UMEM_COMPLETION_RING, send_frames) || !set(XDP_RX_RING, receive_frames) ||
      !set(XDP_TX_RING, send_frames))
    return false;
  xdp_mmap_offsets offsets{};
  socklen_t size = sizeof offsets;
  if (getsockopt(fd, SOL_XDP, XDP_MMAP_OFFSETS, &offsets, &size) < 0) return false;
  if (!fill.map(fd, offsets.fr, receive_frames, XDP_UMEM_PGOFF_FILL_RING) ||
      !completion.map(fd, offsets.cr, send_frames, XDP_UMEM_PGOFF_COMPLETION_RING) ||
      !receive.map(fd, offsets.rx, receive_frames, XDP_PGOFF_RX_RING) ||
      !transmit.map(fd, offsets.tx, send_frames, XDP_PGOFF_TX_RING))
    return false;
  for (uint32_t i = 0; i < receive_frames; ++i) fill.cell(i) = uint64_t{i} * frame_bytes;
  fill.produce(receive_frames);
  for (uint32_t i = 0; i < send_frames; ++i) free.push_back(uint64_t{receive_frames + i} * frame_bytes);
  sockaddr_xdp address{};
  address.sxdp_family = AF_XDP;
  address.sxdp_flags = bind_flags;
  address.sxdp_ifindex = static_cast<uint32_t>(interface.index);
  address.sxdp_queue_id = static_cast<uint32_t>(number);
  if (bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) < 0) return false;
  xdp_options options{};
  size = sizeof options;
  zero_copy = getsockopt(fd, SOL_XDP, XDP_OPTIONS, &options, &size) == 0 && (options.flags & XDP_OPTIONS_ZEROCOPY) != 0;
  return true;
}

/// An interface with a socket at every queue.
class XdpPort {
 public:
  explicit XdpPort(Interface interface) : interface_(std::move(interface)) {}

  /// The port of this interface, which others may have open already; null, with an error.
  static std::shared_ptr<XdpPort> open(const Interface& interface, Errors& errors);

  Status attach(Errors& errors);
  bool receive_from_here(bool on);
  bool receiving() const { return receiving_; }
  const Interface& interface() const { return interface_; }
  uint32_t frame_bytes() const { return frame_bytes_; }
  std::vector<Queue>& queues() { return queues_; }
  std::string description() const;

 private:
  Status open_queues(Errors& errors);

  Interface interface_;
  uint32_t frame_bytes_ = 2048;
  std::vector<Queue> queues_;
  mutable std::mutex redirect_lock_;  // the other side may ask for the description while this one attaches
  std::unique_ptr<XdpRedirect> redirect_;
  XdpMode mode_ = XdpMode::kNative;
  bool receiving_ = false;
};

std::shared_ptr<XdpPort> XdpPort::open(const Interface& interface, Errors& errors) {
  static std::mutex lock;
  static std::map<int, std::weak_ptr<XdpPort>> all;  // by index
  std::lock_guard guard(lock);
  std::weak_ptr<XdpPort>& known = all[interface.index];
  if (std::shared_ptr<XdpPort> port = known.lock()) return port;
  auto port = std::make_shared<XdpPort>(interface);
  if (!port->open_queues(errors)) return nullptr;
  known = port;
  return port;
}

Status XdpPort::open_queues(Errors& errors) {
  const int count = std::min(interface_.receive_queues, kMostQueues);
  if (interface_.longest_frame() > static_cast<int>(frame_bytes_) - kDriverHeadroom) frame_bytes_ = 4096;
  if (interface_.longest_frame() > static_cast<int>(frame_bytes_) - kDriverHeadroom)
    return errors.error("{}: AF_XDP takes no frames as long as an MTU of {} allows", interface_.name, interface_.mtu);
  const uint32_t receive_frames = count > kManyQueues ? kFewFrames : kReceiveFrames;
  const uint32_t send_frames = count > kManyQueues ? kFewFrames : kSendFrames;
  // The first queue finds out what works.
  for (const uint16_t mode : {XDP_ZEROCOPY, XDP_COPY}) {
    for (int n = 0; n < count; ++n) {
      queues_.emplace_back();
      if (!queues_.back().open(interface_, n, frame_bytes_, receive_frames, send_frames,
                               static_cast<uint16_t>(mode | XDP_USE_NEED_WAKEUP))) {
        const int error = errno;
        queues_.clear();
        if (mode == XDP_ZEROCOPY) break;
        return errors.error("{}: AF_XDP: {}", interface_.name,
                            error == EBUSY ? "another program has queue " + std::to_string(n) : explain_errno(error));
      }
    }
    if (!queues_.empty()) break;
  }
  return {};
}

Status XdpPort::attach(Errors& errors) {
  std::lock_guard guard(redirect_lock_);
  if (redirect_) return {};
  const int count = static_cast<int>(queues_.size());
  // A copying socket works with a program of either kind.
  for (const XdpMode mode : {XdpMode::kNative, XdpMode::kGeneric}) {
    mode_ = mode;
    redirect_ = XdpRedirect::attach(interface_.index, count, mode);
    if (redirect_) return {};
    if (errno == EBUSY || errno == EEXIST)
      return errors.error("{}: AF_XDP: another XDP program is attached", interface_.name);
    if (queues_[0].zero_copy) break;
  }
  return errors.error("{}: AF_XDP: {}", interface_.name, explain_errno(errno));
}

bool XdpPort::receive_from_here(bool on) {
  receiving_ = on;
  for (size_t n = 0; n < queues_.size(); ++n)
    if (!redirect_->set(static_cast<int>(n), on ? queues_[n].socket.get() : -1)) return false;
  return true;
}

std::string XdpPort::description() const {
  std::lock_guard guard(redirect_lock_);
  std::string text = "af_xdp (";
  if (redirect_) text += mode_ == XdpMode::kNative ? "native, " : "generic, ";
  text += queues_[0].zero_copy ? "zero-copy" : "copy";
  if (queues_.size() > 1) text += ", " + std::to_string(queues_.size()) + " queues";
  return text + ")";
}

class XdpReceiver final : public PortReceiver {
 public:
  explicit XdpReceiver(std::shared_ptr<XdpPort> port) : PortReceiver(port->interface()), port_(std::move(port)) {}
  ~XdpReceiver() override { stop(); }
  PortMethod method() const override { return PortMethod::kAfXdp; }
  std::string description() const override { return port_->description(); }
  std::vector<int> descriptors() const override {
    std::vector<int> all;
    for (const Queue& q : port_->queues()) all.push_back(q.socket.get());
    return all;
  }
  bool fits(const PortRequest& r) const override { return !r.sniffer && !r.outbound && r.filter.empty(); }
  Status start(const PortRequest& request, Errors& errors) override {
    if (request.promiscuous && !promiscuity_) {
      promiscuity_ = Promiscuity::begin(interface_, errors);
      if (!promiscuity_) return Status::failed();
    } else if (!request.promiscuous) {
      promiscuity_.reset();
    }
    snap_length_ = request.snap_length > 0 ? static_cast<uint32_t>(request.snap_length) : UINT32_MAX;
    running_ = true;
    if (!port_->receive_from_here(true)) return errors.error("{}: AF_XDP: {}", interface_.name, explain_errno(errno));
    return {};
  }
  void stop() override {
    running_ = false;
    if (port_->receiving()) (void)port_->receive_from_here(false);
  }
  void receive(Batch& batch, int max, uint32_t headroom, bool timestamps, ReceiveLosses& losses) override;
  std::optional<uint64_t> kernel_drops() override;
  int take_error() override { return 0; }

 private:
  int receive_queue(Queue& queue, Batch& batch, int max, uint32_t headroom, ReceiveLosses& losses);

  std::shared_ptr<XdpPort> port_;
  uint32_t snap_length_ = UINT32_MAX;
  std::unique_ptr<Promiscuity> promiscuity_;
  size_t turn_ = 0;  // the queue that is looked at first
};

int XdpReceiver::receive_queue(Queue& queue, Batch& batch, int max, uint32_t headroom, ReceiveLosses& losses) {
  // A frame that is taken goes back to the driver at once, so the fill ring has room for it.
  const uint32_t n = std::min({queue.receive.filled(), queue.fill.room(), static_cast<uint32_t>(max)});
  if (n == 0) {
    if (queue.fill.needs_wakeup()) (void)recvfrom(queue.socket.get(), nullptr, 0, MSG_DONTWAIT, nullptr, nullptr);
    return 0;
  }
  const uint64_t frame_mask = ~(uint64_t{port_->frame_bytes()} - 1);
  constexpr uint32_t kAhead = 4;
  const auto prefetch = [&queue](uint32_t i) { __builtin_prefetch(queue.memory.base() + queue.receive.cell(i).addr); };
  for (uint32_t i = 0; i < std::min(n, kAhead); ++i) prefetch(i);
  // Most frames fit into a buffer of the pool, and those come together.
  PacketPool& pool = PacketPool::instance();
  Packet* buffers[Batch::kCapacity];
  const uint32_t got = pool.allocate_bulk(buffers, n);
  const int before = batch.size();
  uint32_t used = 0;
  for (uint32_t i = 0; i < n; ++i) {
    if (i + kAhead < n) prefetch(i + kAhead);
    const xdp_desc& d = queue.receive.cell(i);
    const uint8_t* const frame = queue.memory.base() + d.addr;
    const uint32_t length = std::min(d.len, snap_length_);
    Packet* p;
    if (length + headroom <= PacketPool::kCapacity && used < got) [[likely]] {
      p = buffers[used++];
      p->reset(length, headroom);
      std::memcpy(p->data(), frame, length);
    } else {
      p = Packet::make(frame, length, headroom);
    }
    if (p) {
      p->set_mac_header();
      if (length < d.len) p->set_anno_u32(anno_offset::kExtraLength, d.len - length);
      if (interface_.is_virtual) finish_partial_checksum(p->data(), length);
      p->set_packet_type(packet_type_of(*p, interface_.link_type, interface_.address));
      batch.push_back(p);
    } else {
      ++losses.no_buffer;
    }
    queue.fill.cell(i) = d.addr & frame_mask;
  }
  if (used < got) pool.release_bulk(buffers + used, got - used);
  queue.receive.consume(n);
  queue.fill.produce(n);
  if (queue.fill.needs_wakeup()) (void)recvfrom(queue.socket.get(), nullptr, 0, MSG_DONTWAIT, nullptr, nullptr);
  return batch.size() - before;
}

void XdpReceiver::receive(Batch& batch, int max, uint32_t headroom, bool timestamps, ReceiveLosses& losses) {
  max = std::min(max, batch.room());
  const int first = batch.size();
  std::vector<Queue>& queues = port_->queues();
  for (size_t n = 0; n < queues.size() && max > 0; ++n) {
    if (turn_ >= queues.size()) turn_ = 0;
    max -= receive_queue(queues[turn_++], batch, max, headroom, losses);
  }
  if (!timestamps || batch.size() == first) return;
  const Timestamp now = clock::now();
  for (int i = first; i < batch.size(); ++i) batch[i]->set_timestamp(now);
}

std::optional<uint64_t> XdpReceiver::kernel_drops() {
  uint64_t drops = 0;
  for (const Queue& q : port_->queues()) {
    xdp_statistics s{};
    socklen_t size = sizeof s;
    if (getsockopt(q.socket.get(), SOL_XDP, XDP_STATISTICS, &s, &size) < 0) return std::nullopt;
    drops += s.rx_dropped + s.rx_ring_full + s.rx_fill_ring_empty_descs;
  }
  return drops;
}

class XdpSender final : public PortSender {
 public:
  XdpSender(std::shared_ptr<XdpPort> port, int queue)
      : PortSender(port->interface()), port_(std::move(port)), queue_(port_->queues()[queue]) {}
  PortMethod method() const override { return PortMethod::kAfXdp; }
  std::string description() const override { return port_->description(); }
  int descriptor() const override { return queue_.socket.get(); }
  int send(Packet* const* packets, int n) override;
  bool flush() override;

 private:
  void take_back();

  std::shared_ptr<XdpPort> port_;
  Queue& queue_;
};

void XdpSender::take_back() {
  const uint32_t n = queue_.completion.filled();
  for (uint32_t i = 0; i < n; ++i) queue_.free.push_back(queue_.completion.cell(i));
  if (n > 0) queue_.completion.consume(n);
}

bool XdpSender::flush() {
  // A copying socket takes some frames with each call.
  for (int i = 0; i < kKicks && queue_.transmit.pending(); ++i) {
    if (!queue_.transmit.needs_wakeup()) return true;
    if (sendto(queue_.socket.get(), nullptr, 0, MSG_DONTWAIT, nullptr, 0) < 0 && errno != EAGAIN) break;
    take_back();
  }
  return !queue_.transmit.pending();
}

int XdpSender::send(Packet* const* packets, int n) {
  take_back();
  int sent = 0, error = 0;
  const auto room = static_cast<int>(std::min<size_t>(queue_.transmit.room(), queue_.free.size()));
  for (; sent < n; ++sent) {
    const Packet& p = *packets[sent];
    if (sent == room) {
      error = EAGAIN;
      break;
    }
    if (static_cast<int>(p.length()) > interface_.longest_frame()) {
      error = EMSGSIZE;
      break;
    }
    const uint64_t frame = queue_.free.back();
    queue_.free.pop_back();
    std::memcpy(queue_.memory.base() + frame, p.data(), p.length());
    xdp_desc& d = queue_.transmit.cell(static_cast<uint32_t>(sent));
    d.addr = frame;
    d.len = p.length();
    d.options = 0;
  }
  if (sent > 0) queue_.transmit.produce(static_cast<uint32_t>(sent));
  errno = error;
  return sent;
}

}  // namespace

std::unique_ptr<PortReceiver> open_xdp_receiver(const Interface& interface, const PortRequest& request,
                                                Errors& errors) {
  if (request.sniffer || request.outbound || !request.filter.empty()) {
    (void)errors.error("{}: AF_XDP takes the frames from the kernel: SNIFFER, OUTBOUND and BPF_FILTER need af_packet",
                       interface.name);
    return nullptr;
  }
  std::shared_ptr<XdpPort> port = XdpPort::open(interface, errors);
  if (!port) return nullptr;
  if (!port->attach(errors)) return nullptr;
  return std::make_unique<XdpReceiver>(std::move(port));
}

std::unique_ptr<PortSender> open_xdp_sender(const Interface& interface, int ordinal, Errors& errors) {
  std::shared_ptr<XdpPort> port = XdpPort::open(interface, errors);
  if (!port) return nullptr;
  if (ordinal >= static_cast<int>(port->queues().size())) {
    (void)errors.error("{}: AF_XDP: every queue has its sender", interface.name);
    return nullptr;
  }
  return std::make_unique<XdpSender>(std::move(port), ordinal);
}

}  // namespace headrace::io
