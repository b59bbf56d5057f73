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
constexpr int kPiece = 64;
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

/// Whom a frame is for: its first six bytes as they lie in memory, above 16 bits of zeros; `address` is the port's, without
/// these.
PacketType type_of(uint64_t destination, uint64_t address) {
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
  uint64_t destination;
  std::memcpy(&destination, p->data(), sizeof destination);
  p->set_packet_type(type_of(destination << 16, address));
  return p;
}

bool found_wrong(uint64_t flags) {
  return (flags & RTE_MBUF_F_RX_IP_CKSUM_MASK) == RTE_MBUF_F_RX_IP_CKSUM_BAD ||
         (flags & RTE_MBUF_F_RX_L4_CKSUM_MASK) == RTE_MBUF_F_RX_L4_CKSUM_BAD;
}

// A burst is received in pieces, each in two loops that hold little in registers: one asks for what the other will need.

/// 16 bytes of an mbuf, from any of its words on.
using Words [[gnu::vector_size(16)]] = uint64_t;
Words words_at(const void* at) {
  Words words;
  std::memcpy(&words, at, sizeof words);
  return words;
}

/// What the mbufs of a piece are.
struct Piece {
  bool usual;      // single buffers of ours that begin at one place, with nothing to put back
  bool hashed;     // some
  uint16_t begin;  // where the frames of such do
};

/// Asks for the packets and the frames of mbufs.
[[gnu::noinline]] Piece fetch(rte_mbuf* const* mbufs, int n, const rte_mempool* mempool) {
  // What any has, and what all have, of the two words from data_off on, and of the two up to the mempool.
  static_assert(offsetof(rte_mbuf, ol_flags) == offsetof(rte_mbuf, data_off) + 8 &&
                offsetof(rte_mbuf, nb_segs) == offsetof(rte_mbuf, data_off) + 4 && offsetof(rte_mbuf, pool) % 16 == 8);
  Words any = {}, all = ~any, any_pool = {}, all_pools = ~any;
  for (int i = 0; i < n; ++i) {
    rte_mbuf* m = mbufs[i];
    __builtin_prefetch(packet_of(m), 1);
    __builtin_prefetch(packet_of(m)->buffer() + Packet::kDefaultHeadroom);
    const Words begin_and_flags = words_at(&m->data_off);
    any |= begin_and_flags;
    all &= begin_and_flags;
    const Words pool = words_at(reinterpret_cast<const char*>(&m->pool) - 8);
    any_pool |= pool;
    all_pools &= pool;
  }
  const auto begin = static_cast<uint16_t>(any[0]);
  const auto ours = reinterpret_cast<uintptr_t>(mempool);
  const bool usual = static_cast<uint16_t>(all[0]) == begin && static_cast<uint16_t>(any[0] >> 32) == 1 &&
                     !(any[1] & kUnusual) && any_pool[1] == ours && all_pools[1] == ours;
  return {usual || n == 0, (any[1] & RTE_MBUF_F_RX_RSS_HASH) != 0, begin};
}

/// Makes the packets of such mbufs; returns their bytes.
template <bool kHashed>
[[gnu::noinline]] uint64_t receive_usual(rte_mbuf* const* mbufs, int n, Packet** out, uint32_t begin,
                                         uint64_t address) {
  uint64_t bytes = 0;
  // Frames to a router have one destination, as a rule its own. Without the two bytes behind it.
  uint64_t last = address << 16;
  Packet::Received as(begin, PacketType::kHost);
  for (int i = 0; i < n; ++i) {
    const rte_mbuf* m = mbufs[i];
    Packet* p = packet_of(mbufs[i]);
    uint64_t destination;
    std::memcpy(&destination, p->buffer() + begin, sizeof destination);
    destination <<= 16;
    if (destination != last) [[unlikely]] {
      last = destination;
      as = Packet::Received(begin, type_of(destination, address));
    }
    p->reset_received(m->data_len, as);
    if (kHashed && m->ol_flags & RTE_MBUF_F_RX_RSS_HASH) p->set_rx_hash(m->hash.rss);
    bytes += m->data_len;
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
  Piece piece = fetch(burst, end, mempool);
  for (int begin = 0; begin < n;) {
    const int next_end = std::min(n, end + kPiece);
    const Piece next = fetch(burst + end, next_end - end, mempool);
    if (piece.usual) [[likely]] {
      const auto make = piece.hashed ? receive_usual<true> : receive_usual<false>;
      result.bytes += make(burst + begin, end - begin, out + result.packets, piece.begin, address);
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
    piece = next;
    begin = end;
    end = next_end;
  }
  return result;
}

namespace {

/// Tells the driver where an mbuf's packet lies. That there is no VLAN tag is said by the flags.
inline void prepare(rte_mbuf* m, const Packet& p) {
  m->data_off = static_cast<uint16_t>(p.headroom());
  m->pkt_len = p.length();
  m->data_len = static_cast<uint16_t>(p.length());
  m->ol_flags = 0;
}

}  // namespace

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

inline int Port::send_burst(TransmitQueue& queue, rte_mbuf** mbufs, int n) {
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

/// Makes the mbufs of any packets; returns how many. Those that may not be sent are killed.
[[gnu::noinline, gnu::cold]] int Port::prepare_any(Packet** packets, int n, rte_mbuf** mbufs, uint64_t& bytes) {
  int ready = 0;
  for (int i = 0; i < n; ++i) {
    Packet* const p = packets[i];
    const uint32_t length = p->length();
    rte_mbuf* m = nullptr;
    if (length < kShortestFrame || length > longest_frame_) {
      p->kill();
    } else if (p->is_pooled()) {
      m = mbuf_of(p);
      // Of a packet that another element made.
      if (m->pool != packet_mempool()) initialize_mbuf(m);
      prepare(m, *p);
    } else {
      m = prepare_large(p);
      if (!m) p->kill();
    }
    if (!m) continue;
    bytes += length;
    mbufs[ready++] = m;
  }
  return ready;
}

Port::Transmitted Port::transmit(int queue_id, Packet** packets, int n, Sender sender) {
  TransmitQueue& queue = *transmit_queues_[static_cast<size_t>(queue_id)];
  const rte_mempool* const mempool = packet_mempool();
  const uint32_t most = longest_frame_ - kShortestFrame;
  rte_mbuf* mbufs[kMostInBurst];
  uint64_t bytes = 0;
  // Unsigned, so that no index is extended in the loop.
  size_t usual = 0;
  const auto all = static_cast<size_t>(n);
  // Nearly all packets were received by a port.
  while (usual < all) {
    Packet* const p = packets[usual];
    rte_mbuf* const m = mbuf_of(p);
    const uint32_t length = p->length();
    if (length - kShortestFrame > most || !p->is_pooled() || m->pool != mempool) [[unlikely]]
      break;
    prepare(m, *p);
    bytes += length;
    mbufs[usual++] = m;
  }
  int unfit = 0, ready = static_cast<int>(usual);
  if (ready < n) [[unlikely]] {
    // Of its own, so that `bytes` need not lie in memory.
    uint64_t bytes_of_rest = 0;
    const int rest = prepare_any(packets + ready, n - ready, mbufs + ready, bytes_of_rest);
    bytes += bytes_of_rest;
    unfit = n - ready - rest;
    ready += rest;
  }
  if (sets_checksums_) [[unlikely]]
    for (int i = 0; i < ready; ++i) set_checksums(mbufs[i]);

  int taken = 0;
  if (!queue.waiting()) [[likely]]
    taken = sender == Sender::kOwner ? send_burst(queue, mbufs, ready) : send_shared(queue, mbufs, ready, sender);
  const Transmitted result{bytes, static_cast<uint16_t>(taken), static_cast<uint16_t>(unfit)};
  if (taken < ready || queue.waiting()) [[unlikely]]
    return leave_waiting(queue_id, packets, mbufs + taken, ready - taken, sender, result);
  return result;
}

/// Sends by a queue that other threads use, too; returns how many mbufs the driver has taken.
[[gnu::noinline]] int Port::send_shared(TransmitQueue& queue, rte_mbuf** mbufs, int n, Sender sender) {
  if (sender != Sender::kAny || !queue.enter()) return 0;
  // Again: other threads may have queued packets meanwhile, which come first.
  const int taken = queue.waiting() ? 0 : send_burst(queue, mbufs, n);
  queue.leave();
  return taken;
}

/// The end of transmit(), where the driver has not taken all mbufs, or other packets wait: `left` of them are left.
Port::Transmitted Port::leave_waiting(int queue_id, Packet** packets, rte_mbuf** mbufs, int left, Sender sender,
                                      Transmitted result) {
  TransmitQueue& queue = *transmit_queues_[static_cast<size_t>(queue_id)];
  const int queued = left > 0 ? queue.enqueue(mbufs, left) : 0;
  result.packets = static_cast<uint16_t>(result.packets + queued);
  // Re-check the backlog before leaving: no other thread will send packets queued while we held the queue.
  if (queue.waiting()) {
    if (sender != Sender::kGuest) flush(queue_id, sender);
    result.waiting = queue.waiting();
  }
  for (int i = queued; i < left; ++i) {
    result.bytes -= mbufs[i]->pkt_len;
    if (Packet* p = unprepare(mbufs[i]))
      packets[result.left++] = p;
    else
      ++result.unfit;
  }
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
