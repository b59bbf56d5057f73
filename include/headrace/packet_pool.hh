#pragma once
/// \file
/// Where packet buffers come from.

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "headrace/packet.hh"
#include "headrace/ring.hh"
#include "headrace/single_writer.hh"
#include "headrace/worker.hh"

namespace headrace {

/// The process's packet memory. We map it ourselves (huge pages if the system has some reserved, else transparent
/// ones), so that a driver or a GPU can register it as one range. It belongs to the process, not to a configuration.
///
/// Each thread keeps a first-in first-out cache of free buffers: like the ring of a network card it cycles through all
/// of its buffers, and it touches shared memory only to exchange 512 buffers at a time.
class PacketPool {
 public:
  static constexpr uint32_t kDataRoom = 2048 + Packet::kDefaultHeadroom;
  static constexpr uint32_t kDriverRoom = 128;  // an rte_mbuf fits in front of each Packet
  /// Before the first buffer, and unused after the data of each buffer. Reading a header that a short packet lacks thus
  /// stays within the buffer, and buffers are laid out like the objects of an rte_mempool.
  static constexpr uint32_t kLead = 64;
  /// An odd number of cache lines, so that equal offsets of neighboring buffers fall into different cache sets.
  static constexpr uint32_t kStride = 39 * 64;
  /// Bytes from Packet::buffer() to the end of a buffer.
  static constexpr uint32_t kCapacity = kStride - kDriverRoom - sizeof(Packet) - kLead;
  static_assert(kCapacity >= kDataRoom && kCapacity == kBufferBytes);
  static constexpr uint32_t kDefaultBuffers = 65536;

  /// The process's.
  static PacketPool& instance();
  /// Another one, for tests.
  PacketPool() = default;
  ~PacketPool();
  PacketPool(const PacketPool&) = delete;
  PacketPool& operator=(const PacketPool&) = delete;

  /// Sets the number of buffers; only before the first packet is made.
  void set_buffers(uint32_t n) { wanted_ = n; }
  /// Gives workers buffers of their own NUMA nodes; only before the first packet is made.
  /// \param nodes by worker; -1: unknown
  void set_nodes(const std::vector<int>& nodes);
  uint32_t buffers() const { return wanted_; }

  Packet* allocate(uint32_t length, uint32_t headroom);
  void release(Packet* p);
  /// `n` buffers without any initialization (the caller calls Packet::reset); returns how many there were.
  uint32_t allocate_bulk(Packet** out, uint32_t n);
  void release_bulk(Packet* const* p, uint32_t n);
  /// Makes the running thread's cache cycle through at least `n` buffers; returns how many it got.
  uint32_t reserve(uint32_t n);
  /// Puts the running thread's free buffers into the order in which they lie, which their pages' translations and the
  /// CPU's prefetchers like. Takes some 2 ns a buffer.
  void sort();
  /// Says that a worker will use so many buffers. Call before workers run; the most counts.
  void expect(uint32_t buffers) { expected_ = std::max(expected_.get(), buffers); }
  /// Makes the kernel provide the memory of as many buffers as a worker is expected to use, so that page faults come before
  /// the first packet. Call on its CPU.
  void settle(int worker);

  /// As allocate_bulk() and release_bulk(), without a cache, as on a thread that has no thread_id().
  uint32_t allocate_shared(Packet** out, uint32_t n);
  void release_shared(Packet* const* p, uint32_t n);
  /// True for a packet in a buffer of the mapped range, false for one that was too large for it.
  bool contains(const Packet* p) const {
    return static_cast<size_t>(reinterpret_cast<const uint8_t*>(p) - base_) < bytes_;
  }
  /// For a driver that keeps free buffers of its own: `count` returns how many.
  void set_free_elsewhere(uint32_t (*count)()) { free_elsewhere_ = count; }

  /// Maps the memory if no packet was made yet.
  void prepare();
  /// The part of the pool whose memory is on the node of worker `worker`, and the part of a packet's buffer.
  int part_of_worker(int worker) const;
  int part_of(const Packet* p) const;
  /// The mapped range, for registration with a device.
  const void* base() const { return base_; }
  size_t bytes() const { return bytes_; }
  /// "2 MiB huge pages", "transparent huge pages".
  const char* page_kind() const { return page_kind_; }
  /// Buffers that are neither in the pool nor in a thread's cache nor free elsewhere. Exact only while no worker runs.
  uint32_t in_use() const;

 private:
  struct Cache;
  void map();
  /// The huge page in which a buffer begins; behind the last buffer, the end of the memory.
  uint8_t* page_of(uint32_t buffer) const;
  /// Null on a thread that has no thread_id().
  Cache* cache();
  Cache* make_cache();
  Packet* buffer_at(size_t number) const;
  bool refill(Cache& c, uint32_t n);
  void spill(Cache& c, uint32_t n);
  Packet* allocate_large(uint32_t length, uint32_t headroom);

  std::once_flag mapped_;
  uint32_t wanted_ = kDefaultBuffers;
  SingleWriter<uint32_t> expected_ = 4096;  // a thread's cache, when it is full
  uint8_t* base_ = nullptr;
  size_t bytes_ = 0;
  const char* page_kind_ = "";
  /// The buffers of one NUMA node, next to each other.
  struct Part {
    int node = -1;
    int workers = 0;
    uint32_t first = 0, buffers = 0;
    /// Those that were used before. They are used again first: what was never used costs no memory.
    std::unique_ptr<Ring<Packet*>> free;
    std::unique_ptr<std::atomic<uint32_t>> used;  ///< the first so many buffers were handed out, some time

    uint32_t unused() const { return buffers - used->load(std::memory_order_relaxed); }
  };
  /// Packets made of buffers that were never used before; returns how many there were.
  uint32_t take_unused(Part& part, Packet** out, uint32_t n);

  std::vector<Part> parts_;
  struct Place {
    int part = 0;
    int number = 0;  // among the workers of this part
  };
  std::vector<Place> places_;  // by worker
  std::atomic<uint32_t (*)()> free_elsewhere_{nullptr};
  std::atomic<Cache*> caches_[kMaxThreads + 1] = {};  // by thread_id() + 1; the first stays null
  std::atomic<int64_t> large_in_use_{0};
};

}  // namespace headrace
