#pragma once
/// \file
/// Where packet buffers come from.

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "headrace/packet.hh"
#include "headrace/ring.hh"

namespace headrace {

/// The process's packet memory: mapped by us (huge pages if the system has some reserved, else transparent ones), so
/// that a driver or a GPU can register it as one range. It belongs to the process, not to a configuration.
///
/// Each thread keeps a first-in first-out cache of free buffers: like the ring of a network card it cycles through all
/// of its buffers, and it touches shared memory only to exchange 512 buffers at a time.
class PacketPool {
 public:
  static constexpr uint32_t kDataRoom = 2048 + Packet::kDefaultHeadroom;
  static constexpr uint32_t kDriverRoom = 128;  // an rte_mbuf fits in front of each Packet
  /// An odd number of cache lines, so that equal offsets of neighbouring buffers fall into different cache sets.
  static constexpr uint32_t kStride = 39 * 64;
  static_assert(kStride >= kDriverRoom + sizeof(Packet) + kDataRoom);
  static constexpr uint32_t kDefaultBuffers = 65536;

  static PacketPool& instance();

  /// Sets the number of buffers; only before the first packet is made.
  void set_buffers(uint32_t n) { wanted_ = n; }
  uint32_t buffers() const { return wanted_; }

  Packet* allocate(uint32_t length, uint32_t headroom);
  void release(Packet* p);
  /// `n` buffers without any initialisation (the caller calls Packet::reset); returns how many there were.
  uint32_t allocate_bulk(Packet** out, uint32_t n);
  void release_bulk(Packet* const* p, uint32_t n);
  /// Makes the running thread's cache cycle through at least `n` buffers; returns how many it got.
  uint32_t reserve(uint32_t n);

  /// The mapped range, for registration with a device.
  const void* base() const { return base_; }
  size_t bytes() const { return bytes_; }
  /// "2 MiB huge pages", "transparent huge pages".
  const char* page_kind() const { return page_kind_; }
  /// Buffers that are neither in the pool nor in a thread's cache. Exact only while no worker runs.
  uint32_t in_use() const;

 private:
  struct Cache;
  PacketPool() = default;
  void map();
  Cache& cache();
  bool refill(Cache& c, uint32_t n);
  void spill(Cache& c, uint32_t n);
  Packet* allocate_large(uint32_t length, uint32_t headroom);

  uint32_t wanted_ = kDefaultBuffers;
  uint8_t* base_ = nullptr;
  size_t bytes_ = 0;
  const char* page_kind_ = "";
  std::unique_ptr<Ring<Packet*>> free_;
  std::atomic<Cache*> caches_[kMaxThreads] = {};
  std::atomic<int64_t> large_in_use_{0};
};

}  // namespace headrace
