#pragma once
#include "elements/ipsec/esp_shader_view.hh"

namespace headrace {

class ESPShaderOwner;

/// Encrypts or decrypts ESP packets: AES in counter mode (RFC 3686), GCM (RFC 4106) and CBC mode (RFC 3602);
/// for peers that have nothing else, Triple-DES in CBC mode (RFC 2451).
///
///     IPsecAES(DATABASE, ENCRYPT)
///
/// Input: packets with an IP header, then ESP. With ENCRYPT true they come from IPsecESPEncap, and go to
/// IPsecAuthHMACSHA1; with false it is the other way round: from IPsecAuthHMACSHA1 to IPsecESPUnencap. Output 0: the
/// packets. Output 1 (optional): packets with a wrong ICV, unchanged; without it they are dropped. They are counted in
/// either case, here and by association.
///
/// GCM authenticates by itself, so the ICV is written and verified here; IPsecAuthHMACSHA1 lets such packets pass. The
/// NULL cipher (RFC 2410) changes nothing.
///
/// On the CPU, intel-ipsec-mb works on batches. On a device a warp, or eight lanes of one, divide the blocks of a packet.
/// CBC mode is left to the CPU.
///
/// DATABASE: an IPsecDatabase. ENCRYPT true: encrypts; false: decrypts.
struct IPsecAES : Shader<IPsecAES> {
  using Owner = ESPShaderOwner;
  using About = ESPAbout;
  using Result = ESPResult;
  static constexpr Ports kPorts{"1/1-2"};
  static constexpr Processing kProcessing{"h/h"};
  static constexpr auto kRegions = regions(Read{anno::esp_association}, Read{anno::esp_sequence_high});
  static constexpr auto kCounters = ESPCounters::kList;
  static constexpr uint32_t kBlockBytes = kAESTableBytes;

  ESPKeysView associations;
  const Owner* host = nullptr;
  bool encrypt = true;

  Status configure(Args& args, Owner& owner);
  void refresh(const Owner& owner);
  void mirror(Mirror& mirror, const Owner& owner);
  void move(Offsets&) const {}  // headers stay where they are
  void shade_batch(Packet* const* packets, int n, Next* nexts, uint64_t* events, ESPResult* results) const;
  Next escape(Packet*& p, Emitter& emit, Owner& owner) const;
  void release(Packet* const* packets, Results<ESPResult> results, int n, Owner& owner) const;

  HEADRACE_SHADER ESPAbout about(const auto& p) const {
    const uint32_t tag = p.get(anno::esp_association);
    return {associations.find(tag), tag, p.get(anno::esp_sequence_high)};
  }
  HEADRACE_SHADER static void prepare_block() { BestAESTable::fill(); }
  struct Found {
    ESPResult result;
    ESPOutcome outcome;
  };
  template <typename Team>
  HEADRACE_SHADER Found rewrite(const Team& team, PacketEdit& packet, const ESPAbout& about) const {
    if (about.keys == nullptr) return {{about.tag, 0}, ESPOutcome::kGone};
    const TeamKeys<Team> team_keys(team, *about.keys);
    const ESPKeys& keys = *team_keys;
    const ESPPlace esp = esp_place(packet.bytes());
    if (!keys.fits(esp.length)) return {{about.tag, 0}, ESPOutcome::kShort};
    if (keys.cbc()) return {{about.tag, 0}, ESPOutcome::kHost};
    if (keys.cipher == Cipher::kNull) return {{about.tag, 0}, ESPOutcome::kGood};
    uint8_t* const at = packet.write() + esp.at;
    bool good = true;
    if (encrypt)
      esp_encrypt(team, keys, at, esp.length, about.sequence_high);
    else
      good = esp_decrypt(team, keys, at, esp.length, about.sequence_high);
    return {{about.tag, !good}, good ? ESPOutcome::kGood : ESPOutcome::kBadICV};
  }
  HEADRACE_SHADER Next shade(auto& p, const Found& found) const {
    p.set_result(found.result);
    return esp_next(p, found.outcome);
  }
};

}  // namespace headrace
