#pragma once
#include <headrace/element.hh>

#include "elements/ipsec/IPsecDatabase.hh"
#include "headrace/software_rss.hh"

namespace headrace {

/// Wraps packets in ESP (RFC 4303), up to their encryption.
///
///     IPsecESPEncap(DATABASE)
///
/// Input: IP packets with a network header, marked by IPsecPolicy. Output 0: ESP packets, from their IP header on, whose
/// payloads are still plain, with a sequence number, an IV, padding and room for the ICV: for IPsecAES and
/// IPsecAuthHMACSHA1. The destination annotation is that of the new header. What lies in front of the network header
/// is gone.
///
/// In tunnel mode the packet gets an outer header (RFC 4301, section 5.1.2): the DSCP and DF bit as the association
/// says, the ECN field of the inner header (RFC 6040), time to live 64. In transport mode ESP goes behind the IP
/// header, or behind the extension headers that routers look at; fragments are dropped, because ESP protects whole
/// packets. With UDP encapsulation (RFC 3948) a UDP header without checksum precedes ESP.
///
/// An association has one worker, which gets its packets from the others through rings: so its numbers leave in order.
/// More workers therefore need more associations. While a ring is full, the tasks that feed this element rest. In a hot swap
/// the packets in the rings stay with their associations.
///
/// Dropped and counted, by association: packets without a sequence number left, without an IV, after the end of the
/// lifetime. By the element: packets that do not fit into a buffer, whose association has gone, or that come, while a
/// ring is full, from where this element's packets go.
///
/// DATABASE: an IPsecDatabase.
class IPsecESPEncap : public Element {
 public:
  static constexpr Ports kPorts{"1/1"};
  static constexpr Processing kProcessing{"h/h"};

  Status configure(Args& args) override;
  Status initialize(Errors& errors) override;
  std::vector<RegionInfo> annotations() const override {
    return declared(ReadWrite{anno::esp_association}, Write{anno::esp_sequence_high}, Write{anno::dst_ip});
  }
  void push(int port, Batch& batch) override;
  void take_state(Element& old, Errors& errors) override;
  uint64_t held_packets() const override { return rss_.held(); }

 private:
  enum { kGone, kNoRoom, kFragment, kMalformed, kRingFull };
  void encapsulate(Batch& batch);
  /// False if it has been counted and is to be killed.
  bool encapsulate(Packet& p, const AssociationView& associations);

  IPsecDatabase* database_ = nullptr;
  SoftwareRss rss_{*this, [this](Batch& batch) { encapsulate(batch); }};
};

}  // namespace headrace
