#pragma once
#include "elements/ip/ip_program.hh"

namespace headrace {

/// Chooses the output by the headers of IP packets, with patterns like those of tcpdump.
///
///     IPClassifier(PATTERN1, PATTERN2, ...)
///
/// Input: IP packets with a network header (CheckIPHeader, MarkIPHeader). One pattern for each output; a packet leaves
/// by the output of the first pattern that matches it, and is dropped and counted when none does.
///
/// Primitives:
///
/// - `[src|dst|src or dst|src and dst] [host] ADDR`, `... [net] ADDR/BITS`, `... net ADDR mask MASK`: IP addresses
/// - `[src|dst|...] [ether] host ETHER`: Ethernet addresses; the packet needs a MAC header
/// - `[src|dst|...] [tcp|udp] port PORT`: ports, numbers or names
/// - `tcp`, `udp`, `icmp`, `tcpudp`, `ip proto PROTO`
/// - `ip vers|hl|tos|dscp|len|id|ttl N`, `tcp win N`: header fields
/// - `ip ect`, `ip ce` (RFC 3168), `ip frag`, `ip unfrag`
/// - `[tcp opt] syn|ack|fin|rst|psh|urg|ece|cwr`; `icmp type TYPE`, a number or name
/// - `ip[POS:LEN] N`, `tcp[POS:LEN] N`, `transp[POS:LEN] N`: bytes of a header, LEN 1 (the default) to 4
/// - `true`, `any`, `all`, `-`; `false`, `none`
///
/// Numbers may be preceded by a relation (`=`, `==`, `!=`, `<`, `>`, `<=`, `>=`), be ranges (`1024-65535`) and be taken
/// under a mask (`tcp[13] & 0x12 = 2`). Addresses may be preceded by `=` or `!=`, and may be names from AddressInfo.
/// Combine primitives with `and` (`&&`, or nothing), `or` (`||`), `not` (`!`), parentheses and
/// `CONDITION ? PATTERN : PATTERN` with spaces around the colon.
/// A primitive without qualifiers takes them from the preceding one: `src tcp port 80 or 443`.
///
/// Tests of ports, TCP and ICMP hold only for packets of that protocol, and only for first fragments. Bytes that a
/// packet does not have fail every test, also `!=`: `src port != 80` means TCP and UDP packets from another port, `not
/// src port 80` all packets but those from port 80. With both ports, `port > N` requires one of them to match, `port <
/// N` both.
///
/// Handlers: `program` (r) the compiled tests; `pattern0`, `pattern1`, ... (rw); `config` (rw).
struct IPClassifier : IpProgramShader<IPClassifier> {
  Status configure(Args& args, Owner& owner);
  void add_handlers(Handlers& handlers, Owner& owner, ShaderElement<IPClassifier>& element);
};

}  // namespace headrace
