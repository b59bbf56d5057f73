#pragma once
/// \file
/// ARP packets with their Ethernet headers.

#include "headrace/fields.hh"
#include "headrace/headers.hh"

namespace headrace {

/// The ARP header of a packet that begins with an Ethernet header, or null unless it is ARP for IPv4 over Ethernet.
inline const ArpHeader* arp_header(const Packet& p) {
  if (p.length() < sizeof(EtherHeader) + sizeof(ArpHeader)) return nullptr;
  const auto* ether = reinterpret_cast<const EtherHeader*>(p.data());
  const auto* arp = reinterpret_cast<const ArpHeader*>(ether + 1);
  const bool good = ether->type == eth::kTypeArp && arp->hardware == ArpHeader::kEthernet &&
                    arp->protocol == eth::kTypeIp4 && arp->hardware_length == 6 && arp->protocol_length == 4;
  return good ? arp : nullptr;
}

/// An ARP packet, its headers marked; null when no buffer is left. The Ethernet destination of a reply is
/// `target_ether`, that of a request is `request_to`; the target hardware address of a request is zero.
inline Packet* make_arp_packet(uint16_t operation, EtherAddress sender_ether, IpAddress sender_ip,
                               EtherAddress target_ether, IpAddress target_ip,
                               EtherAddress request_to = EtherAddress::broadcast()) {
  Packet* p = Packet::make(sizeof(EtherHeader) + sizeof(ArpHeader));
  if (!p) return nullptr;
  p->set_mac_header();
  p->set_network_header(sizeof(EtherHeader), 0);
  p->clear_transport_header();
  auto& ether = *reinterpret_cast<EtherHeader*>(p->data());
  ether.dst = operation == ArpHeader::kRequest ? request_to : target_ether;
  ether.src = sender_ether;
  ether.type = eth::kTypeArp;
  auto& arp = *reinterpret_cast<ArpHeader*>(p->network_header());
  arp.hardware = ArpHeader::kEthernet;
  arp.protocol = eth::kTypeIp4;
  arp.hardware_length = 6;
  arp.protocol_length = 4;
  arp.operation = operation;
  arp.sender_ether = sender_ether;
  arp.sender_ip = sender_ip;
  arp.target_ether = operation == ArpHeader::kRequest ? EtherAddress() : target_ether;
  arp.target_ip = target_ip;
  return p;
}

}  // namespace headrace
