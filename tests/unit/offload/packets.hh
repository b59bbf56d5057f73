#pragma once
/// \file
/// Packets for the offload tests.

#include <random>
#include <string>
#include <vector>

#include "headrace/packet.hh"

namespace headrace::testing {

/// Frames of many kinds, good and bad, each time the same ones for a seed: IPv4 with options, tags, padding, odd
/// lengths and times to live, ARP, IPv6, fragments, broadcasts, runts and noise, at many places in their buffers.
class RandomPackets {
 public:
  explicit RandomPackets(uint64_t seed) : random_(seed) {}
  /// The same packets again for another router.
  std::vector<Packet*> make(int n);
  /// Frames of IPv6, with and without extension headers, most of them good.
  std::vector<Packet*> make_ip6(int n);
  /// ESP in IPv4, and some of it in UDP, of associations 1 to 10; the ciphertext is noise.
  std::vector<Packet*> make_esp(int n);

 private:
  uint32_t below(uint32_t n) { return static_cast<uint32_t>(random_() % n); }
  bool chance(uint32_t percent) { return below(100) < percent; }
  std::string frame(uint32_t flow);
  std::string ip4(uint32_t flow);
  std::string ip6_frame(uint32_t flow);

  std::mt19937_64 random_;
  uint32_t number_ = 0;
};

/// A good frame of UDP in IPv4, 64 bytes.
std::string udp_frame(uint32_t source, uint32_t destination, uint8_t ttl = 64, uint32_t length = 64);
/// Sets the checksum of the IPv4 header at `at`.
void fix_checksum(std::string& bytes, size_t at);
/// A packet with the annotations by which outcomes are compared.
Packet* marked(const std::string& bytes, uint32_t flow, uint32_t number, uint32_t headroom = Packet::kDefaultHeadroom);

}  // namespace headrace::testing
