#pragma once
#include <headrace/shader.hh>

namespace headrace {

struct CheckIPHeaderOwner;

/// A list of addresses in network order. Two filters reject nearly all addresses that are not in it: bits that none in the
/// list has, and a Bloom filter (B. H. Bloom, 1970).
struct AddressList {
  static constexpr int kInline = 32;
  /// One, in an address's last byte. Broadcast addresses end in ones, or in zeros: with this added, all in zeros but for
  /// the last bit.
  static constexpr uint32_t kOne = 0x01000000;

  uint32_t absent = ~0u;        // bits that no address in the list has after kOne was added
  uint64_t filter[2] = {0, 0};  // one bit for each address, by two hashes
  uint32_t words[kInline];
  int32_t count = 0;
  int32_t more_count = 0;  // addresses that did not fit
  const uint32_t* more = nullptr;

  HEADRACE_SHADER static uint32_t hash(uint32_t address) { return address * 0x9e3779b1u; }
  HEADRACE_SHADER bool may_contain(uint32_t address) const {
    if ((address + kOne) & absent) [[likely]]
      return false;
    const uint32_t h = hash(address);
    return (filter[0] >> (h >> 26)) & (filter[1] >> (h >> 20 & 63)) & 1;
  }
  HEADRACE_SHADER bool contains(uint32_t address) const {
    if (!may_contain(address)) [[likely]]
      return false;
    for (int i = 0; i < count; ++i)
      if (words[i] == address) return true;
    for (int i = 0; i < more_count; ++i)
      if (more[i] == address) return true;
    return false;
  }
};

/// Checks IP headers and marks their position.
///
///     CheckIPHeader([OFFSET, keyword OFFSET, INTERFACES, BADSRC, GOODDST, CHECKSUM, VERBOSE, DETAILS])
///
/// Input: IP packets. Output 0: packets whose version, header length, total length, checksum and source address are
/// valid (RFC 1812, 5.2.2). As in Click, only INTERFACES and BADSRC restrict source addresses; to drop all martian
/// sources (5.3.7), put IPFilter(drop src net 0/8 or src net 127/8 or src net 224/3, allow all) behind. Their network
/// header and destination address annotations are set, and link padding behind the IP packet is removed. Output 1
/// (optional): the others, unchanged; without it they are dropped. They are counted by reason, and the first one is
/// reported on standard error.
///
/// OFFSET: where the IP header begins. Default 0.
/// INTERFACES: addresses with prefixes, "18.26.4.9/24 18.32.9.44/28". Source addresses must not be a broadcast address
/// of these networks, nor 0.0.0.0, nor 255.255.255.255, unless the packet is for one of these addresses.
/// BADSRC: further invalid source addresses.
/// GOODDST: further destination addresses for which invalid sources are accepted.
/// CHECKSUM false: does not verify the checksum. Default true.
/// VERBOSE true: reports every bad packet. Default false.
/// DETAILS true: adds the handler drop_details. Default false.
///
/// CheckIPHeader(BADSRC, OFFSET) is an old form: 0.0.0.0 and 255.255.255.255 join the list.
///
/// Handlers: `drops` (r) bad packets; `drop_details` (r) bad packets by reason, one per line.
struct CheckIPHeader : Shader<CheckIPHeader> {
  using Owner = CheckIPHeaderOwner;
  static constexpr Ports kPorts{"1/1-2"};
  static constexpr auto kRegions = regions(Read{Span<Anchor::kData, 0, 65535 + 60>{}}, ReadWrite{meta::length},
                                           Write{meta::network_header}, Set{anno::dst_ip});
  enum Problem { kTiny, kVersion, kHeaderLength, kLength, kChecksum, kSource, kProblems, kNone = kProblems };
  static constexpr auto kCounters =
      counters(reason("tiny packet"), reason("bad IP version"), reason("bad IP header length"), reason("bad IP length"),
               reason("bad IP checksum"), reason("bad source address"));

  int32_t offset = 0;
  uint32_t ignored_sum = 0;  // all ones: the checksum is not looked at
  bool tells = true;         // a bad packet goes to the host body, which may report it
  AddressList bad_sources;
  AddressList good_destinations;

  Status configure(Args& args, CheckIPHeaderOwner& owner);
  void add_handlers(Handlers& handlers, CheckIPHeaderOwner& owner, ShaderElementBase& element);
  void refresh(const CheckIPHeaderOwner& owner);
  void mirror(Mirror& mirror, const CheckIPHeaderOwner& owner);
  void move(Offsets& at) const {
    at.network = at.data + offset;
    at.transport = at.network + 20;
  }
  /// Headers with options are rare; they are looked at on the host.
  Extent extent(Anchor) const { return {offset, offset + 20}; }
  Next escape(Packet*& p, Emitter& emit, CheckIPHeaderOwner& owner) const;
  ShaderCode specialize(const CheckIPHeaderOwner& owner) const;

  HEADRACE_SHADER Next shade(auto& p) const {
    // Nearly all packets have a good header without options: that is one condition.
    const int room = static_cast<int>(p.length()) - offset;
    if (room < 20) [[unlikely]]
      return look_closer(*this, p);
    // The fixed header in four loads. Its sum is the same in either byte order but for the order of its bytes (RFC
    // 1071, 2 (B)), so it is taken as it lies in memory, 64 bits at a time with end-around carry.
    const uint64_t first = p.load64_raw(Anchor::kData, offset);
    const uint32_t checked = p.load32_raw(Anchor::kData, offset + 8), source = p.load32_raw(Anchor::kData, offset + 12),
                   destination = p.load32_raw(Anchor::kData, offset + 16);
    const uint64_t rest = uint64_t{checked} + source + destination;
    uint64_t sum = first + rest;
    sum += sum < rest;

    const bool good =
        ((first & 0xff) == 0x45) && (ignored_sum != 0 || is_all_ones(sum)) && !bad_sources.may_contain(source);
    if (!good) [[unlikely]]
      return look_closer(*this, p);
    const uint32_t length = p.load16(Anchor::kData, offset + 2);
    if (length != static_cast<uint32_t>(room)) [[unlikely]] {
      if (length - 20 > static_cast<uint32_t>(room) - 20) return look_closer(*this, p);
      p.take(static_cast<uint32_t>(room) - length);
    }
    mark(p, 20);
    return 0;
  }

 private:
  /// True if a sum of 16-bit words with end-around carry, of which one is not 0, is all ones: a multiple of 65,535. Its 64
  /// bits need not be folded to tell: 65,535 times kInverse is 1 modulo 2^64, so that multiples of 65,535, and no other
  /// numbers, become their quotients, which are at most kMost (T. Granlund, P. Montgomery, PLDI 1994, 9).
  HEADRACE_SHADER static bool is_all_ones(uint64_t sum) {
    constexpr uint64_t kMost = ~uint64_t{0} / 65535, kInverse = ~kMost + 1;
    return sum * kInverse <= kMost;
  }
  /// Looks at a packet, and marks it if nothing is wrong.
  HEADRACE_SHADER Problem check(auto& p) const {
    const int room = static_cast<int>(p.length()) - offset;
    if (room < 20) return kTiny;
    const int version_ihl = p.load8(Anchor::kData, offset);
    const int length = p.load16(Anchor::kData, offset + 2);
    const int header_length = (version_ihl & 0xf) << 2;
    if (version_ihl >> 4 != 4) return kVersion;
    if (header_length < 20) return kHeaderLength;
    if (length > room || length < header_length) return kLength;
    if (!ignored_sum && checksum_of_sum(checksum_sum(p, Anchor::kData, offset, header_length)) != 0) return kChecksum;
    if (bad_sources.contains(p.load32_raw(Anchor::kData, offset + 12)) &&
        !good_destinations.contains(p.load32_raw(Anchor::kData, offset + 16)))
      return kSource;
    if (room > length) p.take(static_cast<uint32_t>(room - length));
    mark(p, header_length);
    return kNone;
  }

  HEADRACE_SHADER void mark(auto& p, int header_length) const {
    p.set_network_header(offset, header_length);
    p.set(anno::dst_ip, p.load32(Anchor::kData, offset + 16));
  }

  /// By value, so that the copies that the loop over a batch works with stay in registers.
  HEADRACE_SHADER_COLD static Next look_closer(CheckIPHeader self, auto p) {
    const Problem problem = self.check(p);
    if (problem == kNone) return 0;
    p.count(problem);
    return self.tells ? kEscape : 1;
  }
};

}  // namespace headrace
