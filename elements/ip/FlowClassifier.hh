#pragma once
#include <headrace/shader.hh>

#include "tables/acl/acl_view.hh"
#include "tables/key/packet_key_view.hh"

namespace headrace {

class FlowRules;

/// Chooses the output by rules with masks, port ranges and priorities, as an access list or an OpenFlow table has them.
///
///     FlowClassifier([FILE] [, keywords STRICT, SPREAD, FIELDS])
///
/// Input: IP packets with a network header (CheckIPHeader, CheckIP6Header, MarkIPHeader), or, with FIELDS other than ip,
/// packets with a MAC header (FromDevice, MarkMACHeader). The rule of the highest priority that matches a packet decides; of
/// several with one priority, one of them does, the same as long as they do not change. Packets that no rule matches are
/// dropped and counted; so are those that a rule drops, and those of a rule whose output is not connected. A rule
/// `priority=0 actions=output:N` takes the rest.
///
/// FILE: rules, one a line, plain, .gz, .xz, .bz2 or .zst; `#` starts a comment. Two formats may be mixed:
///
/// - ovs-ofctl's: `[priority=N,] MATCH actions=output:PORT`, or `actions=drop`. N is 32768 by default. MATCH consists of
///   words between commas, such as `tcp,nw_src=10.0.0.0/8,tp_dst=80`; docs/fields.md names all fields. `in_port` is the
///   packet's PAINT annotation.
/// - ClassBench's filter sets: `@SRC/LENGTH DST/LENGTH LOW : HIGH LOW : HIGH PROTOCOL/MASK [FLAGS/MASK]`, about IPv4. The
///   first rules of a file have the highest priorities, above those of the other format. FLAGS are ignored, as everybody
///   does. Output: the rule's place in the file, from 0, modulo SPREAD.
///
/// Bad lines are named, and the others are used. STRICT true: a bad line is an error. Default false.
/// SPREAD: outputs that ClassBench's rules are spread over. Default: all.
/// FIELDS: what can be matched: `ip` (addresses of IPv4, ports, protocol, DSCP, ECN, ICMP type and code), `openflow10` (the
/// fields of OpenFlow 1.0, MPLS and metadata), or `all`. Default: the first of these that is enough for FILE. Rules that are
/// added later must not need more.
///
/// Rules change in place while packets are forwarded: a batch of packets sees all changes that a handler's call makes, or
/// none of them.
/// docs/fields.md tells how packets with several tags or with extension headers are read. A packet whose headers do not
/// fit into a row of 128 bytes is classified on the CPU.
///
/// Handlers: `add`, `modify`, `remove` (w) rules, one a line, all or none of them: `modify` gives a rule another output,
/// `remove` takes rules without actions; a rule is known by its match and priority. `ctrl` (w) such lines behind the words
/// add, modify and remove. Quotation marks around such a text are left out. `lookup MATCH` (r) the rule for a packet:
/// `tcp,nw_src=10.0.0.1,nw_dst=10.0.0.2,tp_dst=80`. `counts` (r) packets, bytes and rule, one a line, exact at any time for packets that have left; `removed_counts` (r)
/// packets and bytes of all rules that have been removed; `count` (r) the number of rules; `table` (r) how they are stored.
struct FlowClassifier : Shader<FlowClassifier> {
  static constexpr Ports kPorts{"1/-"};
  static constexpr Processing kProcessing{"h/h"};
  /// Bytes of a frame that a row holds.
  static constexpr int kFrameBytes = 128;
  static constexpr auto kRegions =
      regions(Read{Span<Anchor::kMac, 0, kFrameBytes>{}}, Read{Span<Anchor::kNetwork, 0, 20>{}},
              Read{Span<Anchor::kTransport, 0, 4>{}}, Read{anno::paint}, Read{meta::length});
  /// Which headers there must be depends on FIELDS.
  static constexpr bool kChecksHeaders = true;
  enum { kNoRule, kDropped, kNoHeader };
  static constexpr auto kCounters =
      counters(reason("no rule matches"), reason("dropped by a rule"), reason("no header"));
  using Owner = FlowRules;
  static constexpr bool kKeepsOwner = true;
  /// The data of a rule that drops.
  static constexpr uint32_t kDropPort = 0xffff;

  /// What a packet met.
  struct Result {
    uint32_t number;  ///< AclMatch::kNone: no rule
    uint32_t length;
  };

  AclView table;
  uint32_t words = 4;  // of the table
  static constexpr auto kFixed = &FlowClassifier::words;

  Status configure(Args& args, Owner& owner);
  void add_handlers(Handlers& handlers, Owner& owner, Element& element);
  auto note(const Owner& owner) const;
  void refresh(const Owner& owner);
  void mirror(Mirror& mirror, const Owner& owner);
  Extent extent(Anchor anchor) const {
    const bool frame = words != 4;
    if (anchor == Anchor::kMac) return {0, frame ? kFrameBytes : 0};
    if (anchor == Anchor::kNetwork) return {0, frame ? 0 : 20};
    return {0, frame ? 0 : 4};
  }
  void shade_batch(Packet* const* packets, int n, Next* nexts, uint64_t* events, Result* results) const;
  Next escape(Packet*& p, Emitter& emit, Owner& owner) const;
  void release(Packet* const* packets, Results<Result> results, int n, Owner& owner) const;

  HEADRACE_SHADER Next shade(auto& p) const {
    PacketKey key{};
    const int found = words == 4 ? read_ip4(p, key) : read_frame(p, key);
    if (found == kAbsent) {
      p.set_result({AclMatch::kNone, 0});
      p.count(kNoHeader);
      return kDrop;
    }
    if (found == kElsewhere) return kEscape;
    const AclMatch match = table.find(key.w, words);
    p.set_result({match.number, p.length()});
    if (match.number == AclMatch::kNone) {
      p.count(kNoRule);
      return kDrop;
    }
    if (match.data == kDropPort) {
      p.count(kDropped);
      return kDrop;
    }
    return static_cast<Next>(match.data);
  }

 private:
  enum { kRead, kAbsent, kElsewhere };

  /// An IPv4 packet; others are for the host.
  HEADRACE_SHADER static int read_ip4(auto& p, PacketKey& key) {
    if (!p.has_network_header() || p.length_from(Anchor::kNetwork) < 20) return kAbsent;
    const uint32_t first = p.load32(Anchor::kNetwork, 0);
    if (first >> 28 != 4) return kElsewhere;
    const uint32_t protocol = p.load8(Anchor::kNetwork, 9);
    key.w[key_word::kIp4Src] = p.load32(Anchor::kNetwork, 12);
    key.w[key_word::kIp4Dst] = p.load32(Anchor::kNetwork, 16);
    key.w[key_word::kTypes] = 0x08000000 | protocol << 8 | (first >> 16 & 0xff);
    // The header's own length, as the parser of whole frames takes it.
    const int header = static_cast<int>(first >> 24 & 15) * 4;
    if (header != p.network_header_length()) return kElsewhere;
    const int total = static_cast<int>(first & 0xffff), length = p.length_from(Anchor::kNetwork);
    const int end = total >= header && total < length ? total : length;
    if ((p.load16(Anchor::kNetwork, 6) & 0x1fff) != 0) return kRead;
    if (protocol == ip_protocol::kTcp || protocol == ip_protocol::kUdp || protocol == ip_protocol::kSctp) {
      if (header + 4 <= end) key.w[key_word::kPorts] = p.load32(Anchor::kTransport, 0);
    } else if (protocol == ip_protocol::kIcmp || protocol == ip_protocol::kIcmp6) {
      if (header + 2 <= end) {
        const uint32_t word = p.load16(Anchor::kTransport, 0);
        key.w[key_word::kPorts] = (word >> 8) << 16 | (word & 0xff);
      }
    }
    return kRead;
  }

  /// The bytes of a row's frame.
  template <typename View>
  struct FrameBytes {
    const View& packet;
    mutable bool beyond = false;

    HEADRACE_SHADER uint32_t byte(int32_t at) const {
      if (at + 1 > kFrameBytes) {
        beyond = true;
        return 0;
      }
      return packet.load8(Anchor::kMac, at);
    }
    HEADRACE_SHADER uint32_t half(int32_t at) const { return byte(at) << 8 | byte(at + 1); }
  };
  template <typename View>
  HEADRACE_SHADER static int read_frame(View& p, PacketKey& key) {
    const int length = p.length_from(Anchor::kMac);
    if (length < 14) return kAbsent;
    const FrameBytes<View> bytes{p};
    PacketKeyContext context;
    context.in_port = p.get(anno::paint);
    key = parse_frame(bytes, length, context);
    return bytes.beyond ? kElsewhere : kRead;
  }
};

}  // namespace headrace
