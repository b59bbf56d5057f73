#pragma once
#include <headrace/shader.hh>

#include "tables/pattern/pattern_view.hh"
#include "tables/rules/always_view.hh"
#include "tables/rules/port_groups_view.hh"

namespace headrace {

class IDSRules;

/// Finds packets that rules of Snort or Suricata describe, and writes alerts.
///
///     IDSMatcher(RULES file, [RULES file, ... , keywords CLASSIFICATION, HOME_NET, EXTERNAL_NET, VAR, DISABLED,
///                APPLICATIONS, STRICT, ALERTS, RATE, QUEUE, ENGINE])
///
/// Input: IPv4 and IPv6 packets, with an Ethernet header (VLAN tags are fine) or with a network header that was marked
/// (by CheckIPHeader or a similar element). Output 0: packets without an alert. Output 1 (optional): packets with one;
/// without it they leave by output 0, too. The element drops nothing: what happens on `drop` and `reject` depends on
/// what output 1 is connected to. Packets that match a `pass` rule raise no alerts.
///
/// Each packet is searched for one literal of each rule, the fast pattern (`fast_pattern`, or the longest content), on
/// the device or by Vectorscan on the CPU. Literals whose rules are all for other protocols or ports are ignored; a
/// device returns the numbers of up to four of the others. The CPU then verifies the rules whose literal was found:
/// addresses, ports, header options, contents with all their positions, `isdataat` and `pcre`. Rules without any
/// content, and rules with ports and a literal of one or two bytes, are tried on every packet with their protocol and
/// ports.
///
/// Rules are parsed as in Suricata, with both spellings of modifiers: actions alert, log, pass, drop, block and
/// reject; protocols ip, ipv4, ipv6, tcp, udp, sctp, icmp, icmpv4, icmpv6; content with nocase, offset, depth,
/// distance, within, startswith, endswith, fast_pattern, rawbytes; pcre with the flags i s m x A E G R B O; isdataat;
/// dsize, flags, seq, ack, window, itype, icode, icmp_id, icmp_seq, ttl, tos, id, ipopts, fragbits, fragoffset,
/// ip_proto, sameip; flow; msg, sid, gid, rev, classtype, priority, reference, metadata. Rules with other features
/// (buffers of HTTP and other applications, flowbits, byte_test, threshold, ...) or with errors are refused; the
/// handler `refused` lists each with file, line and reason. Each packet is inspected on its own: streams are not
/// reassembled. So `flow` is not tracked; such rules match in both directions, but `established` excludes TCP segments
/// with SYN.
///
/// Work on a packet is limited: for one rule to some 2,700 tries of a content and the expression behind it (900 if the
/// expression needs more than 64 steps of PCRE2, 160 if it needs more than 512), for all rules to four times that, and
/// to 64 alerts. An expression that needs more than 3,500 steps gives up and counts as not matching at that place; the
/// search goes on behind it. A packet with such an expression and no match of its rule, or one that needs more work
/// (such as traffic crafted to be slow), counts as cut: it keeps the alerts found until then.
///
/// RULES (repeatable, at least one): a file of rules, plain, .gz, .xz, .bz2 or .zst.
/// CLASSIFICATION (repeatable): a file with descriptions and priorities of classes (classification.config).
/// HOME_NET, EXTERNAL_NET: addresses as in rules, such as "[10.0.0.0/8,!10.1.0.0/16]"; default any.
/// VAR (repeatable): name and value of another variable. HTTP_SERVERS and the like are any unless given; HTTP_PORTS is
/// 80, SHELLCODE_PORTS !80, ORACLE_PORTS 1521, SSH_PORTS 22, FTP_PORTS 21, FILE_DATA_PORTS [$HTTP_PORTS,110,143],
/// SIP_PORTS [5060,5061], DNP3_PORTS 20000, MODBUS_PORTS 502, VXLAN_PORTS 4789, GENEVE_PORTS 6081, TEREDO_PORTS 3544.
/// DISABLED true: also runs rules that are commented out. Default false.
/// APPLICATIONS true: rules for application protocols (http, tls, dns, ...) without application buffers apply to all
/// packets of the transport protocol. Default false: they are refused.
/// STRICT true: a refused rule is an error. Default false.
/// ALERTS: the file to append alerts to, one JSON object per line with the field names of Suricata's EVE; "-" is
/// standard output. Default eve.json. An alert has the packet's timestamp; a packet without one (TrafficSource sets
/// none), or with a timestamp of 0 (captures whose times were removed), gets the time at which the alert is raised.
/// RATE: maximum number of lines per second for a rule, also in a burst; 0: no limit. All alerts are counted. Default
/// 100.
/// QUEUE: maximum number of alerts waiting to be written, for each worker. Default 4096.
/// ENGINE: how devices search, as for StringMatcher: `prefilter`, `dfa`, `compressed` or `auto`. Default auto.
///
/// Handlers: `rules` (r) statistics of the rules; `refused` (r) refused rules, one per line; `alerts` (r) the matches
/// of each rule, as lines `sid count msg`; `top` (r) the ten that matched most; `candidates`,
/// `confirmed`, `passed`, `cut` (r) packets in which a literal was found, with alerts, matched by a pass rule, with too
/// much work; `rescans` (r) packets that the CPU searched again, because the device found more than four literals or
/// gave up; `written`, `suppressed`, `lost_alerts` (r) lines written, suppressed because of RATE, lost because QUEUE
/// was full or the file could not be written; `flush` (w) writes waiting alerts; `reset` (w) sets counts to zero.
struct IDSMatcher : Shader<IDSMatcher> {
  static constexpr Ports kPorts{"1/1-2"};
  static constexpr auto kRegions =
      regions(Read{Span<Anchor::kNetwork, 0, 76>{}}, Read{meta::length}, Write{anno::candidates});
  static constexpr bool kChecksHeaders = true;
  enum { kCandidates };
  static constexpr auto kCounters = counters(counter("candidates"));
  using Owner = IDSRules;
  static constexpr bool kKeepsOwner = true;

  PatternView patterns;
  PortGroupsView port_groups;
  AlwaysView always;

  Status configure(Args& args, Owner& owner);
  Status initialize(Errors& errors, Owner& owner, Element& element);
  void add_handlers(Handlers& handlers, Owner& owner, ShaderElementBase& element);
  auto note(const Owner& owner) const;
  void refresh(const Owner& owner);
  void mirror(Mirror& mirror, const Owner& owner);
  /// The header is looked at only for rules without a literal.
  Extent extent(Anchor) const { return {0, always.any ? 76 : 0}; }

  template <typename Team>
  HEADRACE_SHADER Candidates scan(const Team& team, const PayloadBytes& payload, const PacketBytes& packet) const {
    const PortPair ports = port_groups.of(packet);
    if (!port_groups.any(ports)) return {};
    return candidates(patterns, team, payload, [&](uint32_t pattern) { return port_groups.admits(ports, pattern); });
  }
  Candidates scan_on_cpu(const PayloadBytes& payload, const PacketBytes& packet, const Owner& owner) const;

  HEADRACE_SHADER Next shade(auto& p, const Candidates& found) const {
    const bool look = !found.none() || (always.any && may_match(p));
    if (!look) return 0;
    p.set(anno::candidates, found.packed);
    if (!found.none()) p.count(kCandidates);
    return kEscape;
  }
  Next escape(Packet*& p, Emitter& emit, Owner& owner) const;

 private:
  /// The bytes from a view's network header on, for behind_ip().
  template <typename View>
  struct NetworkBytes {
    View& view;
    HEADRACE_SHADER uint32_t byte(int32_t at) const { return view.load8(Anchor::kNetwork, at); }
    HEADRACE_SHADER uint32_t half(int32_t at) const { return view.load16(Anchor::kNetwork, at); }
  };
  /// Whether some rule without a literal may match. The host finds out.
  template <typename View>
  HEADRACE_SHADER bool may_match(View& p) const {
    if (!p.has_network_header()) return true;
    const TransportPlace place = behind_ip(NetworkBytes<View>{p}, 0, p.length_from(Anchor::kNetwork), false);
    if (place.protocol == TransportPlace::kNotIp) return false;
    if (place.version == 6 && is_ip6_extension(place.protocol)) return true;
    if (!place.has_header) return always.other;
    switch (place.protocol) {
      case 6:
        if (place.end < place.at + 14) return true;
        return always.tcp_flags.contains(p.load8(Anchor::kNetwork, place.at + 13)) || has_ports(p, place.at, 0);
      case 17:
        if (place.end < place.at + 4) return true;
        return always.udp || has_ports(p, place.at, 2);
      case 1:
      case 58:
        if (place.protocol != (place.version == 4 ? 1 : 58)) return always.other;
        return place.end < place.at + 1 || always.icmp_types.contains(p.load8(Anchor::kNetwork, place.at));
      default:
        return always.other;
    }
  }
  HEADRACE_SHADER bool has_ports(auto& p, int at, uint32_t first) const {
    return always.has_port(first, p.load16(Anchor::kNetwork, at)) ||
           always.has_port(first + 1, p.load16(Anchor::kNetwork, at + 2));
  }
};

}  // namespace headrace
