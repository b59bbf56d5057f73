#pragma once
#include "elements/ipsec/esp_shader_view.hh"

namespace headrace {

class ESPShaderOwner;

/// Writes or verifies the ICV of ESP packets: HMAC-SHA1-96 (RFC 2404) or HMAC-SHA-256-128 (RFC 4868), as the association
/// says.
///
///     IPsecAuthHMACSHA1(DATABASE, VERIFY)
///
/// Input: packets with an IP header, then ESP: with VERIFY false from IPsecAES, with true from IPsecESPLookup. Output
/// 0: the packets. Output 1 (optional): packets with a wrong ICV, unchanged; without it they are dropped. They are
/// counted in either case, here and by association. ICVs are compared in constant time. Packets of associations
/// without an ICV of their own, such as those with GCM, pass unchanged.
///
/// On the CPU, intel-ipsec-mb works on several packets at a time. On a device each lane has a packet, because a hash is
/// one long chain of steps.
///
/// DATABASE: an IPsecDatabase. VERIFY false: writes the ICV; true: verifies it.
struct IPsecAuthHMACSHA1 : Shader<IPsecAuthHMACSHA1> {
  using Owner = ESPShaderOwner;
  using About = ESPAbout;
  using Result = ESPResult;
  static constexpr Ports kPorts{"1/1-2"};
  static constexpr Processing kProcessing{"h/h"};
  static constexpr auto kRegions = regions(Read{anno::esp_association}, Read{anno::esp_sequence_high});
  static constexpr auto kCounters = ESPCounters::kList;
  static constexpr bool kSerial = true;

  ESPKeysView associations;
  const Owner* host = nullptr;
  bool verify = false;

  Status configure(Args& args, Owner& owner);
  void refresh(const Owner& owner);
  void mirror(Mirror& mirror, const Owner& owner);
  void move(Offsets&) const {}  // headers stay where they are
  void shade_batch(Packet* const* packets, int n, Next* nexts, uint64_t* events, ESPResult* results) const;
  void release(Packet* const* packets, Results<ESPResult> results, int n, Owner& owner) const;

  HEADRACE_SHADER ESPAbout about(const auto& p) const {
    const uint32_t tag = p.get(anno::esp_association);
    return {associations.find(tag), tag, p.get(anno::esp_sequence_high)};
  }
  struct Found {
    ESPResult result;
    ESPOutcome outcome;
  };
  template <typename Team>
  HEADRACE_SHADER Found rewrite(const Team&, PacketEdit& packet, const ESPAbout& about) const {
    const ESPKeys* const keys = about.keys;
    if (keys == nullptr) return {{about.tag, 0}, ESPOutcome::kGone};
    const PacketBytes bytes = packet.bytes();
    const ESPPlace esp = esp_place(bytes);
    if (!keys->fits(esp.length)) return {{about.tag, 0}, ESPOutcome::kShort};
    if (keys->integrity == Integrity::kNone) return {{about.tag, 0}, ESPOutcome::kGood};
    if (verify) {
      const bool good = esp_verify(*keys, bytes.data + esp.at, esp.length, about.sequence_high);
      return {{about.tag, !good}, good ? ESPOutcome::kGood : ESPOutcome::kBadICV};
    }
    uint8_t* const data = packet.write(esp.at + esp.length - keys->icv_length, keys->icv_length);
    esp_authenticate(*keys, data + esp.at, esp.length, about.sequence_high);
    return {{about.tag, 0}, ESPOutcome::kGood};
  }
  HEADRACE_SHADER Next shade(auto& p, const Found& found) const {
    p.set_result(found.result);
    return esp_next(p, found.outcome);
  }
};

}  // namespace headrace
