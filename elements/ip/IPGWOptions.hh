#pragma once
#include <headrace/shader.hh>

namespace headrace {

struct IPGWOptionsOwner;

/// Processes IP options as a router must: records its address in Record Route and Timestamp options (RFC 791, 3.1).
///
///     IPGWOptions(MYADDR [, OTHERADDRS])
///
/// Input: IP packets with a network header that are on their way out. Output 0: packets without options or with good
/// ones, with options filled in and the header checksum recomputed. Output 1 (optional): packets with a bad option,
/// whose ICMP parameter problem annotation says where, for ICMPError(..., parameterproblem); without it they are
/// dropped and counted. Source routes are not followed.
///
/// MYADDR: the address of the interface by which the packets leave.
/// OTHERADDRS: the router's other addresses, for timestamp options that list the routers to record.
///
/// Handlers: `drops` (r) packets with a bad option.
struct IPGWOptions : Shader<IPGWOptions> {
  using Owner = IPGWOptionsOwner;
  static constexpr Ports kPorts{"1/1-2"};
  static constexpr auto kRegions = regions(Read{ip4::version_ihl});
  enum { kBadOption, kBadHeader };
  static constexpr auto kCounters = counters(reason("bad IP option"), reason("bad IP header length"));

  Status configure(Args& args, IPGWOptionsOwner& owner);
  void add_handlers(Handlers& handlers, IPGWOptionsOwner& owner, ShaderElementBase& element);
  Next escape(Packet*& p, Emitter& emit, IPGWOptionsOwner& owner) const;

  HEADRACE_SHADER Next shade(auto& p) const { return (p.get(ip4::version_ihl) & 0xf) <= 5 ? 0 : kEscape; }
};

}  // namespace headrace
