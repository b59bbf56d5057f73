// Checksums of packets that are sent: by the port where it can, else here.

#include <rte_ethdev.h>
#include <rte_ip.h>
#include <rte_tcp.h>
#include <rte_udp.h>

#include <cstring>

#include "io/dpdk/mbuf.hh"
#include "io/dpdk/port.hh"

namespace headrace::io::dpdk {

namespace {

uint16_t load_be16(const uint8_t* at) { return static_cast<uint16_t>(at[0] << 8 | at[1]); }
void store(uint8_t* at, uint16_t value) { std::memcpy(at, &value, sizeof value); }

/// Offset of the checksum in a transport header; 0 for others.
uint32_t checksum_offset(uint8_t protocol) {
  return protocol == IPPROTO_TCP   ? offsetof(rte_tcp_hdr, cksum)
         : protocol == IPPROTO_UDP ? offsetof(rte_udp_hdr, dgram_cksum)
                                   : 0;
}

}  // namespace

/// Frames of one buffer; larger ones go as they are.
void Port::set_checksums(void* mbuf) const {
  auto* m = static_cast<rte_mbuf*>(mbuf);
  if (m->nb_segs != 1) return;
  auto* frame = rte_pktmbuf_mtod(m, uint8_t*);
  const uint32_t length = m->data_len;
  uint32_t at = 12;
  uint16_t type = load_be16(frame + at);
  at += 2;
  while ((type == RTE_ETHER_TYPE_VLAN || type == RTE_ETHER_TYPE_QINQ) && at + 4 <= length) {
    type = load_be16(frame + at + 2);
    at += 4;
  }
  uint8_t* ip = frame + at;
  uint32_t header, end;
  uint8_t protocol;
  bool whole = true;
  const bool v4 = type == RTE_ETHER_TYPE_IPV4;
  if (v4) {
    if (at + sizeof(rte_ipv4_hdr) > length || ip[0] >> 4 != 4) return;
    header = (ip[0] & 15u) * 4;
    end = at + load_be16(ip + 2);
    protocol = ip[9];
    whole = (load_be16(ip + 6) & 0x3fff) == 0;
  } else if (type == RTE_ETHER_TYPE_IPV6) {
    if (at + sizeof(rte_ipv6_hdr) > length || ip[0] >> 4 != 6) return;
    header = sizeof(rte_ipv6_hdr);
    end = at + header + load_be16(ip + 4);
    protocol = ip[6];
  } else {
    return;
  }
  if (header < 20 || at + header > end || end > length) return;

  if (v4 && settings_.ip_checksums) {
    std::memset(ip + 10, 0, 2);
    if (hardware_checksums_ & RTE_ETH_TX_OFFLOAD_IPV4_CKSUM)
      m->ol_flags |= RTE_MBUF_F_TX_IPV4 | RTE_MBUF_F_TX_IP_CKSUM;
    else
      store(ip + 10, static_cast<uint16_t>(~rte_raw_cksum(ip, header)));
  }
  m->l2_len = at;
  m->l3_len = header;

  const uint32_t offset = checksum_offset(protocol);
  uint8_t* const transport = ip + header;
  if (!settings_.l4_checksums || !whole || offset == 0 || transport + offset + 2 > frame + end) return;
  const bool tcp = protocol == IPPROTO_TCP;
  // A UDP packet over IPv4 may go without.
  if (!tcp && v4 && load_be16(transport + offset) == 0) return;
  if (hardware_checksums_ & (tcp ? RTE_ETH_TX_OFFLOAD_TCP_CKSUM : RTE_ETH_TX_OFFLOAD_UDP_CKSUM)) {
    m->ol_flags |= v4 ? RTE_MBUF_F_TX_IPV4 : RTE_MBUF_F_TX_IPV6;
    m->ol_flags |= tcp ? RTE_MBUF_F_TX_TCP_CKSUM : RTE_MBUF_F_TX_UDP_CKSUM;
    m->l4_len = tcp ? (transport[12] >> 4) * 4u : sizeof(rte_udp_hdr);
    store(transport + offset, v4 ? rte_ipv4_phdr_cksum(reinterpret_cast<rte_ipv4_hdr*>(ip), m->ol_flags)
                                 : rte_ipv6_phdr_cksum(reinterpret_cast<rte_ipv6_hdr*>(ip), m->ol_flags));
    return;
  }
  store(transport + offset, 0);
  store(transport + offset, v4 ? rte_ipv4_udptcp_cksum(reinterpret_cast<rte_ipv4_hdr*>(ip), transport)
                               : rte_ipv6_udptcp_cksum(reinterpret_cast<rte_ipv6_hdr*>(ip), transport));
}

}  // namespace headrace::io::dpdk
