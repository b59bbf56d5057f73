// What moves packets: receive and transmit.

#include <rte_ethdev.h>

#include <cstring>

#include "io/dpdk/mbuf.hh"
#include "io/dpdk/port.hh"
#include "io/dpdk/transmit_queue.hh"

namespace headrace::io::dpdk {

namespace {

constexpr int kMostInBurst = 256;
/// Received packets that are looked at together.
constexpr int kPiece = 32;
constexpr uint32_t kShortestFrame = 14;
constexpr uint64_t kForeign = RTE_MBUF_F_EXTERNAL | RTE_MBUF_F_INDIRECT;
constexpr uint64_t kUnusual = kForeign | RTE_MBUF_F_RX_VLAN_STRIPPED;

/// A packet of its own for a frame that lies in several buffers, or in memory that is not ours; null without a buffer.
Packet* copy_of(rte_mbuf* frame) {
  Packet* p = Packet::make(frame->pkt_len);
  if (p) {
    uint8_t* at = p->data();
    for (const rte_mbuf* m = frame; m; m = m->next) {
      std::memcpy(at, rte_pktmbuf_mtod(m, const void*), m->data_len);
      at += m->data_len;
    }
  }
  return p;
}

/// The packet that prepare() made an mbuf of, or one like it; null without a buffer.
Packet* unprepare(rte_mbuf* m) {
  if (m->nb_segs == 1) return packet_of(m);
  Packet* p = copy_of(m);
  rte_pktmbuf_free(m);
  return p;
}

/// Puts back a VLAN tag that the driver took off.
void restore_tag(Packet& p, uint16_t tci) {
  if (!p.push(4)) return;
  uint8_t* d = p.data();
  std::memmove(d, d + 4, 12);
  d[12] = 0x81;
  d[13] = 0;
  d[14] = static_cast<uint8_t>(tci >> 8);
  d[15] = static_cast<uint8_t>(tci);
}

/// Whom a frame is for; `address` is the port's, as the six bytes lie in memory.
PacketType type_of(const uint8_t* frame, uint64_t address) {
  uint64_t destination;
  std::memcpy(&destination, frame, sizeof destination);
  // Without the two bytes behind it.
  destination <<= 16;
  if (destination == address << 16) return PacketType::kHost;
  if (!(destination & 0x10000)) return PacketType::kOtherHost;
  return destination == ~uint64_t{0} << 16 ? PacketType::kBroadcast : PacketType::kMulticast;
}

/// The packet of any frame, which is copied if need be, and gets back its VLAN tag; null without a buffer.
[[gnu::noinline, gnu::cold]] Packet* receive_any(rte_mbuf* m, uint64_t flags, const rte_mempool* mempool,
                                                 uint64_t address) {
  const uint16_t tci = m->vlan_tci;
  Packet* p = packet_of(m);
  if (m->nb_segs == 1 && m->pool == mempool && !(flags & kForeign)) {
    p->reset(m->data_len, m->data_off);
  } else {
    p = copy_of(m);
    rte_pktmbuf_free(m);
  }
  if (!p) return nullptr;
  if (flags & RTE_MBUF_F_RX_VLAN_STRIPPED) restore_tag(*p, tci);
  p->set_mac_header();
  p->set_packet_type(type_of(p->data(), address));
  return p;
}

bool found_wrong(uint64_t flags) {
  return (flags & RTE_MBUF_F_RX_IP_CKSUM_MASK) == RTE_MBUF_F_RX_IP_CKSUM_BAD ||
         (flags & RTE_MBUF_F_RX_L4_CKSUM_MASK) == RTE_MBUF_F_RX_L4_CKSUM_BAD;
}

// A burst is received in pieces, each in two loops that hold little in registers: one asks for what the other will need.

/// Asks for the packets and the frames of mbufs. True if all are single buffers of ours with nothing to put back.
[[gnu::noinline]] bool fetch(rte_mbuf* const* mbufs, int n, const rte_mempool* mempool) {
  // What any has, and what all have: of a mempool and of a number of segments, which is not 0, both tell that all have one.
  uint64_t flags = 0;
  uint16_t segments = 0;
  uintptr_t any_pool = 0, all_pools = ~uintptr_t{0};
  for (int i = 0; i < n; ++i) {
    rte_mbuf* m = mbufs[i];
    __builtin_prefetch(packet_of(m), 1);
    __builtin_prefetch(packet_of(m)->buffer() + Packet::kDefaultHeadroom);
    flags |= m->ol_flags;
    segments |= m->nb_segs;
    any_pool |= reinterpret_cast<uintptr_t>(m->pool);
    all_pools &= reinterpret_cast<uintptr_t>(m->pool);
  }
  const auto ours = reinterpret_cast<uintptr_t>(mempool);
  return n == 0 || (!(flags & kUnusual) && segments == 1 && any_pool == ours && all_pools == ours);
}

/// Makes the packets of such mbufs; returns their bytes.
[[gnu::noinline]] uint64_t receive_usual(rte_mbuf* const* mbufs, int n, Packet** out, uint64_t address) {
  uint64_t bytes = 0;
  for (int i = 0; i < n; ++i) {
    const rte_mbuf* m = mbufs[i];
    Packet* p = packet_of(mbufs[i]);
    const uint32_t begin = m->data_off;
    const uint32_t length = m->data_len;
    const uint32_t hash = m->ol_flags & RTE_MBUF_F_RX_RSS_HASH ? m->hash.rss : 0;
    p->reset_received(length, begin, type_of(p->buffer() + begin, address), hash);
    bytes += length;
    out[i] = p;
  }
  return bytes;
}

}  // namespace

Port::Received Port::receive(int queue, Packet** out, int most, bool* bad) {
  Received result;
  if (!usable()) [[unlikely]]
    return result;
  rte_mbuf* burst[kMostInBurst];
  const int n = rte_eth_rx_burst(id_.load(std::memory_order_relaxed), static_cast<uint16_t>(queue), burst,
                                 static_cast<uint16_t>(most));
  const rte_mempool* const mempool = packet_mempool();
  const uint64_t address = address_.load(std::memory_order_relaxed);
  int end = std::min(n, kPiece);
  bool usual = fetch(burst, end, mempool);
  for (int begin = 0; begin < n;) {
    const int next_end = std::min(n, end + kPiece);
    const bool next_usual = fetch(burst + end, next_end - end, mempool);
    if (usual) [[likely]] {
      result.bytes += receive_usual(burst + begin, end - begin, out + result.packets, address);
      for (int i = begin; bad && i < end; ++i) bad[result.packets + i - begin] = found_wrong(burst[i]->ol_flags);
      result.packets += end - begin;
    } else {
      for (int i = begin; i < end; ++i) {
        const uint64_t flags = burst[i]->ol_flags;
        const uint32_t hash = burst[i]->hash.rss;
        Packet* p = receive_any(burst[i], flags, mempool, address);
        if (!p) {
          ++result.lost;
          continue;
        }
        if (flags & RTE_MBUF_F_RX_RSS_HASH) p->set_rx_hash(hash);
        if (bad) bad[result.packets] = found_wrong(flags);
        result.bytes += p->length();
        out[result.packets++] = p;
      }
    }
    usual = next_usual;
    begin = end;
    end = next_end;
  }
  return result;
}

/// Makes the mbuf of a packet that a port has received, or another element made, ready to be sent.
inline rte_mbuf* Port::prepare(Packet* p, uint32_t length, const rte_mempool* mempool) {
  rte_mbuf* m = mbuf_of(p);
  if (m->pool != mempool) [[unlikely]]
    initialize_mbuf(m);
  m->data_off = static_cast<uint16_t>(p->headroom());
  // Lengths of packet and data, and no VLAN tag, in one store.
  static_assert(offsetof(rte_mbuf, data_len) == offsetof(rte_mbuf, pkt_len) + 4 &&
                offsetof(rte_mbuf, vlan_tci) == offsetof(rte_mbuf, pkt_len) + 6);
  const uint64_t lengths = length | uint64_t{length} << 32;
  std::memcpy(&m->pkt_len, &lengths, sizeof lengths);
  m->ol_flags = 0;
  return m;
}

/// A packet that has no mbuf in front of it is copied, to as many buffers as it takes.
rte_mbuf* Port::prepare_large(Packet* p) {
  rte_mbuf *first = nullptr, *last = nullptr;
  for (uint32_t done = 0; done < p->length();) {
    rte_mbuf* m = first && !segments_ ? nullptr : rte_pktmbuf_alloc(packet_mempool());
    if (!m) {
      if (first) rte_pktmbuf_free(first);
      return nullptr;
    }
    const uint32_t part = std::min<uint32_t>(p->length() - done, rte_pktmbuf_tailroom(m));
    std::memcpy(rte_pktmbuf_mtod(m, void*), p->data() + done, part);
    m->data_len = static_cast<uint16_t>(part);
    done += part;
    if (last)
      last->next = m;
    else
      first = m;
    last = m;
    first->pkt_len = done;
    first->nb_segs = static_cast<uint16_t>(first->nb_segs + (m != first));
  }
  packet_of(first)->reset(p->length(), first->data_off);
  p->kill();
  return first;
}

int Port::send_burst(TransmitQueue& queue, rte_mbuf** mbufs, int n) {
  if (!usable()) [[unlikely]]
    return 0;
  return rte_eth_tx_burst(id_.load(std::memory_order_relaxed), queue.id, mbufs, static_cast<uint16_t>(n));
}

/// Sends waiting packets; only for the thread that holds the queue. True if the driver took anything.
bool Port::drain(TransmitQueue& queue) {
  bool any = false;
  // An exchange, not a store: what was queued before the flag that it clears is seen below.
  queue.waits.exchange(false, std::memory_order_seq_cst);
  for (;;) {
    if (queue.front_size == 0) {
      queue.front_at = 0;
      queue.front_size = queue.backlog.dequeue(queue.front, TransmitQueue::kFront);
      if (queue.front_size == 0) break;
    }
    const auto sent =
        static_cast<uint32_t>(send_burst(queue, queue.front + queue.front_at, static_cast<int>(queue.front_size)));
    queue.front_at += sent;
    queue.front_size -= sent;
    any |= sent > 0;
    if (queue.front_size > 0) break;
  }
  // A thread that lost its CPU while it queued packets holds up those behind its own.
  if (queue.front_size > 0 || queue.backlog.size() > 0) queue.waits.store(true, std::memory_order_seq_cst);
  return any;
}

Port::Transmitted Port::transmit(int queue_id, Packet** packets, int n, Sender sender) {
  Transmitted result;
  TransmitQueue& queue = *transmit_queues_[static_cast<size_t>(queue_id)];
  const PacketPool& pool = PacketPool::instance();
  const auto* const base = static_cast<const uint8_t*>(pool.base());
  const size_t room = pool.bytes();
  const rte_mempool* const mempool = packet_mempool();
  const uint32_t longest = longest_frame_;
  rte_mbuf* mbufs[kMostInBurst];
  rte_mbuf** end = mbufs;
  uint64_t bytes = 0;
  for (int i = 0; i < n; ++i) {
    Packet* const p = packets[i];
    const uint32_t length = p->length();
    const bool fits = length - kShortestFrame <= longest - kShortestFrame;
    const bool ours = static_cast<size_t>(reinterpret_cast<const uint8_t*>(p) - base) < room;
    rte_mbuf* m = nullptr;
    if (fits && ours) [[likely]]
      m = prepare(p, length, mempool);
    else if (fits)
      m = prepare_large(p);
    if (!m) [[unlikely]] {
      p->kill();
      ++result.unfit;
      continue;
    }
    bytes += length;
    *end++ = m;
  }
  const auto ready = static_cast<int>(end - mbufs);
  if (sets_checksums_) [[unlikely]]
    for (int i = 0; i < ready; ++i) set_checksums(mbufs[i]);

  int taken = 0;
  if (sender == Sender::kOwner) {
    if (!queue.waiting()) [[likely]]
      taken = send_burst(queue, mbufs, ready);
  } else if (sender == Sender::kAny && !queue.waiting() && queue.enter()) {
    // Again: other threads may have queued packets meanwhile, which come first.
    if (!queue.waiting()) taken = send_burst(queue, mbufs, ready);
    queue.leave();
  }
  if (taken < ready) [[unlikely]]
    taken += queue.enqueue(mbufs + taken, ready - taken);
  // Re-check the backlog before leaving: no other thread will send packets queued while we held the queue.
  if (queue.waiting()) [[unlikely]] {
    if (sender != Sender::kGuest) flush(queue_id, sender);
    result.waiting = queue.waiting();
  }

  result.packets = taken;
  for (int i = taken; i < ready; ++i) {
    bytes -= mbufs[i]->pkt_len;
    if (Packet* p = unprepare(mbufs[i]))
      packets[result.left++] = p;
    else
      ++result.unfit;
  }
  result.bytes = bytes;
  return result;
}

bool Port::flush(int queue_id, Sender sender) {
  TransmitQueue& queue = *transmit_queues_[static_cast<size_t>(queue_id)];
  bool any = false;
  while (queue.waiting() && (sender == Sender::kOwner || queue.enter())) {
    const bool sent = drain(queue);
    if (sender != Sender::kOwner) queue.leave();
    any |= sent;
    if (!sent) break;
  }
  return any;
}

bool Port::waiting(int queue) const { return transmit_queues_[static_cast<size_t>(queue)]->waiting(); }

}  // namespace headrace::io::dpdk
