#pragma once
#include <headrace/element.hh>

#include "elements/ipsec/IPsecDatabase.hh"

namespace headrace {

/// Unwraps ESP packets that have been authenticated and decrypted (RFC 4303, section 3.4.4).
///
///     IPsecESPUnencap(DATABASE)
///
/// Input: what IPsecAES and IPsecAuthHMACSHA1 have made of packets from IPsecESPLookup. Output 0: the packets inside, from
/// their IP header on, with a network header and their destination as annotation.
///
/// Now that a packet is known to be authentic, its number is noted in the anti-replay window. Then the padding is
/// checked, and that a policy for packets that come in wants the inner packet to be protected by this very association
/// (RFC 4301, section 5.2). The ECN field is that of RFC 6040.
///
/// Dropped and counted, by association: numbers that came twice, bad padding, packets that the policies do not let the
/// association carry. Dummy packets (RFC 4303, section 2.6) are dropped and counted by the element.
///
/// DATABASE: an IPsecDatabase.
class IPsecESPUnencap : public Element {
 public:
  static constexpr Ports kPorts{"1/1"};
  static constexpr Processing kProcessing{"h/h"};

  Status configure(Args& args) override;
  std::vector<RegionInfo> annotations() const override {
    return declared(Read{anno::esp_association}, Read{anno::esp_sequence_high}, Write{anno::dst_ip});
  }
  void push(int port, Batch& batch) override;

 private:
  enum { kGone, kDummy, kCongested };
  /// False if it has been counted and is to be killed.
  bool unwrap(Packet& p, const AssociationView& associations, const PolicyView& policies);

  IPsecDatabase* database_ = nullptr;
};

}  // namespace headrace
