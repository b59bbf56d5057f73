#pragma once
/// \file
/// A transmit queue of a port, and what waits for it.

#include <atomic>
#include <cstdint>

#include "headrace/ring.hh"
#include "io/dpdk/mbuf.hh"
#include "io/dpdk/port.hh"

namespace headrace::io::dpdk {

/// The driver takes packets from one thread at a time. A thread that finds the queue busy leaves its packets in the
/// backlog, and the thread that holds the queue sends them before it leaves: no thread waits.
struct Port::TransmitQueue {
  TransmitQueue(uint16_t id, uint32_t room) : id(id), backlog(room < 2 ? 2 : room, room < 2 ? 2 : room) {}
  ~TransmitQueue() {
    for (uint32_t i = 0; i < front_size; ++i) rte_pktmbuf_free(front[front_at + i]);
    rte_mbuf* m;
    while (backlog.dequeue(&m, 1)) rte_pktmbuf_free(m);
  }

  bool enter() { return !busy.exchange(true, std::memory_order_seq_cst); }
  /// An exchange, not a store: it comes before or after another thread's enter(). Before, and that thread gets in;
  /// after, and the caller then sees what that thread put into the backlog.
  void leave() { busy.exchange(false, std::memory_order_seq_cst); }
  /// May be true for nothing, until the queue is drained; is never false for a packet whose sender is done.
  bool waiting() const { return waits.load(std::memory_order_seq_cst); }
  /// Queues mbufs, as many as there is room for; returns how many.
  int enqueue(rte_mbuf** mbufs, int n) {
    const uint32_t queued = backlog.enqueue(mbufs, static_cast<uint32_t>(n));
    if (queued > 0) waits.store(true, std::memory_order_seq_cst);
    return static_cast<int>(queued);
  }

  static constexpr uint32_t kFront = 64;
  const uint16_t id;
  std::atomic<bool> waits{false};  // set behind what is queued, cleared before it is taken out
  alignas(64) std::atomic<bool> busy{false};
  /// Taken out of the backlog, but not taken by the driver. Only for the thread that holds the queue.
  rte_mbuf* front[kFront];
  uint32_t front_at = 0, front_size = 0;
  Ring<rte_mbuf*> backlog;
};

}  // namespace headrace::io::dpdk
