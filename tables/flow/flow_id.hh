#pragma once
/// \file
/// What tells the packets of a flow from others.

#include <cstdint>
#include <string>

#include "headrace/addresses.hh"

namespace headrace {

/// Addresses and ports of a packet; ports in host order. Where a protocol has no ports, or they do not count, they are
/// zero, and so may an address be.
struct FlowId {
  IpAddress src, dst;
  uint16_t sport = 0, dport = 0;

  /// Of the packets that come back.
  FlowId reversed() const { return {dst, src, dport, sport}; }
  /// "(1.0.0.1, 1024, 2.0.0.2, 80)"
  std::string unparse() const;
  bool operator==(const FlowId&) const = default;
};

}  // namespace headrace
