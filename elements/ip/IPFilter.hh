#pragma once
#include "elements/ip/ip_program.hh"

namespace headrace {

/// Filters IP packets by rules.
///
///     IPFilter(ACTION1 PATTERN1, ACTION2 PATTERN2, ...)
///
/// Input: IP packets with a network header (CheckIPHeader, MarkIPHeader). The first rule whose pattern matches a packet
/// decides: ACTION is the number of the output by which it leaves, `allow` (output 0), `deny` or `drop`. A packet that
/// no rule matches is dropped. Dropped packets are counted.
///
/// IPClassifier describes patterns.
///
///     IPFilter(allow dst net 10.0.0.0/8 and tcp dst port 80 or 443, 1 icmp, deny all)
///
/// Handlers: `program` (r) the compiled tests; `config` (rw).
struct IPFilter : IpProgramShader<IPFilter> {
  Status configure(Args& args, Owner& owner);
  void add_handlers(Handlers& handlers, Owner& owner);
};

}  // namespace headrace
