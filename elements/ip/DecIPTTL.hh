#pragma once
#include <headrace/shader.hh>

namespace headrace {

/// Decrements the IP time-to-live and repairs the checksum.
///
///     DecIPTTL([keyword ACTIVE, MULTICAST])
///
/// Input: IP packets with a network header. Output 0: live packets, with the TTL decremented and the checksum updated
/// (RFC 1624). Output 1 (optional): packets whose TTL was 0 or 1, unchanged; without it they are dropped and counted.
///
/// ACTIVE false: packets pass unchanged. Default true.
/// MULTICAST false: multicast packets pass unchanged. Default true.
///
/// Handlers: `drops` (r) expired packets; `active` (rw).
struct DecIPTTL : Shader<DecIPTTL> {
  static constexpr Ports kPorts{"1/1-2"};
  /// Time to live, protocol and checksum as they lie in memory.
  static constexpr Field<Anchor::kNetwork, 8, uint32_t, ByteOrder::kHost> kTtlToChecksum{};
  static constexpr auto kRegions = regions(ReadWrite{kTtlToChecksum}, Read{ip4::dst});
  enum { kExpired };
  static constexpr auto kCounters = counters(reason("ttl expired"));

  bool active = true;
  bool multicast = true;

  Status configure(Args& args);
  void add_handlers(Handlers& handlers, ShaderElement<DecIPTTL>& element);

  HEADRACE_SHADER Next shade(auto& p) const {
    if (!active || (!multicast && ip4::is_multicast(p.get(ip4::dst)))) return 0;
    const uint32_t word = p.get(kTtlToChecksum);
    if ((word & 0xff) <= 1 || word >= 0xfffe0000) [[unlikely]]
      return rarely(p, word);
    // The TTL is the upper byte of its 16-bit word, so the checksum grows by 0x0100: by 1 as it lies in memory.
    p.set(kTtlToChecksum, word + 0xffff);
    return 0;
  }

 private:
  /// What becomes of a packet that expires, or whose checksum is carried around its end.
  HEADRACE_SHADER_COLD static Next rarely(auto p, uint32_t word) {
    if ((word & 0xff) <= 1) {
      p.count(kExpired);
      return 1;
    }
    p.set(kTtlToChecksum, word + 0x1ffff);
    return 0;
  }
};

HEADRACE_ELEMENT(DecIPTTL)

}  // namespace headrace
