#pragma once
/// \file
/// The pattern language of IPFilter and IPClassifier, after tcpdump's.
///
///     pattern    = expression | "-" | "any" | "all" | nothing
///     expression = or [ "?" expression ":" or ]...
///     or         = and { ("or" | "||") and }
///     and        = factor { ["and" | "&&"] factor }
///     factor     = ("not" | "!") factor | "(" expression ")" | "true" | "any" | "all" | "false" | "none" | primitive
///     primitive  = qualifiers [ "[" pos [":" length] "]" ] [ "&" mask ] [ relation ] value
///
/// Qualifiers are `src`, `dst`, `src and dst`, `src or dst`; `ip`, `ether`; a protocol (`tcp`, `udp`, `icmp`, `tcpudp`,
/// `transp`, ...); and `host`, `net`, `port`, `proto`, `vers`, `hl`, `tos`, `dscp`, `ect`, `ce`, `len`, `id`, `frag`,
/// `unfrag`, `ttl`, `opt`, `win`, `type`. Relations are = == != < > <= >=. Values are numbers, ranges of numbers
/// (`1024-65535`), addresses, networks (`10.0.0.0/8`, `10.0.0.0 mask 255.0.0.0`) and names: of the scope, of protocols,
/// services, TCP flags and ICMP types. What a value makes clear may be left out, and a primitive takes what it leaves
/// out from the one before: `src port 80 or 81`.
///
/// Tests of the transport header hold only for packets of the protocol and for first fragments. A test of bytes that a
/// packet does not have fails, and so does its `!=`; `not` turns either round.

#include <headrace/args.hh>
#include <headrace/error.hh>
#include <span>
#include <string>

#include "tables/decision/decision_program.hh"

namespace headrace {

/// Compiles rules `ACTION pattern` with ACTION an output below `outputs`, `allow` (output 0), `deny` or `drop`. The
/// first rule whose pattern matches decides; packets that match none are dropped.
///
/// Names are looked up in `scope`, which may be null. Errors (`pattern N: ...`) leave `program` as it was.
Status compile_ip_filter(std::span<const std::string> rules, int outputs, const NameScope* scope, Errors& errors,
                         DecisionProgram& program);

/// Compiles one pattern for each output.
Status compile_ip_classifier(std::span<const std::string> patterns, const NameScope* scope, Errors& errors,
                             DecisionProgram& program);

}  // namespace headrace
