#pragma once
/// \file
/// A transmit queue of a port, and what waits for it.

#include <atomic>
#include <cstdint>

#include "headrace/ring.hh"
#include "io/dpdk/mbuf.hh"
#include "io/dpdk/port.hh"

namespace headrace::io::dpdk {

/// The driver takes packets from one thread at a time. Whoever finds it busy leaves its packets in the backlog, and the
/// one who is busy sends them before it goes: nobody waits.
struct Port::TransmitQueue {
  TransmitQueue(uint16_t id, uint32_t room) : id(id), backlog(room < 2 ? 2 : room, room < 2 ? 2 : room) {}
  ~TransmitQueue() {
    for (uint32_t i = 0; i < front_size; ++i) rte_pktmbuf_free(front[front_at + i]);
    rte_mbuf* m;
    while (backlog.dequeue(&m, 1)) rte_pktmbuf_free(m);
  }

  bool enter() { return !busy.exchange(true, std::memory_order_seq_cst); }
  void leave() {
    busy.store(false, std::memory_order_seq_cst);
    // Before the caller looks at the backlog: who found it busy left packets there, and looks at `busy` then.
    std::atomic_thread_fence(std::memory_order_seq_cst);
  }
  bool waiting() const { return front_waits.load(std::memory_order_seq_cst) || backlog.size() > 0; }

  static constexpr uint32_t kFront = 64;
  const uint16_t id;
  alignas(64) std::atomic<bool> busy{false};
  /// Taken out of the backlog, but not taken by the driver. Only for who is busy.
  rte_mbuf* front[kFront];
  uint32_t front_at = 0, front_size = 0;
  std::atomic<bool> front_waits{false};
  Ring<rte_mbuf*> backlog;
};

}  // namespace headrace::io::dpdk
