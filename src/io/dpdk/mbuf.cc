#include "io/dpdk/mbuf.hh"

#include <fmt/format.h>
#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_lcore.h>
#include <rte_memory.h>
#include <rte_mempool.h>

#include <cstring>

#include "io/dpdk/eal.hh"

namespace headrace::io::dpdk {

namespace {

/// Buffers that a thread keeps in DPDK's own cache, last in first out: what is sent is used again while it is warm.
constexpr unsigned kCacheSize = 256;
rte_mempool* g_mempool = nullptr;

/// The mempool's operations. A thread that is not ours (DPDK has some) must not touch a thread's cache.
int take(rte_mempool*, void** objects, unsigned n) {
  auto* packets = reinterpret_cast<Packet**>(objects);
  PacketPool& pool = PacketPool::instance();
  const bool ours = thread_attached();
  const uint32_t got = ours ? pool.allocate_bulk(packets, n) : pool.allocate_shared(packets, n);
  if (got < n) {
    ours ? pool.release_bulk(packets, got) : pool.release_shared(packets, got);
    return -ENOBUFS;
  }
  for (unsigned i = 0; i < n; ++i) {
    rte_mbuf* m = mbuf_of(packets[i]);
    if (m->pool != g_mempool) [[unlikely]]
      initialize_mbuf(m);
    objects[i] = m;
  }
  return 0;
}

int give(rte_mempool*, void* const* objects, unsigned n) {
  constexpr unsigned kMost = 256;
  Packet* packets[kMost];
  for (unsigned done = 0; done < n;) {
    const unsigned part = std::min(n - done, kMost);
    for (unsigned i = 0; i < part; ++i) packets[i] = packet_of(static_cast<rte_mbuf*>(objects[done + i]));
    if (thread_attached())
      PacketPool::instance().release_bulk(packets, part);
    else
      PacketPool::instance().release_shared(packets, part);
    done += part;
  }
  return 0;
}

int begin(rte_mempool*) { return 0; }
void end(rte_mempool*) {}

unsigned count(const rte_mempool*) {
  const PacketPool& pool = PacketPool::instance();
  return pool.buffers() - std::min(pool.buffers(), pool.in_use());
}

/// The buffers exist and may be in use: nothing is put into the mempool.
int populate(rte_mempool* mp, unsigned most, void*, rte_iova_t, size_t, rte_mempool_populate_obj_cb_t*, void*) {
  mp->populated_size = mp->size;
  return static_cast<int>(most);
}

constexpr const char* kOps = "headrace";

uint32_t free_in_caches() {
  uint32_t n = 0;
  for (unsigned lcore = 0; lcore < RTE_MAX_LCORE; ++lcore)
    n += __atomic_load_n(&g_mempool->local_cache[lcore].len, __ATOMIC_RELAXED);
  return n;
}

}  // namespace

rte_mempool* packet_mempool() { return g_mempool; }

void initialize_mbuf(rte_mbuf* m) {
  std::memset(static_cast<void*>(m), 0, sizeof *m);
  m->buf_addr = packet_of(m)->buffer();
  rte_mbuf_iova_set(m, reinterpret_cast<uintptr_t>(m->buf_addr));
  m->buf_len = PacketPool::kCapacity;
  m->data_off = RTE_PKTMBUF_HEADROOM;
  m->priv_size = sizeof(Packet);
  m->port = RTE_MBUF_PORT_INVALID;
  m->pool = g_mempool;
  m->refcnt = 1;
  m->nb_segs = 1;
}

std::string make_mempool() {
  if (rte_eal_iova_mode() == RTE_IOVA_PA)
    return "DPDK wants to use physical addresses, which packet memory does not have: bind devices to vfio-pci, with "
           "the IOMMU on, and leave out --iova-mode=pa";

  rte_mempool_ops ops{};
  std::snprintf(ops.name, sizeof ops.name, "%s", kOps);
  ops.alloc = &begin;
  ops.free = &end;
  ops.enqueue = &give;
  ops.dequeue = &take;
  ops.get_count = &count;
  ops.populate = &populate;
  if (rte_mempool_register_ops(&ops) < 0) return "DPDK has no room for the operations of a mempool";

  PacketPool& pool = PacketPool::instance();
  constexpr unsigned kObject = sizeof(rte_mbuf) + sizeof(Packet) + PacketPool::kCapacity;
  rte_mempool* mp = rte_mempool_create_empty("headrace", pool.buffers(), kObject, kCacheSize,
                                             sizeof(rte_pktmbuf_pool_private), SOCKET_ID_ANY, RTE_MEMPOOL_F_NO_SPREAD);
  if (!mp) return fmt::format("DPDK makes no mempool: {}", rte_strerror(rte_errno));
  static_assert(PacketPool::kLead + kObject == PacketPool::kStride);
  if (mp->header_size != PacketPool::kLead || mp->trailer_size != 0)
    return "this DPDK lays the objects of a mempool out in a way that this headrace does not know";
  rte_mempool_set_ops_byname(mp, kOps, nullptr);
  auto* info = static_cast<rte_pktmbuf_pool_private*>(rte_mempool_get_priv(mp));
  std::memset(info, 0, sizeof *info);
  info->mbuf_data_room_size = PacketPool::kCapacity;
  info->mbuf_priv_size = sizeof(Packet);

  // Makes the memory known to drivers that map what they are given to a device.
  void* base = const_cast<void*>(pool.base());
  constexpr size_t kPage = size_t{2} << 20;
  if (rte_extmem_register(base, pool.bytes(), nullptr, pool.bytes() / kPage, kPage) != 0)
    return fmt::format("DPDK does not take our packet memory: {}", rte_strerror(rte_errno));
  g_mempool = mp;
  const int populated =
      rte_mempool_populate_iova(mp, static_cast<char*>(base), reinterpret_cast<uintptr_t>(base),
                                PacketPool::kLead + size_t{pool.buffers()} * PacketPool::kStride, nullptr, nullptr);
  if (populated < 0) return fmt::format("DPDK makes no mempool of our packet memory: {}", rte_strerror(-populated));
  pool.set_free_elsewhere(&free_in_caches);
  return {};
}

void flush_mempool_cache() {
  if (!g_mempool) return;
  if (rte_mempool_cache* cache = rte_mempool_default_cache(g_mempool, rte_lcore_id()))
    rte_mempool_cache_flush(cache, g_mempool);
}

}  // namespace headrace::io::dpdk
