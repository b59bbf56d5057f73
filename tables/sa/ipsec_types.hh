#pragma once
/// \file
/// Values that policies and associations of IPsec share.

#include <cstdint>
#include <string>

#include "headrace/addresses.hh"

namespace headrace {

/// From the point of view of this gateway: packets to protect go out, packets to check and decrypt come in.
enum class IPsecDirection : uint8_t { kIn, kOut };

constexpr const char* to_string(IPsecDirection direction) { return direction == IPsecDirection::kIn ? "in" : "out"; }

/// What an association wraps packets into: an outer header of IPv4 or IPv6, or none (RFC 4301, section 4.1).
enum class IPsecMode : uint8_t { kTunnel4, kTunnel6, kTransport };

/// IPsec's databases keep an IPv4 address as the IPv4-mapped one (RFC 4291, section 2.5.5.2), so that one type holds both
/// families. This is the address as people write it.
inline std::string unparse_either(const Ip6Address& address) {
  return address.is_v4_mapped() ? address.embedded_v4().unparse() : address.unparse();
}

}  // namespace headrace
