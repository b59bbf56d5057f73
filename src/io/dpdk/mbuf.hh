#pragma once
/// \file
/// Packets as rte_mbufs, without a copy. For the sources of this folder: it includes DPDK's headers.
///
/// The driver room in front of every Packet holds an rte_mbuf, whose private area is the Packet and whose buffer is the
/// Packet's:
///
///     [ 64 | rte_mbuf 128 | Packet 128 | headroom 128 | data ... ]
///
/// This is how the objects of a packet mempool lie (its object header, which nobody reads, would be in the first 64
/// bytes), so drivers that look at the memory of a mempool as a whole find what they expect.

#include <rte_mbuf.h>

#include <string>

#include "headrace/packet_pool.hh"

namespace headrace::io::dpdk {

static_assert(sizeof(rte_mbuf) == PacketPool::kDriverRoom);
static_assert(RTE_PKTMBUF_HEADROOM == Packet::kDefaultHeadroom, "drivers set this headroom by themselves");

inline Packet* packet_of(rte_mbuf* m) { return reinterpret_cast<Packet*>(m + 1); }
inline rte_mbuf* mbuf_of(Packet* p) { return reinterpret_cast<rte_mbuf*>(p) - 1; }

/// Makes the one mempool, whose objects are the buffers of the PacketPool. The message of an error, or nothing.
std::string make_mempool();
rte_mempool* packet_mempool();

/// Fills in what a driver expects of an mbuf in the mempool: fields that stay as they are, and the state of a free one.
void initialize_mbuf(rte_mbuf* m);

/// Gives the calling thread's mempool cache back to the PacketPool.
void flush_mempool_cache();

}  // namespace headrace::io::dpdk
