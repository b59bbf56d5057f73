// Packet sockets (packet(7)).
//
// Receiving: the second version of the ring, with a slot for each frame. The third version packs frames into blocks but
// gives a block away only when it is full or a timer of some milliseconds has run out, which is too late for a router.
// A virtio_net header before each frame says what the sender's stack left undone: a transport checksum, or
// segmentation.
//
// Sending: sendmmsg(), which copies. A shared ring would save that copy, but its slots come back only when the receiver
// of a frame has read it, and on veth that may be a socket without a reader.

#include <linux/filter.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <pcap/pcap.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <mutex>

#include "src/io/linux/partial_checksum.hh"
#include "src/io/linux/port.hh"

namespace headrace::io {

namespace {

constexpr uint32_t kSlots = 4096;
constexpr uint32_t kBlockBytes = 1 << 20;
/// Slots of a large snapshot length are fewer.
constexpr uint32_t kMostRingBytes = 64 << 20;
constexpr int kWholePackets = 0x40000;
constexpr uint32_t kStatusTpidValid = 1 << 6;
constexpr int kShortestSnapLength = 2046;

/// The header of linux/virtio_net.h, which is no C++ (it has a member called class).
struct VirtioNetHeader {
  static constexpr uint8_t kNeedsChecksum = 1;  // in flags
  uint8_t flags;
  uint8_t gso_type;  // 0: a single packet
  uint16_t header_length, gso_size, checksum_start, checksum_offset;
};
static_assert(sizeof(VirtioNetHeader) == 10);

uint32_t round_up(uint32_t value, uint32_t to) { return (value + to - 1) / to * to; }

sockaddr_ll address_of(const Interface& interface, uint16_t protocol) {
  sockaddr_ll address{};
  address.sll_family = AF_PACKET;
  address.sll_protocol = htobe16(protocol);
  address.sll_ifindex = interface.index;
  return address;
}

template <typename T>
bool set_option(const Descriptor& socket, int option, const T& value) {
  return setsockopt(socket.get(), SOL_PACKET, option, &value, sizeof value) == 0;
}

class PacketReceiver final : public PortReceiver {
 public:
  PacketReceiver(Interface interface, const PortRequest& request)
      : PortReceiver(std::move(interface)), outbound_(request.outbound), asked_snap_length_(request.snap_length) {
    snap_length_ = static_cast<uint32_t>(
        asked_snap_length_ > 0 ? asked_snap_length_ : std::max(kShortestSnapLength, interface_.longest_frame()));
  }

  Status open(Errors& errors);
  PortMethod method() const override { return PortMethod::kAfPacket; }
  std::vector<int> descriptors() const override { return {socket_.get()}; }
  bool fits(const PortRequest& request) const override {
    return request.outbound == outbound_ && request.snap_length == asked_snap_length_ &&
           (request.link_type < 0 || request.link_type == interface_.link_type);
  }
  Status start(const PortRequest& request, Errors& errors) override;
  void stop() override {
    running_ = false;
    (void)set_filter(BPF_STMT(BPF_RET | BPF_K, 0));
  }
  void receive(Batch& batch, int max, uint32_t headroom, bool timestamps, ReceiveLosses& losses) override;
  std::optional<uint64_t> kernel_drops() override;
  int take_error() override;

 private:
  Status failed(const char* what, Errors& errors) const {
    return errors.error("{}: {}: {}", interface_.name, what, explain_errno(errno));
  }
  bool set_filter(sock_filter instruction);
  Status set_filter(const std::string& text, Errors& errors);
  Packet* make_packet(const tpacket2_hdr& slot, uint32_t headroom, ReceiveLosses& losses) const;
  tpacket2_hdr& slot(uint32_t i) const {
    return *reinterpret_cast<tpacket2_hdr*>(ring_.base() + size_t{i / per_block_} * kBlockBytes +
                                            size_t{i % per_block_} * slot_bytes_);
  }

  const bool outbound_;
  const int asked_snap_length_;
  uint32_t snap_length_;
  // In this order: the ring goes before the socket.
  Descriptor socket_;
  Mapping ring_;
  std::unique_ptr<Promiscuity> promiscuity_;
  uint32_t slot_bytes_ = 0, per_block_ = 0, slots_ = 0;
  uint32_t next_ = 0;
  std::mutex drops_lock_;
  uint64_t drops_ = 0;
};

Status PacketReceiver::open(Errors& errors) {
  socket_ = Descriptor(socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket_) return failed("packet socket", errors);
  // Nothing comes before start(), also while a predecessor of the same interface still receives.
  if (!set_filter(BPF_STMT(BPF_RET | BPF_K, 0))) return failed("filter", errors);
  if (!set_option(socket_, PACKET_VERSION, int{TPACKET_V2})) return failed("ring", errors);
  if (!set_option(socket_, PACKET_VNET_HDR, int{1})) return failed("virtio_net header", errors);
  // Before Linux 4.20 they are skipped one by one.
  if (!outbound_) (void)set_option(socket_, PACKET_IGNORE_OUTGOING, int{1});
  slot_bytes_ = round_up(static_cast<uint32_t>(TPACKET2_HDRLEN + 64 + sizeof(VirtioNetHeader)) + snap_length_, 64);
  per_block_ = kBlockBytes / slot_bytes_;
  const uint32_t slots = std::min(kSlots, kMostRingBytes / slot_bytes_);
  tpacket_req ring{};
  ring.tp_block_size = kBlockBytes;
  ring.tp_frame_size = slot_bytes_;
  ring.tp_block_nr = (slots + per_block_ - 1) / per_block_;
  ring.tp_frame_nr = slots_ = ring.tp_block_nr * per_block_;
  if (!set_option(socket_, PACKET_RX_RING, ring)) return failed("ring", errors);
  ring_ = Mapping(size_t{ring.tp_block_nr} * kBlockBytes, MAP_SHARED | MAP_POPULATE, socket_.get());
  if (!ring_) return failed("ring", errors);
  const sockaddr_ll address = address_of(interface_, ETH_P_ALL);
  if (bind(socket_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) < 0)
    return failed("bind", errors);
  return {};
}

bool PacketReceiver::set_filter(sock_filter instruction) {
  const sock_fprog program{1, &instruction};
  return setsockopt(socket_.get(), SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof program) == 0;
}

Status PacketReceiver::set_filter(const std::string& text, Errors& errors) {
  if (text.empty()) return set_filter(BPF_STMT(BPF_RET | BPF_K, kWholePackets)) ? Status() : failed("filter", errors);
  pcap* compiler = pcap_open_dead(interface_.link_type, kWholePackets);
  if (!compiler) return failed("filter", errors);
  bpf_program program{};
  Status status;
  if (pcap_compile(compiler, &program, text.c_str(), 1, PCAP_NETMASK_UNKNOWN) < 0) {
    status = errors.error("{}: filter: {}", interface_.name, pcap_geterr(compiler));
  } else {
    // libpcap's instructions are the kernel's.
    static_assert(sizeof(bpf_insn) == sizeof(sock_filter));
    const sock_fprog filter{static_cast<unsigned short>(program.bf_len),
                            reinterpret_cast<sock_filter*>(program.bf_insns)};
    if (setsockopt(socket_.get(), SOL_SOCKET, SO_ATTACH_FILTER, &filter, sizeof filter) < 0)
      status = failed("filter", errors);
    pcap_freecode(&program);
  }
  pcap_close(compiler);
  return status;
}

Status PacketReceiver::start(const PortRequest& request, Errors& errors) {
  if (request.promiscuous && !promiscuity_) {
    promiscuity_ = Promiscuity::begin(interface_, errors);
    if (!promiscuity_) return Status::failed();
  } else if (!request.promiscuous) {
    promiscuity_.reset();
  }
  running_ = true;
  return set_filter(request.filter, errors);
}

Packet* PacketReceiver::make_packet(const tpacket2_hdr& slot, uint32_t headroom, ReceiveLosses& losses) const {
  const auto* at = reinterpret_cast<const uint8_t*>(&slot);
  const uint8_t* frame = at + slot.tp_mac;
  sockaddr_ll from;
  std::memcpy(&from, at + TPACKET_ALIGN(sizeof(tpacket2_hdr)), sizeof from);
  if (!outbound_ && from.sll_pkttype == PACKET_OUTGOING) return nullptr;
  VirtioNetHeader state;
  std::memcpy(&state, frame - sizeof state, sizeof state);
  if (state.gso_type != 0 || (asked_snap_length_ == 0 && slot.tp_len > snap_length_)) {
    ++losses.too_long;
    return nullptr;
  }
  // The kernel has taken a VLAN tag off the frame.
  const uint32_t tag = slot.tp_status & TP_STATUS_VLAN_VALID ? 4 : 0;
  // A slot is a little larger than asked for.
  const uint32_t length = std::min(slot.tp_snaplen, snap_length_);
  Packet* p;
  if (tag && length >= 12) {
    p = Packet::make(length + tag, headroom);
    if (p) {
      const uint16_t protocol = slot.tp_status & kStatusTpidValid ? slot.tp_vlan_tpid : uint16_t{ETH_P_8021Q};
      const uint16_t words[2] = {htobe16(protocol), htobe16(slot.tp_vlan_tci)};
      std::memcpy(p->data(), frame, 12);
      std::memcpy(p->data() + 12, words, 4);
      std::memcpy(p->data() + 16, frame + 12, length - 12);
    }
  } else {
    p = Packet::make(frame, length, headroom);
  }
  if (!p) {
    ++losses.no_buffer;
    return nullptr;
  }
  if (state.flags & VirtioNetHeader::kNeedsChecksum)
    finish_checksum(p->data(), p->length(), state.checksum_start + tag, state.checksum_offset);
  p->set_mac_header();
  p->set_packet_type(static_cast<PacketType>(from.sll_pkttype));
  if (slot.tp_len > length) p->set_anno_u32(anno_offset::kExtraLength, slot.tp_len - length);
  return p;
}

void PacketReceiver::receive(Batch& batch, int max, uint32_t headroom, bool timestamps, ReceiveLosses& losses) {
  max = std::min(max, batch.room());
  // Frames that become no packet do not make this longer than one turn around the ring.
  for (uint32_t n = 0; max > 0 && n < slots_; ++n) {
    tpacket2_hdr& s = slot(next_);
    std::atomic_ref<uint32_t> status(s.tp_status);
    if (!(status.load(std::memory_order_acquire) & TP_STATUS_USER)) return;
    if (Packet* p = make_packet(s, headroom, losses)) {
      if (timestamps) p->set_timestamp(Timestamp::from_sec(s.tp_sec) + Timestamp::from_ns(s.tp_nsec));
      batch.push_back(p);
      --max;
    }
    status.store(TP_STATUS_KERNEL, std::memory_order_release);
    if (++next_ == slots_) next_ = 0;
  }
}

std::optional<uint64_t> PacketReceiver::kernel_drops() {
  // Reading sets the kernel's counters to zero.
  std::lock_guard guard(drops_lock_);
  tpacket_stats stats{};
  socklen_t size = sizeof stats;
  if (getsockopt(socket_.get(), SOL_PACKET, PACKET_STATISTICS, &stats, &size) == 0) drops_ += stats.tp_drops;
  return drops_;
}

int PacketReceiver::take_error() {
  int error = 0;
  socklen_t size = sizeof error;
  return getsockopt(socket_.get(), SOL_SOCKET, SO_ERROR, &error, &size) == 0 ? error : errno;
}

class PacketSender final : public PortSender {
 public:
  PacketSender(Interface interface, Descriptor socket) : PortSender(std::move(interface)), socket_(std::move(socket)) {}
  PortMethod method() const override { return PortMethod::kAfPacket; }
  int descriptor() const override { return socket_.get(); }
  int send(Packet* const* packets, int n) override {
    int sent = 0;
    while (sent < n) {
      const int m = std::min(n - sent, kMost);
      for (int i = 0; i < m; ++i) {
        const Packet& p = *packets[sent + i];
        vectors_[i] = {const_cast<uint8_t*>(p.data()), p.length()};
        messages_[i] = {};
        messages_[i].msg_hdr.msg_iov = &vectors_[i];
        messages_[i].msg_hdr.msg_iovlen = 1;
      }
      const int got = sendmmsg(socket_.get(), messages_.data(), static_cast<unsigned>(m), MSG_DONTWAIT);
      if (got < 0) break;
      sent += got;
    }
    return sent;
  }

 private:
  static constexpr int kMost = 64;
  Descriptor socket_;
  std::array<iovec, kMost> vectors_;
  std::array<mmsghdr, kMost> messages_;
};

}  // namespace

std::unique_ptr<PortReceiver> open_packet_receiver(const Interface& interface, const PortRequest& request,
                                                   Errors& errors) {
  auto port = std::make_unique<PacketReceiver>(interface, request);
  return port->open(errors) ? std::move(port) : nullptr;
}

std::unique_ptr<PortSender> open_packet_sender(const Interface& interface, Errors& errors) {
  // Protocol 0: it receives nothing.
  Descriptor s(socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const sockaddr_ll address = address_of(interface, 0);
  if (!s || bind(s.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) < 0) {
    (void)errors.error("{}: packet socket: {}", interface.name, explain_errno(errno));
    return nullptr;
  }
  return std::make_unique<PacketSender>(interface, std::move(s));
}

}  // namespace headrace::io
