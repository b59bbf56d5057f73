#pragma once
#include <headrace/element.hh>

#include "elements/ipsec/IPsecDatabase.hh"

namespace headrace {

/// Asks the security policies what to do with a packet (RFC 4301, section 5).
///
///     IPsecPolicy(DATABASE, DIRECTION)
///
/// Input: IP packets with a network header; fragments count as packets without ports. Output 0: packets to be protected,
/// marked with their association, for IPsecESPEncap. Output 1 (optional): packets that bypass. Discarded ones, and those
/// that no policy is about, are dropped and counted.
///
/// DATABASE: an IPsecDatabase. DIRECTION out: for packets that leave. in: for packets that came unprotected; one that
/// should have been protected is dropped, so output 0 has no packets.
class IPsecPolicy : public Element {
 public:
  static constexpr Ports kPorts{"1/1-2"};
  static constexpr Processing kProcessing{"h/h"};

  Status configure(Args& args) override;
  std::vector<RegionInfo> annotations() const override {
    return declared(Write{anno::esp_association}, Write{anno::rx_hash});
  }
  void push(int port, Batch& batch) override;

  /// What a policy looks at in the IP packet that begins at `ip`, up to `end`; false if it is none.
  static bool selector_of(const uint8_t* ip, const uint8_t* end, PolicySelector& selector);

 private:
  enum { kDiscarded, kNoPolicy, kNoAssociation, kUnprotected, kMalformed };

  IPsecDatabase* database_ = nullptr;
  IPsecDirection direction_ = IPsecDirection::kOut;
};

}  // namespace headrace
