#pragma once
/// \file
/// Numbers of IP protocols. Read by the host compiler and by NVRTC.

#include "headrace/shader_types.hh"

namespace headrace::ip_protocol {

inline constexpr uint8_t kIcmp = 1, kIgmp = 2, kIpIp = 4, kTcp = 6, kUdp = 17, kDccp = 33, kIp6 = 41, kGre = 47,
                         kEsp = 50, kIcmp6 = 58, kOspf = 89, kPim = 103, kVrrp = 112, kSctp = 132, kUdpLite = 136;
/// IPv6's extension headers: RFC 8200 section 4 and the registry of protocol numbers.
inline constexpr uint8_t kHopByHop = 0, kRouting = 43, kFragment = 44, kAuthentication = 51, kDestinationOptions = 60,
                         kMobility = 135, kHostIdentity = 139, kShim6 = 140;

}  // namespace headrace::ip_protocol
