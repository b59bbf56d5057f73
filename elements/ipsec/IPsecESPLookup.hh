#pragma once
#include <headrace/element.hh>

#include "elements/ipsec/IPsecDatabase.hh"
#include "headrace/software_rss.hh"

namespace headrace {

/// Finds the association of ESP packets that arrive (RFC 4303, section 3.4).
///
///     IPsecESPLookup(DATABASE, [keyword ENCAP_PORTS])
///
/// Input: IP packets for this host, with a network header; fragments must have been reassembled. Output 0: ESP packets
/// from their IP header on, marked with their association, for IPsecAuthHMACSHA1 and IPsecAES. Output 1 (optional): all
/// others, unchanged, among them IKE on the UDP ports of encapsulation (RFC 3948, section 2.2).
///
/// The association's worker gets its packets from the others through rings, as in IPsecESPEncap. A packet whose number the anti-replay
/// window has seen or left behind is dropped before anything is computed.
///
/// Dropped and counted, by association: replayed and too old numbers, packets of impossible lengths, and of other sources
/// than the tunnel's, unless they are encapsulated in UDP. By the element: unknown SPIs, fragments, NAT keepalives,
/// packets whose association has gone, and as in IPsecESPEncap what finds a ring full.
///
/// DATABASE: an IPsecDatabase. ENCAP_PORTS: the UDP ports on which ESP may arrive. Default 4500.
class IPsecESPLookup : public Element {
 public:
  static constexpr Ports kPorts{"1/1-2"};
  static constexpr Processing kProcessing{"h/h"};

  Status configure(Args& args) override;
  Status initialize(Errors& errors) override;
  std::vector<RegionInfo> annotations() const override {
    return declared(ReadWrite{anno::esp_association}, Write{anno::esp_sequence_high}, Write{anno::rx_hash});
  }
  void push(int port, Batch& batch) override;
  void take_state(Element& old, Errors& errors) override;
  uint64_t held_packets() const override { return rss_.held(); }

 private:
  enum { kUnknownSPI, kFragment, kKeepalive, kMalformed, kGone, kRingFull };
  /// 0: ESP; 1: something else; kConsumed: it has been counted and is to be killed.
  Next classify(Packet& p, const AssociationView& associations);
  void check_numbers(Batch& batch);

  IPsecDatabase* database_ = nullptr;
  std::vector<uint16_t> ports_;
  SoftwareRss rss_{*this, [this](Batch& batch) { check_numbers(batch); }};
};

}  // namespace headrace
