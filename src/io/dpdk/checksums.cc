// Checksums of packets that are sent: by the port where it can, else here.

#include <rte_ethdev.h>
#include <rte_ip.h>
#include <rte_tcp.h>
#include <rte_udp.h>

#include <cstring>

#include "headrace/headers_of.hh"
#include "io/dpdk/mbuf.hh"
#include "io/dpdk/port.hh"

namespace headrace::io::dpdk {

namespace {

uint16_t load_be16(const uint8_t* at) { return static_cast<uint16_t>(at[0] << 8 | at[1]); }
void store(uint8_t* at, uint16_t value) { std::memcpy(at, &value, sizeof value); }

uint16_t fold(uint32_t sum) {
  sum = (sum & 0xffff) + (sum >> 16);
  return static_cast<uint16_t>((sum & 0xffff) + (sum >> 16));
}

/// Offset of the checksum in a transport header; 0 for others.
uint32_t checksum_offset(uint32_t protocol) {
  return protocol == ip_protocol::kTcp   ? offsetof(rte_tcp_hdr, cksum)
         : protocol == ip_protocol::kUdp ? offsetof(rte_udp_hdr, dgram_cksum)
                                         : 0;
}

/// The sum over the pseudo-header, in network order. DPDK's own functions know no extension headers.
uint16_t pseudo_sum(const uint8_t* ip, const TransportPlace& place) {
  const uint32_t addresses = place.version == 4 ? rte_raw_cksum(ip + 12, 8) : rte_raw_cksum(ip + 8, 32);
  return fold(addresses + rte_cpu_to_be_16(static_cast<uint16_t>(place.end - place.at)) +
              rte_cpu_to_be_16(static_cast<uint16_t>(place.protocol)));
}

/// Whether IPv6's header names the destination that the pseudo-header contains: a routing header may hold the last one.
bool has_final_destination(const uint8_t* frame, const TransportPlace& place) {
  return place.routing_header == 0 || frame[place.routing_header + 3] == 0;
}

}  // namespace

/// Frames of one buffer; larger ones go as they are.
void Port::set_checksums(rte_mbuf* m) const {
  if (m->nb_segs != 1) return;
  auto* frame = rte_pktmbuf_mtod(m, uint8_t*);
  const TransportPlace place = find_transport_in_frame(PacketBytes{frame, m->data_len});
  if (place.version == 0) return;
  const bool v4 = place.version == 4;
  uint8_t* const ip = frame + place.network;
  const int32_t stated = v4 ? load_be16(ip + 2) : 40 + load_be16(ip + 4);
  if (place.end - place.network != stated) return;  // cut short

  const auto l2 = static_cast<uint32_t>(place.network);
  const auto l3 = static_cast<uint32_t>(place.at - place.network);
  // Ports differ in what they make of extension headers, and an mbuf has seven bits for the length of layer 2.
  const uint64_t offloads = l2 < 128 && (v4 || l3 == sizeof(rte_ipv6_hdr)) ? hardware_checksums_ : 0;
  if (offloads) {
    m->l2_len = l2;
    m->l3_len = l3;
  }
  if (v4 && settings_.ip_checksums) {
    std::memset(ip + 10, 0, 2);
    if (offloads & RTE_ETH_TX_OFFLOAD_IPV4_CKSUM)
      m->ol_flags |= RTE_MBUF_F_TX_IPV4 | RTE_MBUF_F_TX_IP_CKSUM;
    else
      store(ip + 10, static_cast<uint16_t>(~rte_raw_cksum(ip, l3)));
  }

  const uint32_t offset = checksum_offset(place.protocol);
  if (!settings_.l4_checksums || !place.has_header || place.fragment || offset == 0 ||
      place.at + static_cast<int32_t>(offset) + 2 > place.end || !has_final_destination(frame, place))
    return;
  uint8_t* const transport = frame + place.at;
  const bool tcp = place.protocol == ip_protocol::kTcp;
  // A UDP packet over IPv4 may go without.
  if (!tcp && v4 && load_be16(transport + offset) == 0) return;
  if (offloads & (tcp ? RTE_ETH_TX_OFFLOAD_TCP_CKSUM : RTE_ETH_TX_OFFLOAD_UDP_CKSUM)) {
    m->ol_flags |= v4 ? RTE_MBUF_F_TX_IPV4 : RTE_MBUF_F_TX_IPV6;
    m->ol_flags |= tcp ? RTE_MBUF_F_TX_TCP_CKSUM : RTE_MBUF_F_TX_UDP_CKSUM;
    m->l4_len = tcp ? (transport[12] >> 4) * 4u : sizeof(rte_udp_hdr);
    store(transport + offset, pseudo_sum(ip, place));
    return;
  }
  store(transport + offset, 0);
  const auto segment = static_cast<size_t>(place.end - place.at);
  const auto checksum =
      static_cast<uint16_t>(~fold(uint32_t{rte_raw_cksum(transport, segment)} + pseudo_sum(ip, place)));
  // In UDP, zero means that there is none; ones are the same number.
  store(transport + offset, !tcp && checksum == 0 ? uint16_t{0xffff} : checksum);
}

}  // namespace headrace::io::dpdk
