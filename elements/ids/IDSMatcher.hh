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
/// (CheckIPHeader and its kin). Output 0: packets without an alert. Output 1 (optional): packets with one; without it
/// they leave by output 0, too. Nothing is dropped: what `drop` and `reject` of a rule shall mean, what is connected to
/// output 1 says. Packets that a `pass` rule matches have no alerts.
///
/// Each packet is searched for one literal of each rule, the fast pattern (`fast_pattern`, or the longest content), on
/// the device or by Vectorscan on the CPU. Literals whose rules are all for other protocols or ports do not count; the
/// numbers of up to four of the others go into the annotation at byte 32. Rules whose literal is there are then
/// confirmed on the CPU: addresses, ports, header options, contents with all their places, `isdataat` and `pcre`. Rules
/// without any content, and those that name ports and whose literal has one or two bytes, are tried on every packet of
/// their protocol and ports.
///
/// A rule is read as Suricata reads it, in both spellings of modifiers: actions alert, log, pass, drop, block and
/// reject; protocols ip, ipv4, ipv6, tcp, udp, sctp, icmp, icmpv4, icmpv6; content with nocase, offset, depth,
/// distance, within, startswith, endswith, fast_pattern, rawbytes; pcre with the flags i s m x A E G R B O; isdataat;
/// dsize, flags, seq, ack, window, itype, icode, icmp_id, icmp_seq, ttl, tos, id, ipopts, fragbits, fragoffset,
/// ip_proto, sameip; flow; msg, sid, gid, rev, classtype, priority, reference, metadata. Rules that ask for more
/// (buffers of HTTP and other applications, flowbits, byte_test, threshold, ...) or are wrong do not run; the handler
/// `refused` names each with file, line and reason. Packets are looked at one by one: streams are not reassembled. So
/// `flow` cannot be followed; such rules run, for both directions, but `established` leaves TCP segments with SYN out.
///
/// Work on a packet is limited. Where that is not enough (traffic made to be slow), the packet counts as cut: it has
/// the alerts that were found until then.
///
/// RULES (repeatable, at least one): a file of rules, plain or compressed by xz
/// or gzip.
/// CLASSIFICATION (repeatable): a file with descriptions and priorities of classes (classification.config).
/// HOME_NET, EXTERNAL_NET: addresses as in rules, such as "[10.0.0.0/8,!10.1.0.0/16]"; default any.
/// VAR (repeatable): name and value of another variable. HTTP_SERVERS and the like are any unless given; HTTP_PORTS is
/// 80, SHELLCODE_PORTS !80, ORACLE_PORTS 1521, SSH_PORTS 22, FTP_PORTS 21, FILE_DATA_PORTS [$HTTP_PORTS,110,143],
/// SIP_PORTS [5060,5061], DNP3_PORTS 20000, MODBUS_PORTS 502, VXLAN_PORTS 4789, GENEVE_PORTS 6081, TEREDO_PORTS 3544.
/// DISABLED true: rules that are commented out run, too. Default false.
/// APPLICATIONS true: rules for application protocols (http, tls, dns, ...) without buffers of theirs run for all
/// packets of the transport below. Default false: they do not run.
/// STRICT true: a rule that does not run is an error. Default false.
/// ALERTS: the file that alerts are appended to, one JSON object a line with the names of Suricata's EVE; "-" is the
/// standard output. Default eve.json.
/// RATE: most lines a second for a rule, and at once; 0: no limit. Alerts are counted nevertheless. Default 100.
/// QUEUE: alerts that may wait to be written, for each worker. Default 4096.
/// ENGINE: how devices search, as for StringMatcher: `prefilter`, `dfa`, `compressed` or `auto`. Default auto.
///
/// Handlers: `rules` (r) what was read and built; `refused` (r) rules that do not run, one a line; `alerts` (r) how
/// often each rule matched, as lines `sid count msg`; `top` (r) the ten that matched most; `candidates`,
/// `confirmed`, `passed`, `cut` (r) packets in which a literal was found, with alerts, that a pass rule matched,
/// with too much work; `rescans` (r) packets searched once more by the CPU, since more than four literals were
/// found or the search was given up; `written`, `suppressed`, `lost_alerts` (r) lines written, left out because of
/// RATE, lost because QUEUE was full or the file could not be written; `flush` (w) writes what waits; `reset` (w)
/// sets counts to zero.
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
    p.set(anno::candidates, found.packed);
    if (!found.none()) p.count(kCandidates);
    return look ? kEscape : 0;
  }
  Next escape(Packet*& p, Emitter& emit, Owner& owner) const;

 private:
  /// Whether some rule without a literal may match. The host finds out.
  HEADRACE_SHADER bool may_match(auto& p) const {
    if (!p.has_network_header()) return true;
    const int length = p.length_from(Anchor::kNetwork);
    if (length < 20) return false;
    const uint32_t version_ihl = p.load8(Anchor::kNetwork, 0);
    uint32_t protocol;
    int at;
    if (version_ihl >> 4 == 4) {
      if ((p.load16(Anchor::kNetwork, 6) & ip4::kOffsetMask) != 0) return always.other;
      protocol = p.load8(Anchor::kNetwork, 9);
      at = static_cast<int>(version_ihl & 15) * 4;
      if (at < 20) return false;
      if (protocol == 58) return always.other;
    } else if (version_ihl >> 4 == 6 && length >= 40) {
      protocol = p.load8(Anchor::kNetwork, 6);
      at = 40;
      if (protocol == 1) return always.other;
    } else {
      return false;
    }
    switch (protocol) {
      case 6:
        if (length < at + 14) return true;
        return always.tcp_flags.contains(p.load8(Anchor::kNetwork, at + 13)) || has_ports(p, at, 0);
      case 17:
        if (length < at + 4) return true;
        return always.udp || has_ports(p, at, 2);
      case 1:
      case 58:
        return length < at + 1 || always.icmp_types.contains(p.load8(Anchor::kNetwork, at));
      case 0:  // extension headers of IPv6
      case 43:
      case 44:
      case 51:
      case 60:
      case 135:
      case 139:
      case 140:
        return true;
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
