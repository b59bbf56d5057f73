#pragma once
#include "elements/ip6/ip6_header.hh"

namespace headrace {

struct CheckIP6HeaderOwner;

/// A list of IPv6 addresses as words in memory order. One bit for each by a hash answers for nearly all others.
struct Address6List {
  static constexpr int kInline = 8;

  uint64_t filter = 0;
  ip6::Words words[kInline];
  int32_t count = 0;
  int32_t more_count = 0;  // addresses that did not fit
  const ip6::Words* more = nullptr;

  HEADRACE_SHADER static uint64_t bit_of(ip6::Words a) {
    return uint64_t{1} << ((a.first ^ (a.second << 1)) * 0x9e3779b97f4a7c15u >> 58);
  }
  HEADRACE_SHADER bool may_contain(ip6::Words a) const { return (filter & bit_of(a)) != 0; }
  HEADRACE_SHADER bool contains(ip6::Words a) const {
    if (!may_contain(a)) [[likely]]
      return false;
    for (int i = 0; i < count; ++i)
      if (words[i].first == a.first && words[i].second == a.second) return true;
    for (int i = 0; i < more_count; ++i)
      if (more[i].first == a.first && more[i].second == a.second) return true;
    return false;
  }
};

/// Checks IPv6 headers and marks their position.
///
///     CheckIP6Header([BADADDRS, OFFSET, keyword BADSRC, VERBOSE, DETAILS])
///
/// Input: IPv6 packets. Output 0: packets whose version, payload length and source address are valid. Their network
/// header and destination address annotations are set, and link padding behind the IPv6 packet is removed. The
/// transport header annotation points behind hop-by-hop options, routing, fragment, authentication and destination
/// options headers, up to eight of them (RFC 8200). Output 1 (optional): the others, unchanged; without it they are
/// dropped. They are counted by reason, and the first one is reported on standard error.
///
/// A multicast address is never a valid source (RFC 4291, 2.7).
///
/// BADADDRS: further invalid source addresses, separated by spaces, such as "::0 2001:db8::1". BADSRC is an alias.
/// OFFSET: where the IPv6 header begins. Default 0.
/// VERBOSE true: reports every bad packet. Default false.
/// DETAILS true: adds the handler drop_details. Default false.
///
/// Handlers: `drops` (r) bad packets; `drop_details` (r) bad packets by reason, one per line.
struct CheckIP6Header : Shader<CheckIP6Header> {
  using Owner = CheckIP6HeaderOwner;
  static constexpr Ports kPorts{"1/1-2"};
  static constexpr auto kRegions = regions(Read{Span<Anchor::kData, 0, 128>{}}, ReadWrite{meta::length},
                                           Write{meta::network_header}, Set{anno::dst_ip6});
  enum Problem { kTiny, kVersion, kLength, kSource, kProblems, kNone = kProblems };
  static constexpr auto kCounters =
      counters(reason("tiny packet"), reason("bad IP version"), reason("bad IP length"), reason("bad source address"));

  int32_t offset = 0;
  bool tells = true;  // a bad packet goes to the host body, which may report it
  Address6List bad_sources;

  Status configure(Args& args, CheckIP6HeaderOwner& owner);
  void add_handlers(Handlers& handlers, CheckIP6HeaderOwner& owner, ShaderElementBase& element);
  void refresh(const CheckIP6HeaderOwner& owner);
  void mirror(Mirror& mirror, const CheckIP6HeaderOwner& owner);
  void move(Offsets& at) const {
    at.network = at.data + offset;
    at.transport = at.network + ip6::kHeaderLength;
  }
  /// Extension headers are rare; packets that have them are looked at on the host.
  Extent extent(Anchor) const { return {offset, offset + ip6::kHeaderLength}; }
  Next escape(Packet*& p, Emitter& emit, CheckIP6HeaderOwner& owner) const;

  ShaderCode specialize(const CheckIP6HeaderOwner& owner) const;

  HEADRACE_SHADER Next shade(auto& p) const {
    // Nearly all packets have a good header without extension headers behind it: that is one condition.
    const int spare = static_cast<int>(p.length()) - offset - ip6::kHeaderLength;
    if (spare < 0) [[unlikely]]
      return look_closer(*this, p);
    const uint64_t first = p.load64_raw(Anchor::kData, offset);
    const int payload = p.load16(Anchor::kData, offset + 4);
    const int next_header = static_cast<int>(first >> 48 & 0xff);
    const ip6::Words source = ip6::load_words(p, offset + 8);
    const bool listed = bad_sources.may_contain(source), extended = ip6::is_extension(next_header);
    const bool good =
        ((first & 0xf0) == 0x60) & (payload <= spare) & ((source.first & 0xff) != 0xff) & !listed & !extended;
    if (!good) [[unlikely]]
      return look_closer(*this, p);
    mark(p, ip6::kHeaderLength, payload + ip6::kHeaderLength, spare + ip6::kHeaderLength);
    return 0;
  }

 private:
  /// Looks at a packet, and marks it if nothing is wrong.
  HEADRACE_SHADER Problem check(auto& p) const {
    const int room = static_cast<int>(p.length()) - offset;
    if (room < ip6::kHeaderLength) return kTiny;
    const int version = p.load8(Anchor::kData, offset) >> 4;
    const int length = p.load16(Anchor::kData, offset + 4) + ip6::kHeaderLength;
    const int next_header = p.load8(Anchor::kData, offset + 6);
    const ip6::Words source = ip6::load_words(p, offset + 8);
    if (version != 6) return kVersion;
    if (length > room) return kLength;
    if ((source.first & 0xff) == 0xff || bad_sources.contains(source)) return kSource;
    mark(p, ip6::header_length(p, offset, offset + length, next_header), length, room);
    return kNone;
  }

  HEADRACE_SHADER void mark(auto& p, int header_length, int length, int room) const {
    p.set_network_header(offset, header_length);
    if (room > length) p.take(static_cast<uint32_t>(room - length));
    p.set(anno::dst_ip6, ip6::bytes_of(ip6::load_words(p, offset + 24)));
  }

  /// By value, so that the copies that the loop over a batch works with stay in registers.
  HEADRACE_SHADER_COLD static Next look_closer(CheckIP6Header self, auto p) {
    const Problem problem = self.check(p);
    if (problem == kNone) return 0;
    p.count(problem);
    return self.tells ? kEscape : 1;
  }
};

}  // namespace headrace
